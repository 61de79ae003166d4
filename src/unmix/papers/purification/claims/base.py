"""How a claim of this paper is written down, and the ladders that its trends are fitted on.

Theorems say o(1) and Theta(1) as d grows. o(1) is read as a negative exponent in d over the ladder,
Theta(1) as an exponent within 0.2 of 0: constants that the paper leaves open are not judged.
"""

from __future__ import annotations

from functools import partial

from unmix.claims import Interval
from unmix.papers.writing import not_measured, write

PAPER = "feature purification"
FALLS, RISES, FLAT = Interval(high=0.0), Interval(low=0.0), Interval(-0.2, 0.2)
TREND = "exponent in d over the ladder"
DEEP = "deep networks on CIFAR-10: not in this half"

CLEAN, PURIFIED = "clean-d*", "purified-d*"

claim, listed = partial(write, PAPER), partial(not_measured, PAPER)
within = Interval
