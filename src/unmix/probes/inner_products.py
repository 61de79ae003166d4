"""How well the coefficients stand for inner products and margins (Lemmas B.11 to B.14, B.26).

<w_r, mu_j> ~ lambda_{r,j}     <w_r, xi_i> ~ sigma_{r,i}     q_i ~ mean_r (lambda + sigma)
"""

from __future__ import annotations

import torch
from torch import Tensor

from unmix.data.clusters import Clusters
from unmix.experiment import Run
from unmix.probes.base import Measured, on
from unmix.probes.decomposition import decomposition
from unmix.probes.margins import margins


@on(Clusters)
def inner_products(run: Run) -> Measured:
    """Largest deviations over all neurons and training points, and the response to fresh noise."""
    parts = decomposition(run)
    w, mu = run.params["w"], run.data.alpha * run.centres
    xi = run.data.noise(run.train_batch, run.experiment.seeds)
    on_points = parts["lambda"].gather(2, _index(run, w.shape[1]))
    fresh = w @ run.data.noise(run.fresh(1000), run.experiment.seeds).transpose(1, 2)
    values = {
        "mu": _largest(w @ mu.transpose(1, 2) - parts["lambda"]),
        "xi": _largest(w @ xi.transpose(1, 2) - parts["sigma"]),
        "x": _largest(w @ run.train_batch.x.transpose(1, 2) - on_points - parts["sigma"]),
        "q": _largest(margins(run)["q"].unsqueeze(1) - approximate_margins(run).unsqueeze(1)),
        "fresh_sd": fresh.std((1, 2)),
        "fresh_max": _largest(fresh),
    }
    return Measured(values)


def approximate_margins(run: Run) -> Tensor:
    """q-hat_i = mean over the own neurons of lambda_{r,c(i)} + sigma_{r,i}."""
    parts = decomposition(run)
    both = parts["lambda"].gather(2, _index(run, run.params["w"].shape[1])) + parts["sigma"]
    own = parts["own_sigma"].to(both)
    return (both * own).sum(1) / own.sum(1)


def _index(run: Run, neurons: int) -> Tensor:
    return run.train_batch.cluster.unsqueeze(1).expand(-1, neurons, -1)


def _largest(gap: Tensor) -> Tensor:
    return torch.amax(gap.abs(), (1, 2))
