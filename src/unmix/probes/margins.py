"""Margins of the training points and the balance of their loss derivatives (Lemmas 5.3, B.6, B.7).

q_i = y_i f(x_i) (binary) or f_c(i)(x_i) (k-class),   |l'_i| = 1/(1 + e^{q_i}) or 1 - p_c(i)
"""

from __future__ import annotations

import torch
from torch import Tensor

from unmix.data.clusters import Clusters
from unmix.experiment import Run
from unmix.probes.base import Measured, on
from unmix.train import losses


@on(Clusters)
def margins(run: Run) -> Measured:
    """Margin gap, derivative ratio, and how many pairs obey e^{D/2} <= l'_j/l'_i <= e^D (B.6)."""
    batch, model = run.train_batch, run.model
    outputs = model.outputs(batch.x)
    targets = model.net.targets(run.data, batch)
    q = losses.margins(outputs, targets)
    slopes = losses.derivatives(outputs, targets)
    own = (
        slopes[..., 0].abs()
        if outputs.shape[-1] == 1
        else slopes.gather(-1, targets[..., None])[..., 0].abs()
    )
    values = {
        "mean": q.mean(1),
        "gap": q.amax(1) - q.amin(1),
        "min": q.amin(1),
        "ratio": own.amax(1) / own.amin(1),
        "loss": losses.losses(outputs, targets).mean(1),
    }
    if outputs.shape[-1] == 1:
        values["pairs_in_bounds"] = _pairs_in_bounds(q, own)
    return Measured(values, {"q": q, "slope": own})


def _pairs_in_bounds(q: Tensor, slope: Tensor) -> Tensor:
    """Share of pairs q_i >= q_j with (q_i - q_j)/2 <= log l'_j - log l'_i <= q_i - q_j."""
    gap = q.unsqueeze(2) - q.unsqueeze(1)
    log = slope.log()
    ratio = log.unsqueeze(1) - log.unsqueeze(2)
    slack = 1e-9 if q.dtype == torch.float64 else 1e-4
    good = (ratio >= gap / 2 - slack) & (ratio <= gap + slack)
    return (good | (gap < 0)).double().mean((1, 2))
