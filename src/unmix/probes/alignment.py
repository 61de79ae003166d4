"""Cosines between centres and neurons (Fig 2), and between neurons of one side.

"On" pairs are (centre, neuron) of the same label for a binary net, of the same class for a k-class
net; "off" pairs are all others. A class's equivalent weight is the mean of its h neurons.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import normalize

from unmix.data.clusters import Clusters
from unmix.experiment import Run
from unmix.nets.base import Model
from unmix.probes.base import Measured, masked_mean, on


@on(Clusters)
def cosines(run: Run) -> Measured:
    """cos(mu_i, w_j) as a matrix [R k columns], with its on and off statistics."""
    matrix = normalize(run.centres, dim=-1) @ normalize(equivalent(run.model), dim=-1).transpose(
        1, 2
    )
    on = on_pairs(run.model)
    values = {
        "on": masked_mean(matrix, on),
        "on_sd": matrix[:, on].std(1),
        "on_min": matrix[:, on].amin(1),
        "off": masked_mean(matrix, ~on),
        "off_sd": matrix[:, ~on].std(1),
        "off_max": matrix[:, ~on].amax(1),
        "pair_plus": _pairs(run.model),
    }
    return Measured(values, {"matrix": matrix})


def equivalent(model: Model) -> Float[Tensor, "R columns d"]:
    """Each neuron of a binary net; each class's mean neuron of a k-class net."""
    if model.class_signs is None:
        return model.w
    share = (model.readout / model.readout.sum(0)).T
    return share @ model.w


def on_pairs(model: Model) -> Bool[Tensor, "k columns"]:
    """Which (centre, column) pairs stand for the same label or class."""
    classes = model.net.classes(model.data)
    if classes is None:
        return model.data.signs[:, None] == model.neuron_signs.double()
    return classes[:, None] == torch.arange(int(classes.max()) + 1)


def _pairs(model: Model) -> Float[Tensor, " R"]:
    """Mean cosine between two different neurons of the positive side (nan for fewer than two)."""
    w = normalize(model.w[:, model.neuron_signs > 0], dim=-1)
    count = w.shape[1]
    total = (w @ w.transpose(1, 2)).sum((1, 2)) - count
    return total / (count * (count - 1)) if count > 1 else torch.full_like(total, torch.nan)
