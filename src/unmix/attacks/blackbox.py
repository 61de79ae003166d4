"""A search without gradients: where it beats those that have them, gradients are masked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import Field

from unmix.attacks.base import Attack, Found, scattered
from unmix.attacks.frame import Moves
from unmix.attacks.objectives import fooled, gap
from unmix.attacks.problem import Problem
from unmix.streams import stream

# Share of the coordinates that a proposal changes, at the start; it falls with the queries.
SHARE = 0.8


class Square(Attack):
    """Random blocks of coordinates are drawn anew on the sphere; what lowers the margin stays.

    In the spirit of Andriushchenko et al. (2020), for inputs that are no images: a block is any set
    of coordinates. Under l_inf it gets the corners +-radius; else normal numbers, and the whole is
    scaled back to the sphere.
    """

    kind: Literal["square"] = "square"
    queries: int = Field(200, ge=1)

    def search(self, problem: Problem, radii: Sequence[float]) -> Found:
        point, frame = problem.todo, problem.inputs
        best = torch.zeros_like(frame.z0[point])
        hit = torch.zeros(len(point), dtype=torch.bool)
        for index, radius in enumerate(r for r in radii if r > 0):
            live = (~hit).nonzero().squeeze(1)
            if not len(live):
                break
            best[live], hit[live] = self._walk(problem, point[live], radius, index)
        return scattered(problem, frame, Moves(point, best, best[:, 0]).take(hit))

    def _walk(
        self, problem: Problem, point: torch.Tensor, radius: float, index: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        frame, draws = problem.inputs, stream(problem.seed, f"attack.square.{index}")
        x, y = frame.z0[point], problem.y[point]
        eps = torch.full((len(x),), radius, dtype=x.dtype)
        delta = torch.from_numpy(draws.standard_normal(x.shape[1])).to(x).expand(len(x), -1)
        delta = self._onto(problem, x, delta, eps)
        scores = frame.scores_at(x + delta)
        value, hit = gap(scores, y), fooled(scores, y)
        for query in range(self.queries):
            share = SHARE * 0.5 ** (8 * query / self.queries)
            block = torch.from_numpy(draws.random(x.shape[1]) < max(share, 1 / x.shape[1]))
            fresh = torch.from_numpy(draws.standard_normal(x.shape[1])).to(x)
            size = delta.abs().mean(1, keepdim=True)
            trial = self._onto(problem, x, torch.where(block, size * fresh, delta), eps)
            scores = frame.scores_at(x + trial)
            new = gap(scores, y)
            better = (new < value) & ~hit
            delta = torch.where(better.unsqueeze(1), trial, delta)
            value, hit = torch.where(better, new, value), hit | (better & fooled(scores, y))
            if hit.all():
                break
        return delta, hit

    def _onto(
        self, problem: Problem, x: torch.Tensor, delta: torch.Tensor, eps: torch.Tensor
    ) -> torch.Tensor:
        """On the sphere, then in the box."""
        threat = problem.threat
        unit = delta.sign() if threat.norm == "linf" else delta
        length = threat.length(unit).clamp_min(torch.finfo(unit.dtype).tiny)
        return threat.clip(x, unit * (eps / length).unsqueeze(1))
