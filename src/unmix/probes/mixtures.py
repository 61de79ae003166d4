"""How many features a neuron mixes: one number for every net and every kind of data.

A neuron's part in the span of the features is sum_j a_j mu_j/|mu_j|. Then

    features = (sum_j a_j^2)^2 / sum_j a_j^4     (participation ratio)

is 1 for a neuron that holds one feature and n for one that averages n of them with equal weights.
Means over the neurons are weighted by |w_r| sum_c |A_rc|, so that neurons without a say count for
nothing.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from unmix.errors import DataError
from unmix.experiment import Run
from unmix.nets.base import Model
from unmix.probes.base import Measured


def mixtures(run: Run) -> Measured:
    """Features a neuron, cosine with the closest one, and share of |w|^2 in the features' span."""
    w, weight = _neurons(run)
    mu = normalize(run.data.features(run.experiment.seeds, w.dtype).to(w.device), dim=-1)
    if mu.shape[1] > mu.shape[2]:
        came = f"{mu.shape[1]} features in {mu.shape[2]} dimensions"
        raise DataError(f"what a neuron holds of each feature is not unique; got {came}")
    products = w @ mu.transpose(1, 2)
    held = torch.linalg.solve(mu @ mu.transpose(1, 2), products.transpose(1, 2)).transpose(1, 2)
    closest = (normalize(w, dim=-1) @ mu.transpose(1, 2)).abs().amax(-1)
    inside = (held * products).sum(-1) / w.square().sum(-1)
    values = {
        "features": _weighted(participation(held), weight),
        "closest": _weighted(closest, weight),
        "in_span": _weighted(inside, weight),
    }
    return Measured(values, {"held": held})


def _neurons(run: Run) -> tuple[Float[Tensor, "R M d"], Float[Tensor, "R M"]]:
    """Weight vectors, and how much each says; nets without a normal form have equal outer
    weights, so that |w_r| is all."""
    if isinstance(run.classifier, Model):
        form = run.classifier.form
        return form.w, form.w.norm(dim=-1) * form.readout.abs().sum(-1)
    w = run.params["w"].flatten(1, -2)
    return w, w.norm(dim=-1)


def participation(held: Float[Tensor, "R M k"]) -> Float[Tensor, "R M"]:
    """(sum a^2)^2 / sum a^4, whatever the scale of a; NaN for a neuron that holds nothing."""
    scaled = held / held.abs().amax(-1, keepdim=True)
    return scaled.square().sum(-1).square() / scaled.pow(4).sum(-1)


def _weighted(values: Float[Tensor, "R M"], weight: Float[Tensor, "R M"]) -> Float[Tensor, " R"]:
    """Mean over the neurons that have a weight."""
    has = weight > 0
    return (values * weight).where(has, 0).sum(1) / weight.sum(1)
