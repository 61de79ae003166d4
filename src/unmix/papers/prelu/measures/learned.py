"""What the neurons of a trained net stand for, and what they contribute."""

from __future__ import annotations

from unmix.claims import Sample
from unmix.papers.base import Evidence


def covered(evidence: Evidence, setting: str) -> Sample:
    """Share of the K subclasses that a dominant neuron points at."""
    k = evidence.run(setting).data.k
    return evidence.sample(setting, evidence.probe(setting, "contributions")["covered"] / k)
