"""Robust accuracy: the union of attacks, closed forms beside it, and the published evaluation."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from unmix.claims import Sample
from unmix.experiment import Run
from unmix.papers.base import Evidence
from unmix.papers.prelu import predict

# The published evaluation: a step of 0.1 along g/(|g| + 1e-7), g of the loss averaged over 20 000
# test points; its 2000 steps end near where 100 do.
STEP, FLOOR, AVERAGED, STEPS = 0.1, 1e-7, 20_000, 100
BEYOND = 0.75


def critical(evidence: Evidence, setting: str) -> Sample:
    """Median radius of the strongest attack."""
    found = evidence.attacked(setting)
    note = "radii are the strongest attack's: upper bounds"
    return evidence.sample(setting, found.smallest.median(1).values, note)


def lead(evidence: Evidence, coarse: str, fine: str) -> Sample:
    """Mean lead of the second net's robust accuracy over the radii."""
    one, other = (evidence.attacked(s).robust_accuracy() for s in (fine, coarse))
    return evidence.sample(fine, (one - other).mean(1))


def flattered(evidence: Evidence, setting: str) -> Sample:
    """Robust accuracy at 0.75 by PGD from the clean point, less the union's."""
    found = evidence.attacked(setting)
    kept = (found.control["pgd-clean-start"] > BEYOND).double().mean(1)
    return evidence.sample(setting, kept - (found.smallest > BEYOND).double().mean(1))


def published_at(evidence: Evidence, setting: str) -> Sample:
    """Robust accuracy at 0.75 by the published evaluation, less the union's."""
    found, run = evidence.attacked(setting), evidence.run(setting)
    kept = published(run, (BEYOND,), found.smallest.shape[1])[:, 0]
    return evidence.sample(setting, kept - (found.smallest > BEYOND).double().mean(1))


def attack_over_exact(evidence: Evidence, setting: str) -> Sample:
    """Largest ratio of the suite's radius to F's exact one."""
    found, exact = evidence.attacked(setting), exact_radii(evidence, setting)
    return evidence.sample(setting, (found.smallest / exact).amax(1))


def attack_over_certificate(evidence: Evidence, setting: str) -> Sample:
    """Largest ratio of the suite's radius to the closed-form certificate of F^(p)."""
    found, certified = evidence.attacked(setting), exact_radii(evidence, setting)
    return evidence.sample(setting, (found.smallest / certified).amax(1))


def attack_under_certificate(evidence: Evidence, setting: str) -> Sample:
    """Number of points that an attack fools below the closed form."""
    found, certified = evidence.attacked(setting), exact_radii(evidence, setting)
    return evidence.sample(setting, (found.smallest < certified * (1 - 1e-9)).double().sum(1))


def first_power(evidence: Evidence, setting: str) -> Sample:
    """Mean radius of F^(1) on positive and on negative points, over 1/sqrt(1 + K_opposite)."""
    found, run = evidence.attacked(setting), evidence.run(setting)
    batch, data = run.fresh(found.smallest.shape[1]), run.data
    plus, minus = (predict.without_power(len(side)) for side in (data.minus, data.plus))
    law = torch.where(batch.y > 0, plus, minus).double()
    return evidence.sample(setting, (found.smallest / law).mean(1))


def exact_radii(evidence: Evidence, setting: str) -> Tensor:
    """Closed forms on the attacked points: exact for F, certified for F^(p) with p >= 2."""
    run, found = evidence.run(setting), evidence.attacked(setting)
    batch = run.fresh(found.smallest.shape[1])
    inside = batch.x.double() @ run.centres.double().transpose(1, 2)
    y, p = batch.y.double(), getattr(run.experiment.net, "p", None)
    if p is None:
        return predict.exact_radius(inside, y, run.data).clamp_min(0)
    return predict.certified_radius(inside, y, run.data, p).clamp_min(0)


def published(run: Run, radii: tuple[float, ...], points: int) -> Tensor:
    """Robust accuracy [R E] by the published evaluation: start 0, last iterate, no restart.

    x <- P(x + 0.1 g/(|g| + 1e-7)) with g the gradient of the mean exponential loss, so the answer
    depends on the scale of the outputs and on how many points the mean is over.
    """
    model, batch = run.model.double(), run.fresh(points)
    x, y, form = batch.x.double(), batch.y.double(), run.model.double().form
    rows = []
    for radius in radii:
        delta = torch.zeros_like(x)
        for _ in range(STEPS):
            z = form.preactivations(x + delta)
            slope = torch.exp(-y * form.decide(z)) / AVERAGED
            g = -(y * slope).unsqueeze(-1) * (form.slope(z) @ form.w)
            delta = delta + STEP * g / (g.norm(dim=-1, keepdim=True) + FLOOR)
            outside = delta.norm(dim=-1, keepdim=True) > radius
            delta = torch.where(outside, radius * normalize(delta, dim=-1), delta)
        rows.append((y * model.decision(x + delta) > 0).double().mean(1))
    return torch.stack(rows, 1)
