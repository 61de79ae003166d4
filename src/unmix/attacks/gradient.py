"""Gradient attacks at given radii: one step (FGM), many (PGD), many of adapted size (APGD).

A start at the clean point misleads on these nets: the neurons that vote against the label are off
there and give no gradient, so the attack only switches the own neurons off and lands in the flat
zone f = 0, which counts as correct for y = -1. So PGD starts at the closed forms and at random
points, too. On two-layer nets in l2 all of it happens in the span of the neurons, where random
points see both sides (in R^d their component in the span is sqrt(r/d) of their length).

The default loss is the margin: no factor on the scores changes anything. Cross-entropy is there to
be compared with, since it vanishes in floating point once the scores are large.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from unmix.attacks.base import Attack, Found, scattered
from unmix.attacks.frame import Frame, Moves
from unmix.attacks.objectives import Loss, Objective, fooled, objective
from unmix.attacks.problem import Problem
from unmix.attacks.starts import Starts, shortest, y_of

# Numbers in the perturbations that are moved at a time.
ROOM = 2**16


class FGM(Attack):
    """delta = -radius times the steepest unit step of the margin; 0 where |grad|_q < zero.

    The zero rule is the purification paper's; it flatters nets whose gradient has collapsed, so
    the suite never relies on this attack alone.
    """

    kind: Literal["fgm"] = "fgm"
    zero: float = Field(0.0, ge=0, description="eps_0 of the zero rule, in units of the scores")

    def search(self, problem: Problem, radii: Sequence[float]) -> Found:
        frame, point = problem.inputs, problem.todo
        _, _, slopes = frame.pull(frame.still(point), objective("margin", problem.y[point]))
        step = -problem.threat.steepest(slopes)
        step = step * (problem.threat.dual(slopes) >= self.zero).unsqueeze(1)
        found = torch.full((len(point),), torch.inf, dtype=step.dtype)
        for radius in (r for r in radii if r > 0):
            delta = problem.threat.clip(problem.x[point].to(step), radius * step)
            wrong = fooled(frame.scores(Moves(point, delta, found)), problem.y[point])
            found = torch.where(found.isinf() & wrong, radius, found)
        hit = found.isfinite()
        return scattered(problem, frame, Moves(point, step, found).times(found).take(hit))


class Descent(Attack):
    """What PGD and APGD share: radii in turn, starts of each, survivors only."""

    steps: int = Field(40, ge=1)
    restarts: int = Field(
        4, ge=0, description="starts beside the clean point: closed forms and random directions"
    )
    loss: Loss = Field("margin", description="margin, ce (cross-entropy) or dlr")
    start: Literal["every", "clean"] = Field(
        "every", description="clean point, closed forms and random points, or the first alone"
    )

    @property
    def name(self) -> str:
        kind = self.kind if self.loss == "margin" else f"{self.kind}-{self.loss}"
        return kind if self.start == "every" else f"{kind}-clean-start"

    def search(self, problem: Problem, radii: Sequence[float]) -> Found:
        frame = problem.frame
        starts = self._starts(problem, frame)
        best, found = frame.still(problem.todo), torch.zeros(len(problem.x), dtype=torch.bool)
        row = torch.cumsum(problem.right, 0) - 1
        grid = [r for r in radii if r > 0]
        # Small problems take several radii at a time: there calls cost more than numbers.
        together = max(1, ROOM // max(starts.dz.numel(), 1))
        for first in range(0, len(grid), together):
            live, eps = self._live(problem, starts, grid[first : first + together], found)
            if not len(eps):
                continue
            moves, reached = live.times(eps), []
            for turn in self.turns(problem):
                hit, where = self.descend(problem, frame, moves, eps, turn)
                reached.append(where.take(hit))
            done = shortest(problem, frame, Moves.joined(reached))
            best = best.replaced(row[done.point], done)
            found[done.point] = True
        done = best.take(found[best.point])
        return scattered(problem, frame, done)

    def turns(self, problem: Problem) -> range:
        """Descents from each start; that of turn t > 0 aims at label (y + t) mod C."""
        return range(1)

    def lowered(self, problem: Problem, moves: Moves, turn: int) -> Objective:
        """What the descent of a turn lowers."""
        y = y_of(problem, moves)
        return objective(self.loss, y, (y + turn) % problem.clean.shape[1] if turn else None)

    def _live(
        self, problem: Problem, starts: Moves, radii: Sequence[float], found: Tensor
    ) -> tuple[Moves, Tensor]:
        """Starts at each radius, of points that are not yet fooled and may be fooled there."""
        parts = [starts.take((~found & (problem.safe <= r))[starts.point]) for r in radii]
        sizes = [torch.full_like(p.square, r) for p, r in zip(parts, radii, strict=True)]
        return Moves.joined(parts), torch.cat(sizes)

    def _starts(self, problem: Problem, frame: Frame) -> Moves:
        """The clean point; the closed forms and random directions that fool first; random ones."""
        still = frame.still(problem.todo)
        if self.start == "clean":
            return still
        units = Starts.of(problem, frame, 2 * self.restarts, f"{self.kind}.{self.loss}")
        return Moves.joined([still, units.best(self.restarts)])

    @abstractmethod
    def descend(
        self, problem: Problem, frame: Frame, moves: Moves, eps: Tensor, turn: int
    ) -> tuple[Tensor, Moves]:
        """Which rows were fooled within their radius, and where."""


class PGD(Descent):
    """Normalised projected steps of 2.5 radius / steps."""

    kind: Literal["pgd"] = "pgd"

    def descend(
        self, problem: Problem, frame: Frame, moves: Moves, eps: Tensor, turn: int
    ) -> tuple[Tensor, Moves]:
        hit = torch.zeros(len(eps), dtype=torch.bool)
        where, live = moves, torch.arange(len(eps))
        for step in range(self.steps + 1):
            scores, _, slopes = frame.pull(moves, self.lowered(problem, moves, turn))
            new = fooled(scores, y_of(problem, moves))
            if new.any():
                where = where.replaced(live[new], moves.take(new))
                hit[live[new]] = True
                moves, live, slopes = moves.take(~new), live[~new], slopes[~new]
            if step == self.steps or not len(live):
                break
            radius = eps[live]
            moves = frame.step(moves, slopes, (2.5 / self.steps) * radius, radius)
        return hit, where


class TargetedPGD(PGD):
    """PGD towards each other label in turn: lowers s_y - s_r for one r at a time.

    The best rival at a point may be one that is never reached, while another is.
    """

    kind: Literal["pgd-targeted"] = "pgd-targeted"  # type: ignore[assignment]
    loss: Literal["margin"] = "margin"

    def turns(self, problem: Problem) -> range:
        return range(1, problem.clean.shape[1])


class APGD(Descent):
    """Momentum, and a step that is halved where progress ends (Croce & Hein 2020).

    x_{k+1} = P(x_k + .75 (P(x_k - eta g) - x_k) + .25 (x_k - x_{k-1})); at checkpoints eta halves,
    and the search goes back to the best point, if fewer than 75 % of the steps since the last one
    made progress, or neither eta nor the best value has changed.
    """

    kind: Literal["apgd"] = "apgd"
    restarts: int = Field(2, ge=0, description="starts beside the clean point")

    def descend(
        self, problem: Problem, frame: Frame, moves: Moves, eps: Tensor, turn: int
    ) -> tuple[Tensor, Moves]:
        y, checkpoints = y_of(problem, moves), _checkpoints(self.steps)
        lowered = self.lowered(problem, moves, turn)
        scores, value, slopes = frame.pull(moves, lowered)
        hit, where = fooled(scores, y), moves
        before, best, low, best_slopes = moves, moves, value, slopes
        size, progress, since = 2 * eps, torch.zeros_like(eps), 0
        kept_size, kept_low = size, low
        for k in range(self.steps):
            moved = frame.step(moves, slopes, size, eps)
            if k:
                moved = frame.momentum(moves, moved, before, eps)
            before, last, moves = moves, value, moved
            scores, value, slopes = frame.pull(moves, lowered)
            new = fooled(scores, y) & ~hit
            where, hit = where.where(new, moves), hit | new
            better = value < low
            best, low = best.where(better, moves), torch.where(better, value, low)
            best_slopes = torch.where(better.unsqueeze(1), slopes, best_slopes)
            progress, since = progress + (value < last), since + 1
            if hit.all():
                break
            if k + 1 in checkpoints:
                stuck = (progress < 0.75 * since) | ((size == kept_size) & (low == kept_low))
                kept_size, kept_low = size, low
                size = torch.where(stuck, size / 2, size)
                moves, value = moves.where(stuck, best), torch.where(stuck, low, value)
                slopes = torch.where(stuck.unsqueeze(1), best_slopes, slopes)
                progress, since = torch.zeros_like(progress), 0
        return hit, where


def _checkpoints(steps: int) -> set[int]:
    """At shares .22, then gaps that shrink by .03 down to .06."""
    share, gap, found = 0.22, 0.22, set()
    while share < 1:
        found.add(round(share * steps))
        gap = max(gap - 0.03, 0.06)
        share += gap
    return found
