"""Losses of the papers, of each point, with their derivatives in the outputs.

logistic        l = log(1 + exp(-y f)),        dl/df = -y / (1 + exp(y f))     (label included)
exponential     l = exp(-y f),                 dl/df = -y exp(-y f)                      (pReLU)
cross-entropy   l = -log p_c,                  dl/df_s = p_s - 1[s = c]
"""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

Loss = Literal["logistic", "exponential"]


def losses(
    outputs: Float[Tensor, "R n C"], targets: Tensor, loss: Loss = "logistic"
) -> Float[Tensor, "R n"]:
    """Loss of each point: the named one for one output, cross-entropy for more."""
    if outputs.shape[-1] == 1:
        margin = targets * outputs[..., 0]
        return torch.exp(-margin) if loss == "exponential" else functional.softplus(-margin)
    return functional.cross_entropy(outputs.transpose(1, 2), targets, reduction="none")


def derivatives(
    outputs: Float[Tensor, "R n C"], targets: Tensor, loss: Loss = "logistic"
) -> Float[Tensor, "R n C"]:
    """l'_i (or l'_{i,s}): derivative of each point's loss in the outputs."""
    if outputs.shape[-1] == 1:
        margin = targets * outputs[..., 0]
        slope = torch.exp(-margin) if loss == "exponential" else torch.sigmoid(-margin)
        return (-targets * slope).unsqueeze(-1)
    return outputs.softmax(-1) - functional.one_hot(targets, outputs.shape[-1]).to(outputs)


def margins(outputs: Float[Tensor, "R n C"], targets: Tensor) -> Float[Tensor, "R n"]:
    """q_i: y f for one output, the own class's output f_c(i) for more (as in Lemma C.10)."""
    if outputs.shape[-1] == 1:
        return targets * outputs[..., 0]
    return outputs.gather(-1, targets.unsqueeze(-1))[..., 0]
