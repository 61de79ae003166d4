"""Lasso for many points at once, over a path of its weight: accelerated proximal gradient.

min_y |W y - x|^2 + lambda |y|_1,    lambda from its largest useful value down, warm starts
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

WEIGHTS, ITERATIONS, LAST = 16, 120, 1e-3
# A coefficient below this share of the largest one counts as zero: the iteration is finite.
ZERO = 1e-3


@dataclass(frozen=True)
class Path:
    """Relative squared error, number of nonzeros and y of each point along the path."""

    error: Float[Tensor, "L n"]
    nonzeros: Float[Tensor, "L n"]
    y: Float[Tensor, "L n q"]

    def needed(self, level: float) -> Float[Tensor, " n"]:
        """Nonzeros where the error first falls to a level; the last ones if it never does."""
        met = self.error <= level
        first = torch.where(met.any(0), met.double().argmax(0), len(met) - 1)
        return self.nonzeros.gather(0, first.unsqueeze(0))[0]


def lasso_path(x: Float[Tensor, "n d"], columns: Float[Tensor, "q d"]) -> Path:
    """Reconstruct points with unit columns at every weight of the path."""
    gram, goal = columns @ columns.T, x @ columns.T
    step = 1 / float(torch.linalg.matrix_norm(gram, ord=2))
    top = goal.abs().amax(1, keepdim=True)
    y = torch.zeros_like(goal)
    errors, counts, rows = [], [], []
    for weight in torch.logspace(0, float(torch.tensor(LAST).log10()), WEIGHTS).tolist():
        y = _descend(y, gram, goal, step, weight * top)
        rows.append(y)
        errors.append((x - y @ columns).square().sum(1) / x.square().sum(1))
        counts.append((y.abs() > ZERO * y.abs().amax(1, keepdim=True)).double().sum(1))
    return Path(torch.stack(errors), torch.stack(counts), torch.stack(rows))


def _descend(y: Tensor, gram: Tensor, goal: Tensor, step: float, weight: Tensor) -> Tensor:
    """FISTA on |W y - x|^2/2 + (lambda/2) |y|_1, which has the same solution."""
    ahead, speed = y, 1.0
    for _ in range(ITERATIONS):
        moved = ahead - step * (ahead @ gram - goal)
        new = moved.sign() * (moved.abs() - step * weight).clamp_min(0)
        faster = (1 + (1 + 4 * speed * speed) ** 0.5) / 2
        ahead = new + (speed - 1) / faster * (new - y)
        y, speed = new, faster
    return y
