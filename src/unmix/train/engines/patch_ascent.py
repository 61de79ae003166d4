"""Several ascent steps before each step of the weights (Remark 2.5).

    Delta_0 = 0,    Delta_{s+1} = clip(Delta_s + eta~ dir(grad L_margin(X + Delta_s))),    s < steps

with dir the gradient itself or its sign. One raw step is the paper's algorithm, which has its own,
faster engine.
"""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from unmix.nets.activations import SmoothedRelu
from unmix.nets.base import Params
from unmix.train.engines.patches import OneStep, PatchGemm, PatchReference
from unmix.train.engines.product import product


class Ascent(OneStep):
    """The attack of adversarial training: one step, or several towards the worst of the ball."""

    steps: int = Field(1, ge=1, description="ascent steps; 1 is the paper's algorithm")
    direction: Literal["raw", "sign"] = Field(
        "raw", description="step along the gradient, or along its sign"
    )

    def moved(
        self, delta: Float[Tensor, "*p d"], g: Float[Tensor, "*p d"], points: int, patches: int
    ) -> Float[Tensor, "*p d"]:
        """The next Delta, given the gradient of L_margin."""
        step = self.step * g.sign() if self.direction == "sign" else self.scale(points) * g
        return self.clipped(delta + step, patches)


class AscentReference(PatchReference):
    """Every gradient by autograd."""

    attack: Ascent

    def attacked(self) -> Float[Tensor, "R N P d"]:
        delta = torch.zeros_like(self.x)
        for _ in range(self.attack.steps):
            g = self.gradient(self.x + delta)
            delta = self.attack.moved(delta, g, *self.x.shape[1:3])
        return self.x + delta


class AscentGemm(PatchGemm):
    """Every gradient by hand; all filters are passed through, whatever the objective."""

    attack: Ascent

    def _attacked(self, g: slice) -> Float[Tensor, "g NP d"]:
        x, w, target = self.x[g], self.w[g], self.target[g]
        delta = torch.zeros_like(x)
        for _ in range(self.attack.steps):
            f, steep = self._forward(torch.add(x, delta, out=self.xt[: len(x)]), w)
            self.smooth.scale(self._by_output(steep), self._side(f, target))
            ascent = product(steep, w.flatten(1, 2), self.move[: len(x)]).mul_(self.unit)
            delta = self.attack.moved(delta, ascent, self.points, self.patches)
        return torch.add(x, delta, out=self.xt[: len(x)])

    def _side(
        self, f: Float[Tensor, "g N k"], target: Float[Tensor, "g N k"]
    ) -> Float[Tensor, "g N k"]:
        """d L_margin / d F."""
        if self.attack.objective == "Fy":
            return -target
        rival = f.masked_fill(target > 0, -torch.inf).argmax(-1)
        return functional.one_hot(rival, self.k).to(target) - target


def engine_for(
    name: Literal["gemm", "reference"],
    params: Params,
    x: Float[Tensor, "R N P d"],
    y: Int[Tensor, "R N"],
    activation: SmoothedRelu,
    eta: float,
    attack: Ascent | None,
) -> PatchReference | PatchGemm:
    """The engine of a training; the paper's single raw step has the faster one."""
    single = attack is None or (attack.steps == 1 and attack.direction == "raw")
    kind: type[PatchReference] | type[PatchGemm]
    if name == "gemm":
        kind = PatchGemm if single else AscentGemm
    else:
        kind = PatchReference if single else AscentReference
    return kind(params, x, y, activation, eta, attack)
