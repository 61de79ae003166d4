"""How a claim of this paper is written down."""

from __future__ import annotations

from functools import partial

from unmix.claims import Interval
from unmix.papers.writing import not_measured, write

PAPER = "pReLU"
ALL, NONE = Interval(1.0, 1.0), Interval(0.0, 0.0)
EXACT = Interval(high=1e-9)
# "<< 1" of Conjecture 1, where sup |F^(p)| = 1.
SMALL = Interval(high=0.1)
REDUCED = "on the reduced flow, an approximation"

claim, listed = partial(write, PAPER), partial(not_measured, PAPER)
within = Interval
