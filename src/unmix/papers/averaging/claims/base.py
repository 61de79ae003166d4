"""How a claim of this paper is written down, and the ladders that its trends are fitted on."""

from __future__ import annotations

import math
from typing import Literal

from unmix.claims import Claim, Interval, Source

PAPER = "feature averaging"
IDENTITY = Interval(high=1e-9)
ALL = Interval(low=1.0, high=1.0)
FALLS = Interval(high=0.0)

# Ladders of settings: every rung that settings.py has at the size at hand.
BINARY_K = ("binary-k*",)
FINE_K = ("k-class-k*",)
BINARY_N = ("binary-n*",)
FINE_N = ("k-class-n*",)

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
    return Claim(
        name, statement, Source(PAPER, place, reading), kind, interval, measure, tuple(settings)
    )


def within(low: float = -math.inf, high: float = math.inf) -> Interval:
    """The wanted interval."""
    return Interval(low, high)
