"""The coverage table: every item of a paper with the verdicts and figures that stand for it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from unmix.papers.base import Paper
from unmix.papers.contents import Item
from unmix.report.tables import Row

Covered = Literal["confirmed", "supported", "inconclusive", "refuted", "failed", "drawn", "not-run"]

# What an item's status says of several claims: the first of these that one of them has.
WORST: tuple[Covered, ...] = ("refuted", "failed", "inconclusive", "supported", "confirmed")


@dataclass(frozen=True)
class Line:
    """An item, its status, the rows of its claims, its figures and, if nothing is known, why."""

    item: Item
    status: Covered
    claims: tuple[Row, ...]
    figures: tuple[str, ...]
    why: str


def coverage(paper: Paper, table: Sequence[Row], drawn: Collection[str]) -> list[Line]:
    """One line for each item of the paper's contents, in their order.

    `table` holds the rows of all claims, `drawn` the names of the figures that were drawn. What
    goes beyond the paper does not count for an item that has claims of its own, and an item with
    none takes those of the item that it restates.
    """
    places = {item.place: item for item in paper.contents}
    return [_line(paper, item, places.get(item.restates), table, drawn) for item in paper.contents]


def counts(lines: Sequence[Line]) -> dict[Covered, int]:
    """How many items have each status, the statuses without one left out."""
    found = {s: sum(line.status == s for line in lines) for s in (*WORST[::-1], "drawn", "not-run")}
    return {status: count for status, count in found.items() if count}


def _line(
    paper: Paper, item: Item, same: Item | None, table: Sequence[Row], drawn: Collection[str]
) -> Line:
    rows = _rows(item, table)
    own = [row for row in rows if row.kind != "beyond"]
    if not own and same is not None:
        rows = _rows(same, table)
        own = [row for row in rows if row.kind != "beyond"]
    entries = [entry for entry in paper.figures if item.named_in(entry.shows)]
    figures = tuple(entry.name for entry in entries if entry.name in drawn)
    status = _status([row.status for row in own or rows], bool(figures))
    reasons = [row.why for row in own or rows] + [e.why_not for e in entries]
    why = item.why_not or "; ".join(dict.fromkeys(filter(None, reasons)))
    return Line(item, status, tuple(own or rows), figures, why if status == "not-run" else "")


def _rows(item: Item, table: Sequence[Row]) -> list[Row]:
    return [row for row in table if item.named_in(row.place)]


def _status(found: Sequence[str], drawn: bool) -> Covered:
    known = [status for status in WORST if status in found]
    return known[0] if known else "drawn" if drawn else "not-run"
