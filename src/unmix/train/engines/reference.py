"""The reference engine: plain autograd, one line a formula. Slow and obviously right."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from unmix.nets.base import Params, apply_relu
from unmix.train.losses import losses


class Reference:
    """Full-batch gradient descent on the first layer by automatic differentiation."""

    def __init__(
        self, params: Params, x: Tensor, targets: Tensor, readout: Tensor, eta: float, slope: int
    ) -> None:
        self.x, self.targets, self.readout, self.eta, self.slope = x, targets, readout, eta, slope
        self.previous: Params = {}
        self.restore(params)

    def z(self) -> Float[Tensor, "R n M"]:
        """Pre-activations of the training points."""
        return self.graph.detach()

    def advance(self, alive: Bool[Tensor, " R"]) -> None:
        """theta <- theta - eta grad L, for the replicas that are still alive."""
        outputs = apply_relu(self.graph, self.slope) @ self.readout
        loss = losses(outputs, self.targets).mean(1).sum()
        grads = torch.autograd.grad(loss, list(self.current.values()))
        steps = {name: self.eta * g for name, g in zip(self.current, grads, strict=True)}
        self.previous = self.params()
        self.restore(
            {n: torch.where(_rows(alive, p), p - steps[n], p) for n, p in self.previous.items()}
        )

    def undo(self, replicas: Bool[Tensor, " R"]) -> None:
        """Take the last step back for some replicas."""
        now = self.params()
        self.restore(
            {n: torch.where(_rows(replicas, p), self.previous[n], p) for n, p in now.items()}
        )

    def params(self) -> Params:
        return {name: p.detach() for name, p in self.current.items()}

    def state(self) -> Params:
        """What must be saved to go on later, bit for bit."""
        return self.params()

    def restore(self, state: Params) -> None:
        self.current = {name: p.detach().clone().requires_grad_() for name, p in state.items()}
        z = self.x @ self.current["w"].transpose(1, 2)
        self.graph = z + self.current["b"].unsqueeze(1) if "b" in self.current else z


def _rows(mask: Bool[Tensor, " R"], like: Tensor) -> Tensor:
    return mask.reshape(-1, *[1] * (like.ndim - 1))
