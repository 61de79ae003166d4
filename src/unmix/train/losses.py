"""Losses of the paper, averaged over the points, with their derivatives in the outputs.

logistic        l = log(1 + exp(-y f)),        dl/df = -y / (1 + exp(y f))     (label included)
cross-entropy   l = -log p_c,                  dl/df_s = p_s - 1[s = c]
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional


def losses(outputs: Float[Tensor, "R n C"], targets: Tensor) -> Float[Tensor, "R n"]:
    """Loss of each point: logistic for one output, cross-entropy for more."""
    if outputs.shape[-1] == 1:
        return functional.softplus(-targets * outputs[..., 0])
    return functional.cross_entropy(outputs.transpose(1, 2), targets, reduction="none")


def derivatives(outputs: Float[Tensor, "R n C"], targets: Tensor) -> Float[Tensor, "R n C"]:
    """l'_i (or l'_{i,s}): derivative of each point's loss in the outputs."""
    if outputs.shape[-1] == 1:
        return (-targets * torch.sigmoid(-targets * outputs[..., 0])).unsqueeze(-1)
    return outputs.softmax(-1) - functional.one_hot(targets, outputs.shape[-1]).to(outputs)


def margins(outputs: Float[Tensor, "R n C"], targets: Tensor) -> Float[Tensor, "R n"]:
    """q_i: y f for one output, the own class's output f_c(i) for more (as in Lemma C.10)."""
    if outputs.shape[-1] == 1:
        return targets * outputs[..., 0]
    return outputs.gather(-1, targets.unsqueeze(-1))[..., 0]
