"""How a claim of this paper is written down."""

from __future__ import annotations

import math
from typing import Literal

from unmix.claims import Claim, Interval, Source

PAPER = "patches"
IDENTITY = Interval(high=1e-9)
ALL = Interval(low=1.0, high=1.0)
# "1 - o(1)" and "o(1)" of a probability.
NEARLY_ALL = Interval(low=0.99)
HARDLY_ANY = Interval(high=0.01)
MEAN = "eta~ of the batch mean, so that a point sees eta~/N = 10"
FREE = "without noise, one point a class"
ONE_LOG = "O~(1) is read as at most one factor log d"

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
    """A claim with its place in the paper and, where the text was corrected or read, how."""
    return Claim(
        name, statement, Source(PAPER, place, reading), kind, interval, measure, tuple(settings)
    )


def within(low: float = -math.inf, high: float = math.inf) -> Interval:
    """The wanted interval."""
    return Interval(low, high)
