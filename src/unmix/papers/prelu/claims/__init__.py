"""Every measurable statement of the paper, section by section, in its corrected form."""

from unmix.papers.prelu.claims import (
    alignment,
    beyond,
    classifiers,
    mnist,
    robustness,
    training,
)

CLAIMS = (
    *classifiers.CLAIMS,
    *training.CLAIMS,
    *robustness.CLAIMS,
    *alignment.CLAIMS,
    *beyond.CLAIMS,
    *mnist.CLAIMS,
)
