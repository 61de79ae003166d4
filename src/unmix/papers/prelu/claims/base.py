"""How a claim of this paper is written down."""

from __future__ import annotations

import math
from typing import Literal

from unmix.claims import Claim, Interval, Source

PAPER = "pReLU"
ALL, NONE = Interval(1.0, 1.0), Interval(0.0, 0.0)
EXACT = Interval(high=1e-9)
# "<< 1" of Conjecture 1, where sup |F^(p)| = 1.
SMALL = Interval(high=0.1)
REDUCED = "on the reduced flow, an approximation"

Kind = Literal["identity", "experiment", "law", "beyond"]


def claim(
    name: str,
    statement: str,
    place: str,
    kind: Kind,
    interval: Interval,
    measure: str,
    *settings: str,
    reading: str = "",
) -> Claim:
    """A claim with its place in the paper and, where the text was corrected, how."""
    return Claim(name, statement, Source(PAPER, place, reading), kind, interval, measure, settings)


def listed(name: str, statement: str, place: str, kind: Kind, why_not: str) -> Claim:
    """A claim that is not measured, with the reason."""
    return Claim(name, statement, Source(PAPER, place), kind, why_not=why_not)


def within(low: float = -math.inf, high: float = math.inf) -> Interval:
    """The wanted interval."""
    return Interval(low, high)
