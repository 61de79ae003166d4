"""How a claim of this paper is written down."""

from __future__ import annotations

from functools import partial

from unmix.claims import Interval
from unmix.papers.writing import write

PAPER = "patches"
IDENTITY = Interval(high=1e-9)
ALL = Interval(low=1.0, high=1.0)
# "1 - o(1)" and "o(1)" of a probability.
NEARLY_ALL = Interval(low=0.99)
HARDLY_ANY = Interval(high=0.01)
MEAN = "eta~ of the batch mean, so that a point sees eta~/N = 10"
FREE = "without noise, one point a class"
ONE_LOG = "O~(1) is read as at most one factor log d"

claim = partial(write, PAPER)
within = Interval
