"""Minimum-norm attack: the whole curve in one run, since every point brings its own radius.

At a perturbation delta on the boundary the margin is m ~ <g, delta' - delta>. The shortest delta'
on that plane (for l2 without a box -g <g, delta>/|g|^2; in a box by a short Newton iteration) is
approached by a share of the way, then the boundary is met again along the ray of the trial; the
trial counts if it is shorter, else the share is halved. Lengths only fall, and a fixed point is a
local minimum. For classes the same is done against rivals, too: those whose own linearised
boundary is not much further than the nearest.

Starts are crossings, not clean points: along every closed-form direction, random directions, and a
Newton iteration from the clean point. At a saddle (a centre of a relu^3 net) the gradient does not
show the way that the directions know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from unmix.attacks.base import Attack, Found, scattered
from unmix.attacks.bundle import Bundle
from unmix.attacks.frame import Frame, Moves, NeuronFrame
from unmix.attacks.objectives import fooled, margin, objective
from unmix.attacks.problem import Problem
from unmix.attacks.starts import Starts, crossing, first, grid, y_of

# Newton steps overshoot the linearised boundary by this share, twice as much after each failure.
OVERSHOOT, NEWTON = 0.02, 6
# A share of the way below this, or a gain below that, ends the search of a row.
SMALLEST_SHARE, GAIN = 1 / 40, 1e-6
# Restarts lie aside by these shares of the length, and meet the boundary at these of their own.
ASIDE = (0.3, 0.6, 1.0, 1.5)
NEAR = tuple(0.3 + 0.1 * i for i in range(16))
# Where every evaluation is a pass through a net, this many times fewer starts are pursued.
THRIFT = 4
# Where ties fool, the margin is flat beyond its edge; slopes are taken this much before it.
INSIDE = 1e-6
# Restarts end when a round of them gains no point this share of its length.
LUCK = 1e-4
# Evaluations that bring a trial back to the boundary: with a normal form, and without.
PROBES = (6, 3)


class MinimumNorm(Attack):
    """Crossings along known directions, shortened by linearised projections."""

    kind: Literal["min-norm"] = "min-norm"
    steps: int = Field(20, ge=1, description="projections of each start")
    starts: int = Field(12, ge=1, description="starts of each point that are pursued")
    draws: int = Field(24, ge=0, description="random directions among the candidates")
    rivals: int = Field(3, ge=0, description="classes attacked one by one, beside the best other")
    hops: int = Field(4, ge=0, description="restarts around the best, where a step costs little")
    polish: int = Field(15, ge=0, description="rounds with several linearisations at once")
    keep: float = Field(2.5, ge=1, description="starts up to this multiple of the best are pursued")

    def search(self, problem: Problem, radii: Sequence[float]) -> Found:
        frame = problem.frame
        best = self.candidates(problem, frame)
        if not len(best.point):
            return Found.none(problem)
        best = self.shortened(problem, frame, best)
        best = best.take(first(best.point, frame.length(best), 1))
        for hop in range(self.hops):
            if not isinstance(frame, NeuronFrame):
                break
            near = self._around(problem, frame, best, hop)
            both = Moves.joined([best, self.shortened(problem, frame, near)])
            before, best = best, both.take(first(both.point, frame.length(both), 1))
            if (frame.length(best) >= frame.length(before) * (1 - LUCK)).all():
                break
        if isinstance(frame, NeuronFrame):
            best = self._polished(problem, frame, best)
        return scattered(problem, frame, best)

    def candidates(self, problem: Problem, frame: Frame) -> Moves:
        """Crossings worth pursuing, several a point."""
        point = problem.todo
        every = [self._newton(problem, frame, point, rival) for rival in self._rivals(problem)]
        thrift = 1 if isinstance(frame, NeuronFrame) else THRIFT
        every.append(Starts.of(problem, frame, self.draws // thrift, "min-norm").crossings)
        found = Moves.joined(every)
        length = frame.length(found)
        shortest = torch.full_like(problem.x[:, 0], torch.inf, dtype=length.dtype)
        shortest = shortest.scatter_reduce(0, found.point, length, "amin")
        # A crossing on a grid may be one grid step too long.
        slack = problem.reach / grid(frame)
        found = found.take(length <= self.keep * shortest[found.point] + slack)
        count = max(1, self.starts // thrift)
        return found.take(first(found.point, frame.length(found), count))

    def shortened(self, problem: Problem, frame: Frame, best: Moves) -> Moves:
        """Projections until no row gains; rows stay on the side that is fooled."""
        length = frame.length(best)
        share = torch.ones_like(length)
        origin = margin(problem.clean, problem.y)[0].to(length)
        live = torch.arange(len(length))
        for step in range(self.steps):
            rows = best.take(live)
            at, value, slopes = _linearised(problem, frame, rows)
            trial = frame.closest(at, slopes, value, share[live])
            trial, new = _settled(problem, frame, trial, origin[rows.point], length[live])
            gain = 1 - new / length[live]
            better = gain > 0
            best = best.replaced(live[better], trial.take(better))
            length[live[better]] = new[better]
            share[live] = torch.where(better, (2 * share[live]).clamp_max(1), share[live] / 3)
            going = torch.where(better, gain > GAIN, share[live] > SMALLEST_SHARE)
            if step == self.steps // 4:
                going &= length[live] <= 1.2 * _per_point(best.point, length)[live]
            live = live[going]
            if not len(live):
                break
        return best

    def _polished(self, problem: Problem, frame: NeuronFrame, best: Moves) -> Moves:
        """The best of each point with several linearisations at once."""
        origin = margin(problem.clean, problem.y)[0].to(best.square)
        live, bundle = torch.arange(len(best.point)), Bundle.of(frame, len(best.point))
        for _ in range(self.polish):
            rows = best.take(live)
            at, value, slopes = _linearised(problem, frame, rows)
            bundle.add(at, slopes, value)
            wanted, length = bundle.closest(rows), frame.length(rows)
            trial, new = _settled(problem, frame, wanted, origin[rows.point], length)
            better = new < length
            best = best.replaced(live[better], trial.take(better))
            _, value, slopes = frame.pull(wanted, objective("margin", y_of(problem, wanted)))
            bundle.add(wanted, slopes, value)
            going = frame.length(wanted) < length * (1 - GAIN)
            live, bundle = live[going], bundle.take(going)
            if not len(live):
                break
        return best

    def _around(self, problem: Problem, frame: NeuronFrame, best: Moves, hop: int) -> Moves:
        """Crossings on rays near the best one of each point."""
        noise = problem.draw(f"min-norm.hop.{hop}", len(ASIDE), frame.width)[best.point]
        length, every = frame.length(best), []
        for i, aside in enumerate(ASIDE):
            moved = frame.plus(best, frame.random(best.point, noise[:, i]).times(aside * length))
            t = crossing(problem, frame, moved, NEAR)
            every.append(moved.take(t.isfinite()).times(t[t.isfinite()]))
        return Moves.joined(every)

    def _newton(self, problem: Problem, frame: Frame, point: Tensor, rival: Tensor | None) -> Moves:
        """From the clean point over the linearised boundary until it is crossed."""
        moves, live = frame.still(point), torch.arange(len(point))
        crossed = torch.zeros(len(point), dtype=torch.bool)
        for step in range(NEWTON):
            rows = moves.take(live)
            y = y_of(problem, rows)
            lowered = objective("margin", y, None if rival is None else rival[live])
            _, value, slopes = frame.pull(rows, lowered)
            rows = frame.closest(rows, slopes, value, 1.0)
            rows = rows.times(torch.full_like(rows.square, 1 + OVERSHOOT * 2**step))
            moves = moves.replaced(live, rows)
            hit = fooled(frame.scores(rows), y) & torch.isfinite(frame.length(rows))
            crossed[live[hit]] = True
            live = live[~hit]
            if not len(live):
                break
        return moves.take(crossed)

    def _rivals(self, problem: Problem) -> list[Tensor | None]:
        """None for the best other; then classes in the order of their scores."""
        classes, point = problem.clean.shape[1], problem.todo
        if classes == 2 or not self.rivals:
            return [None]
        others = problem.clean.scatter(1, problem.y.unsqueeze(1), -torch.inf)[point]
        order = others.argsort(1, descending=True)[:, : min(self.rivals, classes - 1)]
        return [None, *order.unbind(1)]


def _linearised(problem: Problem, frame: Frame, moves: Moves) -> tuple[Moves, Tensor, Tensor]:
    """Margins and slopes at fooled points; where the margin is flat there, just inside."""
    lowered = objective("margin", y_of(problem, moves))
    _, value, slopes = frame.pull(moves, lowered)
    flat = (value >= 0) | (slopes == 0).all(1)
    if flat.any():
        moves = moves.times(torch.where(flat, 1 - INSIDE, 1.0).to(value))
        _, value, slopes = frame.pull(moves, lowered)
    return moves, value, slopes


def _settled(
    problem: Problem, frame: Frame, trial: Moves, origin: Tensor, limit: Tensor
) -> tuple[Moves, Tensor]:
    """Each trial scaled to the boundary, and its length; infinity if that is not below a limit.

    Regula falsi on the margin (its Illinois form) between the clean point and the longest scale
    allowed, kept inside by a tenth, so that a flat piece costs no more than bisection.
    """
    y, length = y_of(problem, trial), frame.length(trial)
    high = limit * (1 - 1e-9) / length.clamp_min(torch.finfo(length.dtype).tiny)
    low, low_value = torch.zeros_like(high), origin
    scores = frame.scores(trial.times(high))
    hit, high_value = fooled(scores, y), margin(scores, y)[0]
    # Only rows that succeed at all are worth more probes.
    rows = hit.nonzero().squeeze(1)
    if not len(rows):
        return trial, torch.full_like(limit, torch.inf)
    some, y = trial.take(rows), y[rows]
    low, high, low_value, high_value = low[rows], high[rows], low_value[rows], high_value[rows]
    for probe in range(PROBES[0] if isinstance(frame, NeuronFrame) else PROBES[1]):
        width = high - low
        # Beyond an edge where ties fool the margin stays 0 and says nothing.
        secant = (low_value > 0) & (high_value < 0)
        t = low + width * torch.where(secant, low_value / (low_value - high_value), 0.5)
        t = torch.minimum(torch.maximum(t, low + 0.1 * width), high - 1e-4 * width)
        if probe == 0:
            # The linear model ends here.
            t = torch.where(high > 1 + 1e-6, torch.full_like(t, 1 + 1e-6), t)
        scores = frame.scores(some.times(t))
        wrong, value = fooled(scores, y), margin(scores, y)[0]
        low_value = torch.where(wrong, low_value / 2, value)
        high_value = torch.where(wrong, value, high_value / 2)
        low, high = torch.where(wrong, low, t), torch.where(wrong, t, high)
    scale = torch.zeros_like(limit).index_copy(0, rows, high)
    return trial.times(scale), torch.where(hit, scale * length, torch.inf)


def _per_point(point: Tensor, length: Tensor) -> Tensor:
    """The shortest length of each row's point."""
    shortest = torch.full((int(point.max()) + 1,), torch.inf, dtype=length.dtype)
    return shortest.scatter_reduce(0, point, length, "amin")[point]
