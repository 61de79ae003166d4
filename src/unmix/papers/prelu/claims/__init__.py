"""Every statement of the paper, section by section, in its corrected form."""

from unmix.papers.prelu.claims import training

CLAIMS = (*training.CLAIMS,)
