"""How the claims of any paper are written down."""

from __future__ import annotations

from unmix.claims import Claim, Interval, Kind, Source


def write(
    paper: str,
    name: str,
    statement: str,
    place: str,
    kind: Kind,
    interval: Interval,
    measure: str,
    *settings: str,
    reading: str = "",
) -> Claim:
    """A claim with its place in the paper and, where the text was corrected or read, how."""
    return Claim(name, statement, Source(paper, place, reading), kind, interval, measure, settings)


def not_measured(
    paper: str, name: str, statement: str, place: str, why_not: str, kind: Kind = "law"
) -> Claim:
    """A claim that is not measured, with the reason."""
    return Claim(name, statement, Source(paper, place), kind, why_not=why_not)
