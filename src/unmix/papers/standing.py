"""Nets beside nets, across papers: accuracy, robustness and mixing of each, side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import Tensor

from unmix.claims import confidence
from unmix.errors import DataError, UnmixError
from unmix.papers.base import Contender, Evidence, Paper


@dataclass(frozen=True)
class Estimate:
    """A mean over replicas with its interval, or why there is none; red flags of the attack."""

    mean: float | None = None
    low: float | None = None
    high: float | None = None
    why_not: str = ""
    flagged: str = ""


@dataclass(frozen=True)
class Standing:
    """A net and its training: radii as a share of the best possible one, features a neuron."""

    paper: str
    title: str
    setting: str
    run: str
    replicas: int
    accuracy: Estimate
    certified: Estimate
    attacked: Estimate
    features: Estimate
    closest: Estimate


def standings(paper: Paper, evidence: Evidence) -> list[Standing]:
    """A row for each contender of a paper whose setting is at hand."""
    at_hand = [c for c in paper.contenders if not evidence.why_not((c.setting,))]
    return [_standing(paper, contender, evidence) for contender in at_hand]


def _standing(paper: Paper, contender: Contender, evidence: Evidence) -> Standing:
    name, watched = contender.setting, evidence.watched()
    run = evidence.run(name)
    return Standing(
        paper.name,
        contender.title,
        name,
        run.experiment.digest(),
        run.replicas,
        _estimate(lambda: run.classifier.accuracy(run.test_batch)),
        _estimate(lambda: evidence.certified(name).lower.mean(1) / _best(evidence, name)),
        _flagged(lambda: watched.attacked(name).smallest.mean(1) / _best(watched, name), watched),
        _estimate(lambda: evidence.probe(name, "mixtures")["features"]),
        _estimate(lambda: evidence.probe(name, "mixtures")["closest"]),
    )


def _best(evidence: Evidence, setting: str) -> float:
    """The best possible mean l2 radius, in the units of the inputs."""
    best: float | None = evidence.run(setting).data.best_radius
    if best is None:
        raise DataError("nobody knows the best possible radius on these data")
    return best


def _flagged(values: Callable[[], Tensor], watched: Evidence) -> Estimate:
    found = _estimate(values)
    return replace(found, flagged=watched.flagged)


def _estimate(values: Callable[[], Tensor]) -> Estimate:
    try:
        found = [float(v) for v in values()]
    except UnmixError as error:
        return Estimate(why_not=error.message)
    low, high = confidence(found)
    return Estimate(sum(found) / len(found), low, high)
