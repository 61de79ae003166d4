"""The figures of this paper, drawn from runs."""

from unmix.papers.prelu.figures.conjecture import (
    contributions,
    distances,
    matrices,
    more_contributions,
    more_distances,
    more_matrices,
)
from unmix.papers.prelu.figures.curves import critical, more, trained
from unmix.papers.prelu.figures.laws import bias, predictors
from unmix.papers.prelu.figures.mnist import digits, fashion, frozen, parity, table
from unmix.papers.prelu.figures.sphere import sphere

__all__ = [
    "bias",
    "contributions",
    "critical",
    "digits",
    "distances",
    "fashion",
    "frozen",
    "matrices",
    "more",
    "more_contributions",
    "more_distances",
    "more_matrices",
    "parity",
    "predictors",
    "sphere",
    "table",
    "trained",
]
