"""The GEMM engine: gradients by hand, two matrix products a step, no autograd graph.

    Z = X W^T + b,     G = (eta / n) (dl/df A^T) 1[Z >= 0],     W <- W - G^T X,   b <- b - G^T 1

The products run over preallocated buffers; everything else is element-wise on [R n M].
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from unmix.nets.base import Params
from unmix.train.losses import derivatives


class Gemm:
    """The same steps as `Reference`, to rounding."""

    def __init__(
        self, params: Params, x: Tensor, targets: Tensor, readout: Tensor, eta: float, slope: int
    ) -> None:
        self.x, self.targets, self.readout, self.eta, self.slope = x, targets, readout, eta, slope
        self.now = x.new_empty(x.shape[0], x.shape[1], params["w"].shape[1])
        self.previous: Params = {}
        self.restore(params)

    def z(self) -> Float[Tensor, "R n M"]:
        return self.now

    def advance(self, alive: Bool[Tensor, " R"]) -> None:
        on = self.now >= 0 if self.slope == 1 else self.now > 0
        pull = derivatives(self.now.relu() @ self.readout, self.targets) @ self.readout.T
        g = pull.mul_(on).mul_(self.eta / self.now.shape[1])
        # A stopped replica may hold infinities: select, do not multiply by zero.
        g = torch.where(alive.reshape(-1, 1, 1), g, torch.zeros_like(g)).transpose(1, 2)
        self.previous = self.current
        moved = {"w": torch.baddbmm(self.current["w"], g, self.x, alpha=-1)}
        if "b" in self.current:
            moved["b"] = self.current["b"] - g.sum(2)
        self.restore(moved)

    def undo(self, replicas: Bool[Tensor, " R"]) -> None:
        """Take the last step back for some replicas."""
        back = {
            name: torch.where(replicas.reshape(-1, *[1] * (p.ndim - 1)), self.previous[name], p)
            for name, p in self.current.items()
        }
        self.restore(back)

    def params(self) -> Params:
        return self.current

    def state(self) -> Params:
        """What must be saved to go on later, bit for bit."""
        return self.current

    def restore(self, state: Params) -> None:
        self.current = dict(state)
        torch.bmm(self.x, self.current["w"].transpose(1, 2), out=self.now)
        if "b" in self.current:
            self.now += self.current["b"].unsqueeze(1)
