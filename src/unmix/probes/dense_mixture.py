"""What neurons are made of: features, dense mixtures, and who follows w* (purification, Thm 5.1a,
5.2, Lemma E.2).

    R0  = sum_i <w_i, w_i^0>^2 / sum_i |w_i|^2 |w_i^0|^2
    Rij = sum_ij <w_i, w_j>^2 / (sum |w_i|^2)^2

Means are over living neurons (on at 0.5 % of the points); `winners` have |N_i| = 1 and live. The
dense mixture's size nu is given as it is and over kappa/D.
"""

from __future__ import annotations

import torch
from torch import Tensor

from unmix.data.sparse_code import SparseCode
from unmix.experiment import Run
from unmix.nets.mixture import cosine, mean_over
from unmix.probes.base import Measured, on
from unmix.probes.coded import Coded

# A feature is covered if a living neuron of at least this purity has it on top.
COVERS = 0.5


@on(SparseCode)
def dense_mixture(run: Run) -> Measured:
    """Global feature learning, decomposition into pure and dense parts, alignment with w*."""
    coded, start = Coded.of(run), Coded.of(run, "start")
    parts, alive = coded.mixture, coded.alive()
    winners = alive & parts.alone
    count, kappa = coded.data.count, coded.data.kappa
    along = (coded.u @ coded.label_vector.unsqueeze(-1))[..., 0]
    values = {
        "alive": alive.double().sum(1) / count,
        "winners": winners.double().sum(1) / count,
        "covered": _covered(parts.top, alive & (parts.purity > COVERS), count),
        "features": mean_over(parts.large.sum(-1).to(coded.u), alive),
        "purity": mean_over(parts.purity, alive),
        "nu": mean_over(parts.nu, winners),
        "nu_over_law": mean_over(parts.nu, winners) / (kappa / count),
        "dense": mean_over(parts.dense, alive),
        "longest": parts.length.amax(1),
        "residue": mean_over(parts.residue, alive),
        "right_sign": mean_over(parts.right_sign.to(coded.u), alive),
        "alpha": mean_over(parts.peak.abs(), winners),
        "beta_over_law": parts.beta.mean((1, 2)) / (coded.data.k / count),
        "beta_max_over_law": parts.beta.abs().amax((1, 2)) / (coded.data.k / count),
        "along": (along * alive).sum(1) / (kappa * count),
        "along_min": along.amin(1),
        "theta_start": mean_over(cosine(coded.w, start.w), alive),
        "theta_others": _others(coded.w, alive),
        "R0": _self_overlap(coded.w, start.w),
        "Rij": _overlap(coded.w),
    }
    arrays = {"purity_each": parts.purity, "dense_each": parts.dense, "alive_each": alive}
    return Measured({name: v.double() for name, v in values.items()}, arrays)


def _covered(top: Tensor, good: Tensor, d: int) -> Tensor:
    """Share of the features that are some good neuron's top."""
    met = [len(row[mask].unique()) / d for row, mask in zip(top, good, strict=True)]
    return torch.tensor(met, dtype=torch.float64)


def _self_overlap(u: Tensor, start: Tensor) -> Tensor:
    both = (u * start).sum(-1).square().sum(1)
    return both / (u.square().sum(-1) * start.square().sum(-1)).sum(1)


def _overlap(u: Tensor) -> Tensor:
    """sum_ij <w_i, w_j>^2 is the squared size of U^T U."""
    gram = u.transpose(1, 2) @ u
    return gram.square().sum((1, 2)) / u.square().sum((1, 2)).square()


def _others(u: Tensor, alive: Tensor) -> Tensor:
    """Mean theta(w_i, w_j) over pairs of different living neurons."""
    means = []
    for rows, mask in zip(u, alive, strict=True):
        unit = torch.nn.functional.normalize(rows[mask], dim=-1)
        count = max(len(unit), 2)
        total = (unit @ unit.T).abs().sum() - len(unit)
        means.append(total.double() / (count * (count - 1)))
    return torch.stack(means)
