"""Learners of low complexity beside the net: one value a replica."""

from __future__ import annotations

from torch import Tensor

from unmix.claims import Sample
from unmix.nets.contrast import ContrastModel
from unmix.papers.base import Evidence
from unmix.papers.purification.settings import TAU_INF


def robust_error(evidence: Evidence, setting: str) -> Sample:
    """Share of points that the union of attacks fools at the l_inf radius of the training."""
    return evidence.sample(setting, 1 - _held(evidence, setting))


def lead(evidence: Evidence, net: str, clean: str, robust: str) -> Sample:
    """Robust accuracy of the purified net less the better of a learner's two trainings."""
    best = _held(evidence, clean).maximum(_held(evidence, robust))
    return evidence.sample(net, _held(evidence, net) - best)


def clean_accuracy(evidence: Evidence, setting: str) -> Sample:
    """On 2000 held-out points."""
    run = evidence.run(setting)
    return evidence.sample(setting, run.classifier.accuracy(run.fresh(2000)))


def evenness(evidence: Evidence, setting: str) -> Sample:
    """Largest |p(x) - p(-x)| over the largest |p(x)|."""
    run = evidence.run(setting)
    model, x = run.classifier.double(), run.fresh(500).x.double()
    assert isinstance(model, ContrastModel)
    p, mirrored = model.decision(x), model.decision(-x)
    return evidence.sample(setting, (p - mirrored).abs().amax(1) / p.abs().amax(1))


def _held(evidence: Evidence, setting: str) -> Tensor:
    """Robust accuracy."""
    return (evidence.attacked(setting).smallest > TAU_INF).double().mean(1)
