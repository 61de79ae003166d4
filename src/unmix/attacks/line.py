"""Rays from clean points, and where they are fooled first; in float64, in the box.

A two-layer net without a box is a function of z0 + t dz along a ray, and a value there costs next
to nothing. Edges are met by regula falsi on the margin (its Illinois form): exact on a straight
piece, and where the margin says nothing, beyond an edge where ties fool, the bracket is halved.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from unmix.attacks.objectives import fooled, gap
from unmix.attacks.target import FormTarget

if TYPE_CHECKING:
    from unmix.attacks.problem import Problem

# Rays are searched on a grid; a classifier without a normal form costs a pass a value.
GRID, COARSE = 160, 24
# Values by which an edge is met, and the share of its length to which it is (more where a value is
# a pass).
PROBES, PASSES = 40, 15
NARROW, WIDER = 1e-10, 1e-7
# Share by which a success is moved off its edge: more than the rounding in which two ways to
# compute the same net differ, and far less than anybody quotes.
CLEAR = 1e-11
# A search ends near the edge: most that it found does not fool when it is shorter by this share.
NEAR = 1e-3
# Lengthenings that make good for a search in lower precision.
LONGER = (1 + 1e-8, 1 + 1e-5)


@dataclass(frozen=True)
class Line:
    """One ray a row: the points start + t slope, in inputs or (`cheap`) in pre-activations."""

    problem: Problem
    point: Int[Tensor, " p"]
    start: Float[Tensor, "p D"]
    slope: Float[Tensor, "p D"]
    cheap: bool

    @classmethod
    def of(cls, problem: Problem, delta: Float[Tensor, "p d"], point: Int[Tensor, " p"]) -> Line:
        """Along perturbations."""
        judge, delta = problem.judge, delta.double()
        if problem.linear and isinstance(judge, FormTarget):
            return cls.effects(problem, delta @ judge.w.T, point)
        return cls(problem, point, chosen(problem.x, point).double(), delta, False)

    @classmethod
    def effects(cls, problem: Problem, dz: Float[Tensor, "p M"], point: Int[Tensor, " p"]) -> Line:
        """Along perturbations with known effects on the pre-activations; there is no box."""
        return cls(problem, point, chosen(problem.preactivations, point), dz, True)

    def probe(
        self, rows: Int[Tensor, " q"], t: Float[Tensor, " q"]
    ) -> tuple[Bool[Tensor, " q"], Float[Tensor, " q"]]:
        """Which rows are fooled at lengths t, and the margins there."""
        problem, y = self.problem, self.problem.y[self.point[rows]]
        if not len(rows):
            # Not every module takes an empty batch.
            return torch.zeros(0, dtype=torch.bool), t
        start, moved = chosen(self.start, rows), t.unsqueeze(1) * chosen(self.slope, rows)
        if self.cheap:
            assert isinstance(problem.judge, FormTarget)
            scores = problem.judge.head.scores(moved.add_(start))
        else:
            scores = problem.judge.scores(start + problem.threat.clip(start, moved))
        return fooled(scores, y), gap(scores, y).double()

    def first(self) -> Float[Tensor, " p"]:
        """Smallest t <= reach found at which each ray is fooled; infinity where none is found."""
        reach, count = self.problem.reach, len(self.point)
        steps = GRID if isinstance(self.problem.judge, FormTarget) else COARSE
        low = self.start.new_zeros(count)
        high, live = torch.full_like(low, torch.inf), torch.arange(count)
        low_value, high_value = torch.full_like(low, torch.nan), torch.full_like(low, torch.nan)
        grid = torch.linspace(0, reach, steps, dtype=torch.float64)
        for before, t in pairwise(grid):
            hit, value = self.probe(live, t.expand(len(live)))
            done = live[hit]
            low[done], high[done], high_value[done] = before, t, value[hit]
            live = live[~hit]
            low_value[live] = value[~hit]
            if not len(live):
                break
        found = high.isfinite().nonzero().squeeze(1)
        ends = (column[found] for column in (low, low_value, high, high_value))
        high[found] = self._edge(found, *ends)
        return high

    def shortened(self) -> Float[Tensor, " p"]:
        """The share of each perturbation that still fools, up to 1 + 1e-5."""
        every = torch.arange(len(self.point))
        high = self.start.new_ones(len(every))
        hit, high_value = self.probe(every, high)
        for longer in LONGER:
            rows = (~hit).nonzero().squeeze(1)
            high[rows] = longer
            hit[rows], high_value[rows] = self.probe(rows, high[rows])
        rows = hit.nonzero().squeeze(1)
        low = (1 - NEAR) * high[rows]
        far, low_value = self.probe(rows, low)
        # The value at 0 is not asked for: without one the bracket is halved.
        low, low_value = low.masked_fill(far, 0.0), low_value.masked_fill(far, torch.nan)
        high[rows] = self._edge(rows, low, low_value, high[rows], high_value[rows])
        return high

    def _edge(
        self, rows: Tensor, low: Tensor, low_value: Tensor, high: Tensor, high_value: Tensor
    ) -> Float[Tensor, " q"]:
        """Between lengths that do not fool and lengths that do, a hair beyond the edge."""
        live, narrow = torch.arange(len(rows)), NARROW if self.cheap else WIDER
        for _ in range(PROBES if self.cheap else PASSES):
            a, b, above, below = (column[live] for column in (low, high, low_value, high_value))
            secant = (above > 0) & (below < 0)
            t = a + (b - a) * torch.where(secant, above / (above - below), 0.5)
            # Near an end the other side of the edge is looked for at once.
            t = torch.minimum(torch.maximum(t, a + narrow / 2 * b), b - narrow / 2 * b)
            hit, value = self.probe(rows[live], t)
            low[live], high[live] = torch.where(hit, a, t), torch.where(hit, t, b)
            low_value[live] = torch.where(hit, above / 2, value)
            high_value[live] = torch.where(hit, value, below / 2)
            live = live[high[live] - low[live] > narrow * high[live]]
            if not len(live):
                break
        return high * (1 + CLEAR)


def chosen(rows: Tensor, point: Int[Tensor, " p"]) -> Tensor:
    """Rows of points in increasing order; without a copy where none is left out between them."""
    if len(point) == len(rows):
        return rows
    ends = point[[0, -1]].tolist() if len(point) else (0, -1)
    return rows[ends[0] : ends[1] + 1] if ends[1] - ends[0] + 1 == len(point) else rows[point]
