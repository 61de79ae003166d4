"""Lottery tickets at random initialisation, and who keeps them (purification, Lemma B.2, Thms C.1,
C.2).

    S_pot,j:   <w_i, M_j>^2 >= (c1 - c2) s^2 log d
    S_sure,j:  <w_i, M_j>^2 >= (c1 + c2) s^2 log d, all others < (c1 - c2) s^2 log d, right sign
    S_sure+,j: <w_i, M_j>^2 >= 4 k b^2, right sign

with s = sigma_0. The constants are those of a finite size, c1 = 2.2 and c2 = 0.25; the paper's
c1 = 2 + 2 (1 - gamma) c0 and c2 = gamma c0 for c0 -> 0 leave S_sure empty at every feasible d.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from unmix.data.sparse_code import SparseCode
from unmix.errors import DataError
from unmix.experiment import Run
from unmix.nets.mixture import mean_over
from unmix.probes.base import Measured, on
from unmix.probes.coded import Coded

C2 = 0.25


@on(SparseCode)
def tickets(run: Run) -> Measured:
    """Counts at the start beside what Gaussians give, and what became of the lucky neurons."""
    if run.experiment.net.initial != "gaussian":
        raise DataError("only a random start draws tickets", "--set net.initial=gaussian")
    coded, start = Coded.of(run), Coded.of(run, "start")
    net, d, count = run.experiment.net, coded.data.d, coded.data.count
    high, low = ((net.c1 + sign * C2) * math.log(d) for sign in (1, -1))
    size = net.scale(d)
    square = (start.u / size).square()
    potential = square >= low
    first = start.mixture
    right = first.right_sign
    sure = (square.amax(-1) >= high) & (potential.sum(-1) == 1) & right
    now, alive = coded.mixture, coded.alive()
    same = now.top == first.top
    strong = now.peak.square() >= 4 * coded.data.k * coded.params["b"].reshape(-1, 1).square()
    values = {
        "potential": potential.sum((1, 2)) / count,
        "potential_over_law": potential.sum((1, 2)) / count / (net.m * 2 * _tail(math.sqrt(low))),
        "sure": sure.sum(1) / count,
        "sure_over_law": sure.sum(1) / count / _expected_sure(net.m, count, high, low),
        "features_with_sure": _shares(first.top, sure, count),
        "sure_alive": mean_over(alive.to(coded.u), sure),
        "sure_keep": mean_over((same & now.right_sign).to(coded.u), sure),
        "kept": mean_over(same.to(coded.u), alive),
        "right_at_start": mean_over(right.to(coded.u), alive),
        "pot_at_start": mean_over(_at(potential, now.top).to(coded.u), alive),
        "sure_strong": mean_over((strong & now.right_sign & same).to(coded.u), sure),
        "alpha_over_b": _median(now.peak.abs(), alive & now.alone) / coded.params["b"],
    }
    return Measured({name: v.double() for name, v in values.items()}, {"sure_each": sure})


def _tail(x: float) -> float:
    """P(g > x) of a standard normal g."""
    return math.erfc(x / math.sqrt(2)) / 2


def _expected_sure(m: int, d: int, high: float, low: float) -> float:
    """E |S_sure,j| for independent Gaussians."""
    return m * _tail(math.sqrt(high)) * (1 - 2 * _tail(math.sqrt(low))) ** (d - 1)


def _shares(top: Tensor, chosen: Tensor, d: int) -> Tensor:
    """Share of the features that are the top of a chosen neuron."""
    met = [len(row[mask].unique()) / d for row, mask in zip(top, chosen, strict=True)]
    return torch.tensor(met, dtype=torch.float64)


def _at(table: Tensor, index: Tensor) -> Tensor:
    return table.gather(-1, index.unsqueeze(-1))[..., 0]


def _median(values: Tensor, chosen: Tensor) -> Tensor:
    none = values.new_full((), torch.nan)
    rows = zip(values, chosen, strict=True)
    return torch.stack([row[mask].median() if mask.any() else none for row, mask in rows])
