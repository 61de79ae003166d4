"""Every statement of the paper that a measurement could decide, and those that none here can."""

from unmix.claims import Claim
from unmix.papers.purification.claims import (
    adversarial,
    appendix,
    clean,
    coupling,
    deep,
    frame,
    simple,
)

CLAIMS: tuple[Claim, ...] = (
    *clean.CLAIMS,
    *adversarial.CLAIMS,
    *simple.CLAIMS,
    *appendix.CLAIMS,
    *coupling.CLAIMS,
    *frame.CLAIMS,
    *deep.CLAIMS,
)
