"""The geometry of balls |delta|_p <= radius for p = 2, infinity and 1.

Everything acts on the last axis. The dual of p is q with 1/p + 1/q = 1.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

Norm = Literal["l2", "linf", "l1"]

_ORDER: dict[str, float] = {"l2": 2, "linf": math.inf, "l1": 1}
_DUAL: dict[str, float] = {"l2": 2, "linf": 1, "l1": math.inf}


def length(delta: Float[Tensor, "*p d"], norm: Norm) -> Float[Tensor, "*p"]:
    """|delta|_p."""
    return torch.linalg.vector_norm(delta, ord=_ORDER[norm], dim=-1)


def dual(g: Float[Tensor, "*p d"], norm: Norm) -> Float[Tensor, "*p"]:
    """|g|_q: how fast g . delta grows a unit length of delta."""
    return torch.linalg.vector_norm(g, ord=_DUAL[norm], dim=-1)


def steepest(g: Float[Tensor, "*p d"], norm: Norm) -> Float[Tensor, "*p d"]:
    """The unit step along which g . delta grows fastest; 0 where g = 0."""
    if norm == "l2":
        return g / length(g, norm).unsqueeze(-1).clamp_min(tiny(g))
    if norm == "linf":
        return g.sign()
    best = g.abs().argmax(-1, keepdim=True)
    return torch.zeros_like(g).scatter(-1, best, g.gather(-1, best).sign())


def nearest(
    delta: Float[Tensor, "*p d"], norm: Norm, radius: Float[Tensor, "*p"] | float
) -> Float[Tensor, "*p d"]:
    """The Euclidean projection onto the ball."""
    ball = torch.as_tensor(radius, dtype=delta.dtype, device=delta.device).unsqueeze(-1)
    if norm == "linf":
        return torch.clamp(delta, -ball, ball)
    if norm == "l1":
        return _soft(delta, ball)
    size = length(delta, norm).unsqueeze(-1).clamp_min(tiny(delta))
    return delta * (ball / size).clamp_max(1.0)


def tiny(like: Tensor) -> float:
    """The smallest number that nothing is divided below."""
    return torch.finfo(like.dtype).tiny


def _soft(delta: Float[Tensor, "*p d"], radius: Tensor) -> Float[Tensor, "*p d"]:
    """Soft thresholding by the amount that leaves the radius."""
    size = delta.abs()
    ordered = size.sort(-1, descending=True).values
    count = torch.arange(1, size.shape[-1] + 1, dtype=size.dtype, device=size.device)
    excess = (ordered.cumsum(-1) - radius) / count
    last = (ordered > excess).to(size).sum(-1, keepdim=True).clamp_min(1).long() - 1
    soft = delta.sign() * (size - excess.gather(-1, last)).clamp_min(0)
    return torch.where(size.sum(-1, keepdim=True) <= radius, delta, soft)
