"""How a claim of this paper is written down."""

from __future__ import annotations

from functools import partial

from unmix.claims import Claim, Interval, Kind, Source
from unmix.papers.writing import write

PAPER = "pReLU"
ALL, NONE = Interval(1.0, 1.0), Interval(0.0, 0.0)
EXACT = Interval(high=1e-9)
# "<< 1" of Conjecture 1, where sup |F^(p)| = 1.
SMALL = Interval(high=0.1)
REDUCED = "on the reduced flow, an approximation"

claim = partial(write, PAPER)
within = Interval


def listed(name: str, statement: str, place: str, kind: Kind, why_not: str) -> Claim:
    """A claim that is not measured, with the reason."""
    return Claim(name, statement, Source(PAPER, place), kind, why_not=why_not)
