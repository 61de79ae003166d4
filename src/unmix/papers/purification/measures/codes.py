"""Statements about the data alone: sparsity, and the simple rules of section 3."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from unmix.claims import Sample
from unmix.data.sparse_code import SparseCode
from unmix.papers.base import Evidence
from unmix.papers.purification.measures.robust import linear_radii, oracle_radii

DRAWN = 4000


def nonzeros_over_kappa(evidence: Evidence, setting: str) -> Sample:
    """Mean number of nonzero entries of z over kappa = p1 + p2 k."""
    run = evidence.run(setting)
    z, _ = run.data.codes(run.experiment.seeds, 5 * DRAWN, "test")
    counts = z.offsets.diff().double().reshape(run.replicas, -1)
    return evidence.sample(setting, counts.mean(1) / run.data.kappa)


def linear_radius(evidence: Evidence, setting: str) -> Sample:
    """Median exact radius of the linear rule."""
    return evidence.sample(setting, linear_radii(evidence.run(setting), DRAWN).median(1).values)


def oracle_radius_root_kappa(evidence: Evidence, setting: str) -> Sample:
    """Median radius of the pure rule (exact below 1/(2 sqrt k)) times sqrt(kappa)."""
    run = evidence.run(setting)
    radius = oracle_radii(run, DRAWN).median(1).values
    return evidence.sample(setting, radius * math.sqrt(run.data.kappa))


def thresholded_over_linear(evidence: Evidence, setting: str) -> Sample:
    """Clean accuracy of the thresholded rule less the linear rule's, at sigma_x = 1."""
    noisy, pair = _noisy(evidence, setting)
    return evidence.sample(setting, pair[0] - pair[1], f"sigma_x = {noisy.sigma_x:g}")


def thresholded_error(evidence: Evidence, setting: str) -> Sample:
    """Clean error of the thresholded rule at sigma_x = 1."""
    return evidence.sample(setting, 1 - _noisy(evidence, setting)[1][0])


def linear_error(evidence: Evidence, setting: str) -> Sample:
    """Clean error of the linear rule at sigma_x = 1."""
    return evidence.sample(setting, 1 - _noisy(evidence, setting)[1][1])


def _noisy(evidence: Evidence, setting: str) -> tuple[SparseCode, tuple[Tensor, Tensor]]:
    """The setting's data with noise as long as the signal, and the accuracies of both rules."""
    run = evidence.run(setting)
    noisy: SparseCode = run.data.override("sigma_x=1.0", "basis=identity")
    seeds = run.experiment.seeds
    batch, w = noisy.sample(seeds, DRAWN, "test"), noisy.label_vector(seeds).unsqueeze(1)
    kept = batch.x * (batch.x.abs() >= 0.5 / math.sqrt(noisy.k))
    scores = ((kept * w).sum(-1), (batch.x * w).sum(-1))
    right = [(batch.y * torch.where(s >= 0, 1.0, -1.0) > 0).double().mean(1) for s in scores]
    return noisy, (right[0], right[1])
