"""Perturbations that follow the gradient: one step (FGM) or several with projection."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from unmix.balls import nearest
from unmix.perturbations.base import Perturbation, Points, Scene, dense, descending

# 1/poly(d) of Def 4.2's example: a gradient shorter than this is left alone.
LEAST = 1e-6


class FGM(Perturbation):
    """Fast gradient method: the steepest step of length tau, 0 where the gradient is tiny."""

    kind: Literal["fgm"] = "fgm"
    least: float = Field(LEAST, ge=0, description="threshold of the zero rule on |grad|_q")

    def perturb(
        self, scene: Scene, x: Points, y: Float[Tensor, "R n"], tau: float
    ) -> Float[Tensor, "R n d"]:
        g = scene.to_input(scene.learner.input_gradient(x))
        return scene.to_code(tau * descending(g, y, self.norm, self.least))


class ProjectedSteps(Perturbation):
    """`steps` gradient steps of 2.5 tau / steps from 0, projected; FGM's zero rule at each."""

    kind: Literal["projected-steps"] = "projected-steps"
    steps: int = Field(7, ge=1)
    least: float = Field(LEAST, ge=0)

    def perturb(
        self, scene: Scene, x: Points, y: Float[Tensor, "R n"], tau: float
    ) -> Float[Tensor, "R n d"]:
        start = dense(x)
        delta = torch.zeros_like(start)
        for _ in range(self.steps):
            g = scene.to_input(scene.learner.input_gradient(start + scene.to_code(delta)))
            step = 2.5 * tau / self.steps * descending(g, y, self.norm, self.least)
            delta = nearest(delta + step, self.norm, tau)
        return scene.to_code(delta)
