"""Ratios of the nonzeros that sparse reconstruction needs."""

from __future__ import annotations

from unmix.claims import Sample
from unmix.papers.base import Evidence


def clean_over_robust(evidence: Evidence, setting: str) -> Sample:
    """Inputs: with clean features over with robust ones."""
    return _ratio(evidence, setting, "inputs_clean", "inputs_robust")


def random_over_clean(evidence: Evidence, setting: str) -> Sample:
    """Inputs: with random features over with clean ones."""
    return _ratio(evidence, setting, "inputs_random", "inputs_clean")


def clean_delta_over_robust(evidence: Evidence, setting: str) -> Sample:
    """Perturbations in robust features: the clean net's over the robust net's."""
    return _ratio(evidence, setting, "delta_clean", "delta_robust")


def _ratio(evidence: Evidence, setting: str, one: str, other: str) -> Sample:
    found = evidence.probe(setting, "sparsity")
    return evidence.sample(setting, found[f"{one}_needs"] / found[f"{other}_needs"])
