"""Distance of the weights to the solution the theorems promise (Thm 4.5.2, Lemma B.25; C.25).

    E = sqrt(d) |w_r - lambda sum_{j own} mu_j/|mu_j|^2| <= L1 + L2 + L3 + L4

    L1 initial weights   L2 spread of own lambda   L3 off-class lambda   L4 noise coefficients

lambda is the mean own coefficient of the replica. The o(1) of the theorems is in n, d -> infinity;
at fixed sizes E grows like log T, and E/lambda does not.
"""

from __future__ import annotations

import torch
from torch import Tensor

from unmix.data.clusters import Clusters
from unmix.experiment import Run
from unmix.probes.base import Measured, on
from unmix.probes.decomposition import decomposition, own_neurons


@on(Clusters)
def weight_error(run: Run) -> Measured:
    """E, E/lambda and the four pieces, as means over the neurons."""
    scale, mu = run.data.unit, run.centres
    own = own_neurons(run).T.to(mu)
    lam, noise = _fit(run, mu)
    mean = (lam * own).sum((1, 2)) / own.sum()
    level = mean.reshape(-1, 1, 1)
    error = run.params["w"] - level * (own @ mu) / scale**2
    pieces = {
        "L1": scale * run.initial["w"].norm(dim=-1),
        "L2": ((lam - level) * own).norm(dim=-1),
        "L3": (lam * (1 - own)).norm(dim=-1),
        "L4": scale * noise.norm(dim=-1),
    }
    values = {"lambda": mean, "error": scale * error.norm(dim=-1).mean(1)}
    values["relative"] = values["error"] / mean
    return Measured(values | {name: piece.mean(1) for name, piece in pieces.items()})


def _fit(run: Run, mu: Tensor) -> tuple[Tensor, Tensor]:
    """lambda [R M k] and the noise part [R M d] of w - w0, from the coefficients where recorded.

    Without them, lambda is read off as <w - w0, mu_j>, which differs by the noise's small overlap
    with the centres (Lemma B.11).
    """
    move = run.params["w"] - run.initial["w"]
    if "paper" in run.trace.final:
        lam = decomposition(run)["lambda"] / run.data.alpha
    else:
        lam = torch.einsum("rmd,rkd->rmk", move, mu)
    return lam, move - lam @ mu / run.data.unit**2
