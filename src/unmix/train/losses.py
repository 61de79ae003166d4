"""Losses of the papers with their derivatives in the outputs.

logistic        l = log(1 + exp(-y f)),        dl/df = -y / (1 + exp(y f))     (label included)
exponential     l = exp(-y f),                 dl/df = -y exp(-y f)
cross-entropy   l = -log p_c,                  dl/df_s = p_s - 1[s = c]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

BinaryLoss = Literal["logistic", "exponential"]
Reduction = Literal["mean", "sum"]


@dataclass(frozen=True)
class Loss:
    """A loss of one output (`binary`) or cross-entropy of more, averaged or summed over points."""

    binary: BinaryLoss = "logistic"
    reduction: Reduction = "mean"

    def values(self, outputs: Float[Tensor, "R n C"], targets: Tensor) -> Float[Tensor, "R n"]:
        """Loss of each point."""
        return losses(outputs, targets, self.binary)

    def slopes(self, outputs: Float[Tensor, "R n C"], targets: Tensor) -> Float[Tensor, "R n C"]:
        """l'_i (or l'_{i,s})."""
        return derivatives(outputs, targets, self.binary)

    def reduced(self, outputs: Float[Tensor, "R n C"], targets: Tensor) -> Float[Tensor, " R"]:
        """L, the objective of each replica."""
        values = self.values(outputs, targets)
        return values.mean(1) if self.reduction == "mean" else values.sum(1)

    def share(self, points: int) -> float:
        """Weight of one of so many points in L."""
        return 1 / points if self.reduction == "mean" else 1.0


def losses(
    outputs: Float[Tensor, "R n C"], targets: Tensor, binary: BinaryLoss = "logistic"
) -> Float[Tensor, "R n"]:
    """Loss of each point."""
    if outputs.shape[-1] > 1:
        return functional.cross_entropy(outputs.transpose(1, 2), targets, reduction="none")
    q = targets * outputs[..., 0]
    # Not softplus(-q), which torch cuts off at 20 with an error of 2e-9.
    return -functional.logsigmoid(q) if binary == "logistic" else torch.exp(-q)


def derivatives(
    outputs: Float[Tensor, "R n C"], targets: Tensor, binary: BinaryLoss = "logistic"
) -> Float[Tensor, "R n C"]:
    """l'_i (or l'_{i,s}): derivative of each point's loss in the outputs."""
    if outputs.shape[-1] > 1:
        return outputs.softmax(-1) - functional.one_hot(targets, outputs.shape[-1]).to(outputs)
    return (-targets * pull(targets * outputs[..., 0], binary)).unsqueeze(-1)


def pull(q: Float[Tensor, "*s"], binary: BinaryLoss) -> Float[Tensor, "*s"]:
    """-dl/dq of a binary loss at the margin q = y f."""
    return torch.sigmoid(-q) if binary == "logistic" else torch.exp(-q)


def margins(outputs: Float[Tensor, "R n C"], targets: Tensor) -> Float[Tensor, "R n"]:
    """q_i: y f for one output, the own class's output f_c(i) for more (as in Lemma C.10)."""
    if outputs.shape[-1] == 1:
        return targets * outputs[..., 0]
    return outputs.gather(-1, targets.unsqueeze(-1))[..., 0]
