"""How a claim of this paper is written down, and the ladders that its trends are fitted on."""

from __future__ import annotations

from functools import partial

from unmix.claims import Interval
from unmix.papers.writing import write

PAPER = "feature averaging"
IDENTITY = Interval(high=1e-9)
ALL = Interval(low=1.0, high=1.0)
FALLS = Interval(high=0.0)

# Ladders of settings: every rung that settings.py has at the size at hand.
BINARY_K = ("binary-k*",)
FINE_K = ("k-class-k*",)
BINARY_N = ("binary-n*",)
FINE_N = ("k-class-n*",)

claim = partial(write, PAPER)
within = Interval
