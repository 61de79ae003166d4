"""What the traces of the trainings say."""

from __future__ import annotations

import torch

from unmix.claims import Sample
from unmix.papers.base import Evidence
from unmix.train.purification import Purification


def objective(evidence: Evidence, setting: str) -> Sample:
    """Loss plus lambda sum Reg at the end of clean training."""
    trace, last = evidence.run(setting).trace, _end(evidence, setting)
    columns = trace.columns
    return evidence.sample(setting, columns["loss"][:, last] + columns["penalty"][:, last])


def pull(evidence: Evidence, setting: str) -> Sample:
    """E l' at the end of clean training."""
    trace = evidence.run(setting).trace
    return evidence.sample(setting, trace.columns["pull"][:, _end(evidence, setting)])


def active(evidence: Evidence, setting: str) -> Sample:
    """Share of neurons that are on at a point, at the end of clean training."""
    trace = evidence.run(setting).trace
    return evidence.sample(setting, trace.columns["active"][:, _end(evidence, setting)])


def mixture_over_law(evidence: Evidence, setting: str) -> Sample:
    """nu at the end over kappa/d."""
    run = evidence.run(setting)
    return evidence.sample(setting, run.trace.columns["nu"][:, -1] / (run.data.kappa / run.data.d))


def mixture_peak(evidence: Evidence, setting: str) -> Sample:
    """The largest recorded nu over kappa/d."""
    run = evidence.run(setting)
    peak = run.trace.columns["nu"].amax(1)
    return evidence.sample(setting, peak / (run.data.kappa / run.data.d))


def mixture_regrown(evidence: Evidence, setting: str) -> Sample:
    """nu at the end less nu at the start, in kappa/d."""
    run = evidence.run(setting)
    nu = run.trace.columns["nu"]
    return evidence.sample(setting, (nu[:, -1] - nu[:, 0]) / (run.data.kappa / run.data.d))


def universal_lost(evidence: Evidence, setting: str) -> Sample:
    """Accuracy under -y M w* at the start less that at the end."""
    universal = evidence.run(setting).trace.columns["universal"]
    return evidence.sample(setting, universal[:, 0] - universal[:, -1])


def final_accuracy(evidence: Evidence, setting: str) -> Sample:
    """Accuracy at the end; a stop on the way is no failure of this measurement."""
    accuracy = evidence.run(setting).trace.columns["accuracy"][:, -1]
    return Sample([float(v) for v in accuracy])


def _end(evidence: Evidence, setting: str) -> int:
    """The recorded row nearest to the end of clean training."""
    run = evidence.run(setting)
    train = run.experiment.train
    end = train.clean.steps if isinstance(train, Purification) else train.length()
    return int((torch.tensor(run.trace.steps) - end).abs().argmin())
