"""The Gram engine: exact gradient descent in coefficient space.

The weights stay in span(W0, X): W = W0 + C^T X and b = b0 + C^T 1, so the pre-activations are

    Z = Z0 + K C,   K = X X^T (+ 1 1^T if the net has biases),   C <- C - (eta / n) dL/dZ.

One step costs n^2 M instead of 2 n d M, and the data enter once. C is the paper's decomposition:
sigma_i = |xi_i|^2 C_i (Lemma 5.1).
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from unmix.nets.base import Params
from unmix.train.losses import derivatives


class Gram:
    """The same steps as `Reference`, to rounding."""

    def __init__(
        self, params: Params, x: Tensor, targets: Tensor, readout: Tensor, eta: float, slope: int
    ) -> None:
        self.start, self.x, self.targets, self.readout = params, x, targets, readout
        self.eta, self.slope = eta, slope
        self.gram = torch.bmm(x, x.transpose(1, 2))
        self.z0 = x @ params["w"].transpose(1, 2)
        if "b" in params:
            self.gram += 1
            self.z0 += params["b"].unsqueeze(1)
        self.previous = torch.zeros_like(self.z0)
        self.restore({"c": self.previous})

    def z(self) -> Float[Tensor, "R n M"]:
        return self.now

    def advance(self, alive: Bool[Tensor, " R"]) -> None:
        on = self.now >= 0 if self.slope == 1 else self.now > 0
        pull = derivatives(self.now.relu() @ self.readout, self.targets) @ self.readout.T
        step = (self.eta / self.now.shape[1]) * (pull * on)
        self.previous = self.c
        self.restore({"c": torch.where(alive.reshape(-1, 1, 1), self.c - step, self.c)})

    def undo(self, replicas: Bool[Tensor, " R"]) -> None:
        self.restore({"c": torch.where(replicas.reshape(-1, 1, 1), self.previous, self.c)})

    def params(self) -> Params:
        move = self.c.transpose(1, 2)
        params = {"w": self.start["w"] + move @ self.x}
        if "b" in self.start:
            params["b"] = self.start["b"] + move.sum(2)
        return params

    def state(self) -> Params:
        return {"c": self.c}

    def restore(self, state: Params) -> None:
        self.c = state["c"]
        self.now = torch.baddbmm(self.z0, self.gram, self.c)
