"""Section 6.2 and appendix A: real images. Listed, and not run: what they need is said."""

from unmix.claims import Claim, Source
from unmix.papers.patches.claims.base import PAPER

DEEP = (
    "needs residual nets trained on images, standard and adversarially, and inverted "
    "representations; only the simulations and the theory are run here"
)


def _listed(name: str, statement: str, place: str) -> Claim:
    return Claim(name, statement, Source(PAPER, place), "experiment", why_not=DEEP)


CLAIMS = (
    _listed("table-1-std", "Standard training: FL_NR > FL_R on all three data sets", "Table 1"),
    _listed("table-1-adv", "Adversarial training: FL_R > FL_NR on all three", "Table 1"),
    _listed("table-1-nr", "FL_NR: standard above adversarial training", "Table 1"),
    _listed("table-1-r", "FL_R: adversarial above standard training", "Table 1"),
    _listed("table-2-std", "NRF-PGD fools the standard net more often than RF-PGD", "Table 2"),
    _listed("table-2-adv", "RF-PGD fools the adversarial net more often than NRF-PGD", "Table 2"),
)
