"""Verdicts as rows of a table, and numbers as a reader wants them."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, get_args

from unmix.claims import Claim, Interval, Status, Verdict, not_run
from unmix.papers.base import Paper
from unmix.report.signs import glyphs

NONE = "—"
STATUSES: tuple[Status, ...] = get_args(Status)

# A symbol beside the word, so that no status is told by colour alone.
SYMBOLS: dict[Status, str] = {
    "confirmed": "✓",
    "supported": "◐",
    "inconclusive": "?",
    "refuted": "✗",
    "failed": "!",
    "not-run": "○",
}
MEANINGS: dict[Status, str] = {
    "confirmed": "The whole confidence interval lies inside the claim’s interval, at the paper’s "
    "own scale or for a statement that holds at any scale.",
    "supported": "Inside as well, but at a reduced scale, or as a trend over finite sizes.",
    "inconclusive": "Too few replicas, an interval that crosses the claim’s, or a result outside "
    "it from a run that may not refute.",
    "refuted": "The whole confidence interval lies outside, in a run that may refute.",
    "failed": "A premise of the claim did not hold in the run, or there was no number to judge; "
    "this says nothing about the claim.",
    "not-run": "Listed, but not measured here; the reason stands beside it.",
}
KINDS: dict[str, str] = {
    "identity": "holds exactly at any scale, so any run may confirm or refute it",
    "experiment": "decided only at the paper’s own hyper-parameters; a smaller run can support it",
    "law": "an asymptotic statement, judged as a trend; it can be supported, never confirmed or "
    "refuted",
    "beyond": "not in the paper: what we found while measuring it",
}
COLUMNS = (
    "claim",
    "where",
    "wanted",
    "measured",
    "replicas",
    "scale",
    "status",
    "why",
)


@dataclass(frozen=True)
class Row:
    """One claim with its verdict: the words as they are printed."""

    claim: str
    statement: str
    kind: str
    place: str
    reading: str
    quantity: str
    wanted: str
    mean: str
    interval: str
    replicas: str
    scale: str
    status: Status
    why: str
    runs: tuple[str, ...] = ()

    @property
    def measured(self) -> str:
        return f"{self.mean} {self.interval}".strip()

    @property
    def symbol(self) -> str:
        return SYMBOLS[self.status]

    def plain(self) -> tuple[str, ...]:
        """The cells under COLUMNS, for a terminal."""
        cells = (self.claim, self.place, self.wanted, self.measured)
        return (*cells, self.replicas, self.scale, f"{self.symbol} {self.status}", self.why)


def number(value: float | None) -> str:
    """Four significant digits; 1.2e-16 for the tiny, a dash for none."""
    if value is None or math.isnan(value):
        return NONE
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:.4g}".replace("-", "−")
    mantissa, e, exponent = text.partition("e")
    if not e:
        return text
    sign = "−" if exponent.startswith("−") else ""
    return f"{mantissa}e{sign}{exponent.lstrip('+−').lstrip('0')}"


def wanted(interval: Interval) -> str:
    """The claim's interval in the shortest form."""
    low, high = interval.low, interval.high
    if math.isinf(low) and math.isinf(high):
        return NONE
    if math.isinf(low):
        return f"≤ {number(high)}"
    if math.isinf(high):
        return f"≥ {number(low)}"
    if low == high:
        return f"= {number(low)}"
    if number(low) == number(high):
        return f"{number((low + high) / 2)} ± {number((high - low) / 2)}"
    return f"[{number(low)}, {number(high)}]"


def rows(paper: Paper, verdicts: Sequence[Verdict]) -> list[Row]:
    """One row for each claim of the paper, in its order; a claim without a verdict is not run."""
    return [_row(claim, verdict) for claim, verdict in _pairs(paper, verdicts)]


def counts(table: Sequence[Row]) -> dict[Status, int]:
    """How many rows have each status, in the order of STATUSES."""
    return {status: sum(row.status == status for row in table) for status in STATUSES}


def records(paper: Paper, verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """The verdicts with full numbers, as plain JSON values; an open end of an interval is null."""
    return [_record(paper, claim, verdict) for claim, verdict in _pairs(paper, verdicts)]


def as_csv(table: Sequence[dict[str, Any]]) -> str:
    """Records as CSV; the runs of a verdict are separated by blanks."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, RECORD, lineterminator="\n")
    writer.writeheader()
    writer.writerows(record | {"runs": " ".join(record["runs"])} for record in table)
    return stream.getvalue()


def _pairs(paper: Paper, verdicts: Sequence[Verdict]) -> list[tuple[Claim, Verdict]]:
    """Every claim with its verdict; a verdict on an unknown claim is an error."""
    judged = {paper.claim(v.claim).name: v for v in verdicts}
    unasked = "it was not asked for in this report"
    return [(c, judged.get(c.name) or not_run(c, c.why_not or unasked)) for c in paper.claims]


def _row(claim: Claim, verdict: Verdict) -> Row:
    alone = verdict.low is None or verdict.low == verdict.high == verdict.mean
    return Row(
        claim=claim.name,
        statement=glyphs(claim.statement),
        kind=claim.kind,
        place=claim.source.place,
        reading=glyphs(claim.source.reading),
        quantity=glyphs(claim.quantity),
        wanted=wanted(claim.interval),
        mean=number(verdict.mean),
        interval="" if alone else f"[{number(verdict.low)}, {number(verdict.high)}]",
        replicas=str(verdict.replicas) if verdict.replicas else NONE,
        scale=NONE if verdict.scale == "none" else verdict.scale,
        status=verdict.status,
        why=verdict.why,
        runs=verdict.runs,
    )


def _record(paper: Paper, claim: Claim, verdict: Verdict) -> dict[str, Any]:
    words = asdict(claim.source) | {"paper": paper.name, "claim": claim.name}
    words |= {"statement": claim.statement, "kind": claim.kind, "quantity": claim.quantity}
    ends = {"wanted_low": claim.interval.low, "wanted_high": claim.interval.high}
    judged = {f.name: getattr(verdict, f.name) for f in fields(verdict)}
    record = words | {k: v if math.isfinite(v) else None for k, v in ends.items()} | judged
    record["runs"] = list(verdict.runs)
    return {column: _finite(record[column]) for column in RECORD}


def _finite(value: Any) -> Any:
    """JSON has no infinity and no NaN; they become words."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


RECORD = (
    *("paper", "claim", "kind", "statement", "place", "reading", "quantity"),
    *("wanted_low", "wanted_high", "mean", "low", "high", "replicas", "scale"),
    *("status", "why", "runs"),
)
