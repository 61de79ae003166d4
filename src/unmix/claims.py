"""Claims of papers, and the verdicts that measurements allow.

Who may refute is law: a run below the paper's own scale can support a claim but not refute it, and
a run whose premises failed is failed, not refuted.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Status = Literal["confirmed", "supported", "inconclusive", "refuted", "failed", "not-run"]
Scale = Literal["paper", "reduced", "any", "none"]
Kind = Literal["identity", "experiment", "law", "beyond"]

# Fewer replicas than this decide nothing.
REPLICAS = 5
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Source:
    """Where a claim stands, and in which corrected form it is measured."""

    paper: str
    place: str
    reading: str = ""


@dataclass(frozen=True)
class Interval:
    """Closed interval in which the measured value must lie; either end may be open to infinity."""

    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError(f"empty interval [{self.low}, {self.high}]")

    def __str__(self) -> str:
        if math.isinf(self.low):
            return f"<= {self.high:.4g}"
        if math.isinf(self.high):
            return f">= {self.low:.4g}"
        return f"[{self.low:.4g}, {self.high:.4g}]"


@dataclass(frozen=True)
class Claim:
    """A statement of a paper that a measurement can decide.

    `kind` says what a verdict can be worth: an "identity" holds at any scale, so any run may refute
    it; an "experiment" is decided at the paper's own hyper-parameters; a "law" (o(1), Omega, Theta)
    is judged as a trend and can at best be supported; "beyond" is not in the paper.
    `measure` names a function of the paper's measures; a claim without one is listed as not run.
    """

    name: str
    statement: str
    source: Source
    kind: Kind
    interval: Interval = Interval()
    measure: str = ""
    settings: tuple[str, ...] = ()
    quantity: str = ""
    why_not: str = ""


@dataclass(frozen=True)
class Sample:
    """What a measure returns: one value a replica, and the premises that did not hold."""

    values: Sequence[float]
    failed_premises: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Verdict:
    """A claim, judged."""

    claim: str
    status: Status
    why: str
    scale: Scale
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    replicas: int = 0
    runs: tuple[str, ...] = ()

    @property
    def bad(self) -> bool:
        return self.status in ("refuted", "failed")


class Verdicts(tuple[Verdict, ...]):
    """Verdicts that print as a table."""

    def __str__(self) -> str:
        return "\n".join(f"{v.claim:<24} {v.status:<13} {_measured(v)}" for v in self)


def judge(claim: Claim, sample: Sample, scale: Scale, runs: tuple[str, ...] = ()) -> Verdict:
    """The verdict that a sample allows, by the law of who may refute."""
    values = [float(v) for v in sample.values]
    replicas = len(values)
    scale = "any" if claim.kind == "identity" else scale
    if sample.failed_premises:
        why = "premise not met: " + "; ".join(sample.failed_premises)
        return Verdict(claim.name, "failed", why, scale, replicas=replicas, runs=runs)
    if not values or any(math.isnan(v) for v in values):
        why = "the measurement gave no number on every replica"
        return Verdict(claim.name, "failed", why, scale, replicas=replicas, runs=runs)
    mean = sum(values) / replicas
    low, high = confidence(values)
    status, why = _decide(claim, low, high, scale, replicas)
    why = f"{why}; {sample.note}" if sample.note else why
    return Verdict(claim.name, status, why, scale, mean, low, high, replicas, runs)


def not_run(claim: Claim, why: str) -> Verdict:
    """A claim that is listed but was not measured."""
    return Verdict(claim.name, "not-run", why, "none")


def confidence(values: Sequence[float]) -> tuple[float, float]:
    """Student-t interval of the mean over replicas."""
    # Imported here because listing claims must not wait for scipy.
    from scipy.special import stdtrit

    count = len(values)
    if count < 2 or min(values) == max(values) or any(math.isinf(v) for v in values):
        mean = sum(values) / count
        return mean, mean
    mean = statistics.fmean(values)
    half = float(stdtrit(count - 1, (1 + CONFIDENCE) / 2)) * statistics.stdev(values) / count**0.5
    return mean - half, mean + half


def _measured(verdict: Verdict) -> str:
    if verdict.mean is None:
        return verdict.why
    return f"{verdict.mean:.4g} [{verdict.low:.4g}, {verdict.high:.4g}], R={verdict.replicas}"


def _decide(
    claim: Claim, low: float, high: float, scale: Scale, replicas: int
) -> tuple[Status, str]:
    if replicas < REPLICAS:
        return "inconclusive", f"{replicas} replicas; a verdict needs {REPLICAS}"
    wanted = claim.interval
    if wanted.low <= low and high <= wanted.high:
        full = scale in ("paper", "any") and claim.kind != "law"
        return ("confirmed", "inside") if full else ("supported", _inside(claim, scale))
    if high < wanted.low or low > wanted.high:
        if scale == "reduced" or claim.kind == "law":
            return "inconclusive", "outside, but " + _no_refutation(claim)
        return "refuted", "outside the interval"
    return "inconclusive", "the confidence interval crosses the claim's interval"


def _inside(claim: Claim, scale: Scale) -> str:
    return "inside; a trend over finite sizes" if claim.kind == "law" else f"inside, {scale} scale"


def _no_refutation(claim: Claim) -> str:
    if claim.kind == "law":
        return "finite sizes cannot refute an asymptotic statement"
    return "a reduced scale cannot refute"
