"""Attacks that match the representation of a target point (patches paper, section 6).

    delta = argmin_{|delta|_inf <= eps} |G(x + delta) - G(x')|_2,   x' a point of the target class

With G of a standardly trained net this is NRF-PGD, with G of an adversarially trained one RF-PGD;
either is then judged on any victim. Sign steps, or normalised ones in l2, from the point itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from unmix.attacks.threat import Threat
from unmix.errors import AttackError

Encoder = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class RepresentationPGD:
    """`steps` steps of `size` times the radius (default 2.5 / steps), the best one is kept."""

    threat: Threat
    radius: float
    steps: int = 50
    size: float | None = None

    def __post_init__(self) -> None:
        if self.steps < 1 or not 0 <= self.radius < float("inf"):
            came = f"steps={self.steps}, radius={self.radius}"
            raise AttackError(f"expected at least one step and a finite radius >= 0, got {came}")

    def __call__(self, encoder: Encoder, x: Tensor, target: Tensor) -> Float[Tensor, "n *shape"]:
        """Perturbed inputs; the encoder's mode and gradients are left alone."""
        if x.shape != target.shape:
            came = f"{tuple(x.shape)} and {tuple(target.shape)}"
            raise AttackError(f"expected a target for each point, got {came}")
        self.threat.check(x)
        wanted = encoder(target).detach().flatten(1)
        start = x.detach().flatten(1)
        delta, best = torch.zeros_like(start), torch.zeros_like(start)
        lowest = torch.full_like(start[:, 0], torch.inf)
        radius = torch.full_like(lowest, self.radius)
        size = self.radius * (2.5 / self.steps if self.size is None else self.size)
        for step in range(self.steps + 1):
            distance, gradient = self._distance(encoder, x, delta, wanted)
            better = distance < lowest
            best = torch.where(better.unsqueeze(1), delta, best)
            lowest = torch.where(better, distance, lowest)
            if step < self.steps:
                moved = delta - size * self.threat.step(gradient)
                delta = self.threat.project(start, moved, radius)
        return (start + best).reshape(x.shape)

    def _distance(
        self, encoder: Encoder, x: Tensor, delta: Tensor, wanted: Tensor
    ) -> tuple[Tensor, Tensor]:
        """|G(x + delta) - G(x')| and its gradient."""
        leaf = (x.detach().flatten(1) + delta).requires_grad_()
        with torch.enable_grad():
            distance = (encoder(leaf.reshape(x.shape)).flatten(1) - wanted).norm(dim=1)
            if not distance.requires_grad:
                raise AttackError("the encoder is not differentiable in its input")
            (gradient,) = torch.autograd.grad(distance.sum(), leaf)
        return distance.detach(), gradient.nan_to_num(0, 0, 0)


def distances(encoder: Encoder, x: Tensor, target: Tensor) -> Float[Tensor, " n"]:
    """|G(x) - G(x')|, over which an attack's success is quoted."""
    with torch.no_grad():
        return (encoder(x).flatten(1) - encoder(target).flatten(1)).norm(dim=1)
