"""Pictures of this paper: one function a figure, all computed in the theory's setting."""

from unmix.papers.purification.figures.learning import plane, tickets
from unmix.papers.purification.figures.perturbed import perturbations, radii, reconstruction
from unmix.papers.purification.figures.still import cosines, responses

__all__ = [
    "cosines",
    "perturbations",
    "plane",
    "radii",
    "reconstruction",
    "responses",
    "tickets",
]
