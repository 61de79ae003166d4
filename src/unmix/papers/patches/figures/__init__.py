"""Figures of the patches paper, each a function of the evidence."""

from unmix.papers.patches.figures.images import (
    budgets,
    curves,
    more_curves,
    representatives,
    table_1,
    table_2,
)
from unmix.papers.patches.figures.pictures import picture
from unmix.papers.patches.figures.robustness import radii, threats
from unmix.papers.patches.figures.scaling import races, recursion, scaling
from unmix.papers.patches.figures.simulations import nearest, simulation

__all__ = [
    "budgets",
    "curves",
    "more_curves",
    "nearest",
    "picture",
    "races",
    "radii",
    "recursion",
    "representatives",
    "scaling",
    "simulation",
    "table_1",
    "table_2",
    "threats",
]
