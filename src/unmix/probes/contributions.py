"""What each neuron contributes, and what it is aligned with (pReLU, section 5.1, Fig 2).

    q_j = v_j |w_j|,     cos(w_j, mu_k),     cos(w_j, mean of the centres of label sign(q_j))

A neuron is dominant if |q_j| exceeds 1 % of the largest. A subclass is covered if a dominant neuron
of its label has cosine > 0.9 to it.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from unmix.data.clusters import Clusters
from unmix.errors import DataError
from unmix.experiment import Run
from unmix.nets.prelu import unit
from unmix.probes.base import Measured, on

DOMINANT = 0.01
ALIGNED = 0.9


@on(Clusters)
def contributions(run: Run) -> Measured:
    """Number of dominant neurons, subclasses covered, and cosines weighted by |q|."""
    form, data = run.model.form, run.data
    if form.signs is not None:
        raise DataError("a net with several outputs has no contribution v_j |w_j|", "use 'cosines'")
    q = form.readout[..., 0] * form.w.norm(dim=-1)
    u, mu = unit(form.w), normalize(run.centres, dim=-1)
    cosine = u @ mu.transpose(1, 2)
    sides = (data.plus, data.minus)
    means = torch.stack([normalize(run.centres[:, list(s)].sum(1), dim=-1) for s in sides], 1)
    to_means = u @ means.transpose(1, 2)
    own = q.sign().unsqueeze(-1) == data.signs.to(q)
    to_mean = torch.where(q > 0, to_means[..., 0], to_means[..., 1])
    to_subclass = cosine.masked_fill(~own, -1.0).amax(-1)
    dominant = q.abs() > DOMINANT * q.abs().amax(1, keepdim=True)
    met = (cosine > ALIGNED) & own & dominant.unsqueeze(-1)
    values = {
        "dominant": dominant.to(q).sum(1),
        "covered": met.any(1).to(q).sum(1),
        "to_mean": _weighted(to_mean, q),
        "to_subclass": _weighted(to_subclass, q),
        "to_subclass_min": to_subclass.masked_fill(~dominant, 1.0).amin(1),
        "total": q.abs().sum(1),
    }
    return Measured(values, {"q": q, "cosine": cosine, "mean_cosine": to_means})


def _weighted(values: Tensor, q: Tensor) -> Tensor:
    """Mean over the neurons with weights |q|."""
    return (values * q.abs()).sum(1) / q.abs().sum(1)
