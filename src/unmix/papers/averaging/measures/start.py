"""What holds before the first step: initial slopes, Gaussian extremes (appendix A, C.4)."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from unmix.claims import Sample
from unmix.nets.base import Model
from unmix.papers.base import Evidence
from unmix.streams import stream
from unmix.train import losses


def slope_at_start(evidence: Evidence, setting: str) -> Sample:
    """Largest |y_i l'_i + 1/2| at t = 0 (A.14: at most 1/6)."""
    slopes = _first_slopes(evidence, setting)[..., 0] * evidence.run(setting).train_batch.y
    return evidence.sample(setting, (slopes + 0.5).abs().amax(1))


def class_slope_at_start(evidence: Evidence, setting: str) -> Sample:
    """k (l'_{i,s} + 1[s = c(i)]) at t = 0, farthest from 1 (C.4: within [1/2, 2])."""
    run = evidence.run(setting)
    own = one_hot(run.train_batch.cluster, run.data.k)
    shifted = run.data.k * (_first_slopes(evidence, setting) + own)
    low, high = shifted.amin((1, 2)), shifted.amax((1, 2))
    return evidence.sample(setting, torch.where(high - 1 > 1 - low, high, low))


def slope_range(evidence: Evidence, setting: str) -> Sample:
    """Largest violation of -1 <= y l' <= 0 over recorded margins (A.15)."""
    trace = evidence.run(setting).trace
    slope = -torch.sigmoid(-torch.stack([trace.columns["margin_min"], trace.columns["margin_max"]]))
    return evidence.sample(setting, (slope.clamp(-1, 0) - slope).abs().amax((0, 2)))


def gaussian_minimum(evidence: Evidence, setting: str) -> Sample:
    """Largest P(min of l normals <= -sqrt(2 ln l) - t) over its bound e^{-t^2/2}/2 (A.9)."""
    return _extremes(evidence, setting, minimum=True)


def gaussian_maximum(evidence: Evidence, setting: str) -> Sample:
    """Largest P(max <= sqrt(2 ln l - t)) over its bound (A.9).

    The bound is exp(-e^{t/2} / (sqrt(2 pi) (sqrt(2 ln l) + 1))).
    """
    return _extremes(evidence, setting, minimum=False)


def _first_slopes(evidence: Evidence, setting: str) -> Tensor:
    run = evidence.run(setting)
    start = Model(run.experiment.net, run.data, run.initial)
    targets = run.experiment.net.targets(run.data, run.train_batch)
    return losses.derivatives(start.outputs(run.train_batch.x), targets)


def _extremes(evidence: Evidence, setting: str, *, minimum: bool) -> Sample:
    """Monte Carlo over 20000 draws a replica, l in {10, 100}, t in {0.5, 1, 1.5}."""
    values = []
    for seed in evidence.run(setting).experiment.seeds:
        worst = 0.0
        for size in (10, 100):
            draws = stream(seed, f"claim.extremes.{size}").standard_normal((20_000, size))
            top = math.sqrt(2 * math.log(size))
            for t in (0.5, 1.0, 1.5):
                if minimum:
                    rate = (draws.min(1) <= -top - t).mean() / (math.exp(-(t**2) / 2) / 2)
                else:
                    bound = math.exp(-math.exp(t / 2) / (math.sqrt(2 * math.pi) * (top + 1)))
                    rate = (draws.max(1) <= math.sqrt(2 * math.log(size) - t)).mean() / bound
                worst = max(worst, float(rate))
        values.append(worst)
    return Sample(values)
