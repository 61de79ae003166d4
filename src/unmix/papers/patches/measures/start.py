"""The start: extremes of Gaussians (Lemmas B.1, D.3)."""

from __future__ import annotations

import math

import torch

from unmix.claims import Sample
from unmix.papers.base import Evidence

# t of Lemma B.1.
EXCESS = (0.1, 0.25, 0.5, 1.0)


def largest(evidence: Evidence, setting: str) -> Sample:
    """max_r <w_ir(0), f> over sigma_0 sqrt(2 log m), mean over classes and features."""
    run = evidence.run(setting)
    inner = run.initial["w"] @ run.data.axes().flatten(0, 1).T.to(run.initial["w"])
    net = run.experiment.net
    scale = net.sigma_0 * math.sqrt(2 * math.log(net.m))
    return evidence.sample(setting, inner.amax(2).mean((1, 2)) / scale)


def tail(evidence: Evidence, setting: str) -> Sample:
    """max over t of P(|g|_inf >= sqrt(2 log 2d) + t) - exp(-t^2/2)/2, over the filters."""
    run = evidence.run(setting)
    size = run.initial["w"].abs().amax(-1).flatten(1) / run.experiment.net.sigma_0
    root = math.sqrt(2 * math.log(2 * run.data.d))
    over = [(size >= root + t).double().mean(1) - 0.5 * math.exp(-(t**2) / 2) for t in EXCESS]
    return evidence.sample(setting, torch.stack(over).amax(0))
