"""How a claim of this paper is written down, and the ladders that its trends are fitted on.

Theorems say o(1) and Theta(1) as d grows. o(1) is read as a negative exponent in d over the ladder,
Theta(1) as an exponent within 0.2 of 0: constants that the paper leaves open are not judged.
"""

from __future__ import annotations

import math
from typing import Literal

from unmix.claims import Claim, Interval, Source

PAPER = "feature purification"
FALLS, RISES, FLAT = Interval(high=0.0), Interval(low=0.0), Interval(-0.2, 0.2)
TREND = "exponent in d over the ladder"
DEEP = "deep networks on CIFAR-10: not in this half"

CLEAN, PURIFIED = "clean-d*", "purified-d*"

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


def listed(name: str, statement: str, place: str, why_not: str, kind: Kind = "law") -> Claim:
    """A claim that is not measured, with the reason."""
    return Claim(name, statement, Source(PAPER, place), kind, why_not=why_not)


def within(low: float = -math.inf, high: float = math.inf) -> Interval:
    """The wanted interval."""
    return Interval(low, high)
