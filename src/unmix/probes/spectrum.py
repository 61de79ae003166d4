"""Stable ranks |A|_F^2/|A|_2^2 of what a hidden layer makes of the points, and of its weights.

Features that collapse onto a few directions have a small one (pReLU, section 5.2, Figs 3c and 6c).
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from unmix.data.clusters import Clusters
from unmix.experiment import Run
from unmix.probes.base import Measured, on

POINTS = 500


@on(Clusters)
def spectrum(run: Run) -> Measured:
    """Of the hidden features v phi(z) and phi(z) on held-out points, and of W."""
    form = run.model.form
    hidden = form.activation.value(form.preactivations(run.fresh(POINTS).x))
    voted = hidden * form.readout.norm(dim=-1).unsqueeze(1)
    values = {
        "hidden": stable_rank(hidden),
        "contributed": stable_rank(voted),
        "weights": stable_rank(run.params["w"]),
    }
    return Measured(values)


def stable_rank(matrix: Float[Tensor, "R n m"]) -> Float[Tensor, " R"]:
    """|A|_F^2 over the largest eigenvalue of A^T A or A A^T, whichever is smaller."""
    a = matrix.double()
    gram = a.transpose(1, 2) @ a if a.shape[1] > a.shape[2] else a @ a.transpose(1, 2)
    largest = torch.linalg.eigvalsh(gram)[:, -1]
    return a.square().sum((1, 2)) / largest.clamp_min(1e-300)
