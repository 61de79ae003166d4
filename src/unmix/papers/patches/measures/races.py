"""The tensor-power race between A and B (Lemma B.2, q = 3), class by class.

While all filters are in the foot of the smoothed ReLU, x' = c x^2 for both, so

    1/A_0 - 1/A_T = S (1/B_0 - 1/B_T),   S = n_R alpha^3 / (n_NR beta^3),

and B wins iff B_0 > S A_0, with A_0, B_0 the largest of the m filters of the class.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from unmix.claims import Sample
from unmix.papers.base import Evidence
from unmix.papers.patches.measures.phases import paths

# B is looked at when it first reaches this share of rho / beta.
ARRIVED = 0.9
# Who has won is clear when a pre-activation has come half-way through the foot.
HALF = 0.5


def race_slope(run: Any) -> float:
    """S."""
    q = run.experiment.net.q
    return float(run.data.ratios(q, 1.0)["S_tau"])


def winner(evidence: Evidence, setting: str) -> Sample:
    """Share of classes whose winner B_0 > S A_0 foretells."""
    run = evidence.run(setting)
    a0, b0, _ = _paths(evidence, setting)
    foretold = b0 > race_slope(run) * a0
    times = [_reached(evidence, setting, name, HALF) for name in "AB"]
    won = _steps(run)[times[1]] <= _steps(run)[times[0]]
    return evidence.sample(setting, (won == foretold).double().mean(1))


def flipped(evidence: Evidence, setting: str) -> Sample:
    """Share of classes whose start lets the robust feature win: B_0 <= S A_0."""
    a0, b0, _ = _paths(evidence, setting)
    lost = b0 <= race_slope(evidence.run(setting)) * a0
    return evidence.sample(setting, lost.double().mean(1))


def growth(evidence: Evidence, setting: str) -> Sample:
    """(A_T/A_0) / log d when B reaches 0.9 rho/beta, for the classes with B_0 > S A_0."""
    run = evidence.run(setting)
    a0, _, (a, _) = _arrived(evidence, setting)
    held = _premise(evidence, setting)
    return evidence.sample(setting, (a / a0)[held] / math.log(run.data.d))


def foretold(evidence: Evidence, setting: str) -> Sample:
    """A_T by the closed form over the measured one, for the classes with B_0 > S A_0."""
    a0, b0, (a, b) = _arrived(evidence, setting)
    s = race_slope(evidence.run(setting))
    held = _premise(evidence, setting)
    closed = 1 / (1 / a0 - s * (1 / b0 - 1 / b))
    return evidence.sample(setting, (closed / a)[held])


def foretold_time(evidence: Evidence, setting: str) -> Sample:
    """T = (1/B_0 - 1/B_T) k rho^2 / (eta (1 - 1/k) n_NR beta^3) over the measured one."""
    run = evidence.run(setting)
    data, e = run.data, run.experiment
    _, b0, (_, b) = _arrived(evidence, setting)
    pace = e.train.eta / data.k * (1 - 1 / data.k) * (data.patches - data.robust)
    closed = (1 / b0 - 1 / b) * e.net.rho**2 / (pace * data.beta[0] ** 3)
    time = _steps(run)[_reached(evidence, setting, "B", ARRIVED)]
    return evidence.sample(setting, (closed / time)[_premise(evidence, setting)])


def _premise(evidence: Evidence, setting: str) -> Tensor:
    """[R k]: B_0 > S A_0."""
    a0, b0, _ = _paths(evidence, setting)
    return b0 > race_slope(evidence.run(setting)) * a0


def _paths(evidence: Evidence, setting: str) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """A_0, B_0 [R k] and the recorded A, B [R k T]."""
    a, b = paths(evidence.run(setting))
    return a[..., 0], b[..., 0], {"A": a, "B": b}


def _reached(evidence: Evidence, setting: str, name: str, share: float) -> Tensor:
    """[R k]: the first record at which A (B) is a share of rho/alpha (rho/beta); the last, if
    none."""
    run = evidence.run(setting)
    size = run.data.alpha[0] if name == "A" else run.data.beta[0]
    path = _paths(evidence, setting)[2][name]
    found = path >= share * run.experiment.net.rho / size
    return torch.where(found.any(-1), found.int().argmax(-1), path.shape[-1] - 1)


def _arrived(evidence: Evidence, setting: str) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor]]:
    """A_0, B_0 and (A, B) when B arrives."""
    a0, b0, recorded = _paths(evidence, setting)
    at = _reached(evidence, setting, "B", ARRIVED).unsqueeze(-1)
    a, b = (recorded[name].gather(-1, at)[..., 0] for name in "AB")
    return a0, b0, (a, b)


def _steps(run: Any) -> Tensor:
    return torch.tensor(run.trace.steps, dtype=torch.float64)
