"""Figures of the patches paper, each a function of the evidence."""

from unmix.papers.patches.figures.pictures import picture
from unmix.papers.patches.figures.robustness import radii, threats
from unmix.papers.patches.figures.scaling import races, recursion, scaling
from unmix.papers.patches.figures.simulations import nearest, simulation

__all__ = [
    "nearest",
    "picture",
    "races",
    "radii",
    "recursion",
    "scaling",
    "simulation",
    "threats",
]
