"""What an attacker may do: perturbations delta with |delta|_p <= radius that stay in a box.

All geometry of attacks is here: that of balls, boxes, and the closest point of a linearised
boundary in both. Tensors are [P d], one row a perturbation.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from pydantic import model_validator
from torch import Tensor

from unmix.balls import Norm, dual, length, nearest, steepest, tiny
from unmix.errors import AttackError
from unmix.spec import Spec

Rows = Float[Tensor, "P d"]
Column = Float[Tensor, " P"]

# Steps of l1 descent move this share of the coordinates: one at a time hardly gets anywhere.
SPARSE = 0.05
# A sum of clipped coordinates is concave and piecewise linear; Newton from below ends soon.
NEWTON = 12


class Threat(Spec):
    """A norm, and the interval in which every coordinate of an input must stay (None: R)."""

    norm: Norm = "l2"
    box: tuple[float, float] | None = None

    @model_validator(mode="after")
    def _possible(self) -> Threat:
        if self.box is not None and not -math.inf < self.box[0] < self.box[1] < math.inf:
            raise ValueError(f"box: expected finite low < high, got {list(self.box)}")
        return self

    def check(self, x: Tensor) -> None:
        """Points outside their own box would be moved into it by the first clip, unnoticed."""
        if not x.numel():
            return
        # NaN is handed on to both ends.
        least, most = (float(end) for end in x.aminmax())
        if not (math.isfinite(least) and math.isfinite(most)):
            raise AttackError("the points hold NaN or infinite values")
        if self.box is None:
            return
        low, high = self.box
        if not (low <= least and most <= high):
            came = f"[{least:.4g}, {most:.4g}]"
            hint = "name the box the data live in, or box=None for inputs in R^d"
            raise AttackError(f"the points span {came}, outside the box [{low:g}, {high:g}]", hint)

    def length(self, delta: Float[Tensor, "*p d"]) -> Float[Tensor, "*p"]:
        """|delta|_p."""
        return length(delta, self.norm)

    def dual(self, g: Float[Tensor, "*p d"]) -> Float[Tensor, "*p"]:
        """|g|_q, 1/p + 1/q = 1: how fast g . delta grows a unit length of delta."""
        return dual(g, self.norm)

    def steepest(self, g: Rows) -> Rows:
        """The unit step along which g . delta grows fastest; 0 where g = 0."""
        return steepest(g, self.norm)

    def step(self, g: Rows) -> Rows:
        """A unit step for descent: the steepest, but in l1 along several large coordinates."""
        if self.norm != "l1":
            return self.steepest(g)
        several = max(1, round(SPARSE * g.shape[-1]))
        best = g.abs().topk(several, dim=-1).indices
        return torch.zeros_like(g).scatter(-1, best, g.gather(-1, best).sign() / several)

    def clip(self, x: Rows, delta: Rows) -> Rows:
        """Into the box. It shortens every coordinate, so no norm grows."""
        if self.box is None:
            return delta
        return torch.minimum(torch.maximum(delta, self.box[0] - x), self.box[1] - x)

    def project(self, x: Rows, delta: Rows, radius: Column) -> Rows:
        """Into ball and box (ball first: in the corners this is inside, not always nearest)."""
        return self.clip(x, nearest(delta, self.norm, radius))

    def closest(self, x: Rows, g: Rows, gap: Column) -> Rows:
        """The shortest delta in the box with -g . delta = gap, or the furthest if there is none."""
        size, gap = g.abs(), gap.clamp_min(0).unsqueeze(-1)
        if self.box is None:
            return -self._open(g, size, gap)
        room = torch.where(g > 0, x - self.box[0], self.box[1] - x).clamp_min(0)
        if self.norm == "l1":
            return -g.sign() * _greedy(size, room, gap)
        rate = size if self.norm == "l2" else (size > 0).to(size)
        multiplier = gap / (size * rate).sum(-1, keepdim=True).clamp_min(tiny(g))
        for _ in range(NEWTON):
            free = multiplier * rate < room
            slope = (size * rate * free).sum(-1, keepdim=True)
            missing = gap - (size * torch.minimum(multiplier * rate, room)).sum(-1, keepdim=True)
            more = torch.where(slope > 0, missing / slope.clamp_min(tiny(g)), 0.0).clamp_min(0)
            multiplier = multiplier + more
            if not (missing > 1e-6 * gap).any():
                break
        return -g.sign() * torch.minimum(multiplier * rate, room)

    def _open(self, g: Rows, size: Rows, gap: Float[Tensor, "P 1"]) -> Rows:
        steepest = self.steepest(g)
        return steepest * (gap / (size * steepest.abs()).sum(-1, keepdim=True).clamp_min(tiny(g)))


def _greedy(size: Rows, room: Rows, gap: Float[Tensor, "P 1"]) -> Rows:
    """Fill the coordinates with the largest slope first, each up to its room."""
    order = size.argsort(-1, descending=True)
    ordered, space = size.gather(-1, order), room.gather(-1, order)
    gains = ordered * space
    missing = (gap - (gains.cumsum(-1) - gains)).clamp_min(0)
    filled = torch.minimum(space, missing / ordered.clamp_min(tiny(size)))
    return torch.zeros_like(size).scatter(-1, order, torch.where(ordered > 0, filled, 0.0))
