"""Pictures of this paper: one function a figure, all computed in the theory's setting."""

from unmix.papers.purification.figures.learning import plane, tickets
from unmix.papers.purification.figures.perturbed import perturbations, radii
from unmix.papers.purification.figures.sparse import rebuilt, reconstruction
from unmix.papers.purification.figures.still import cosines, responses

__all__ = [
    "cosines",
    "perturbations",
    "plane",
    "radii",
    "rebuilt",
    "reconstruction",
    "responses",
    "tickets",
]
