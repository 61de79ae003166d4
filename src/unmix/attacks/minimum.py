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
from unmix.attacks.line import Line
from unmix.attacks.objectives import fooled, gap, objective
from unmix.attacks.problem import Problem
from unmix.attacks.starts import Rays, Starts, crossing, first, y_of

# Newton steps overshoot the linearised boundary by this share, twice as much after each failure.
OVERSHOOT, NEWTON = 0.02, 6
# A rival is worth a look if it would be near with this many times the steepest slope seen.
STEEPER = 2
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
# Where every evaluation is a pass, no more than this many bring a trial back to the boundary.
PASSES = 3
# Crossings by Newton steps that are no longer than the shortest by this factor, and their handicap.
SURE, FIRST = 1.2, 1e-3
# Shares by which what was found in lower precision is lengthened until it fools in float64.
LONGER = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 1e2, 1e4)


class MinimumNorm(Attack):
    """Crossings along known directions, shortened by linearised projections."""

    kind: Literal["min-norm"] = "min-norm"
    steps: int = Field(20, ge=1, description="projections of each start")
    starts: int = Field(12, ge=1, description="starts of each point that are pursued")
    draws: int = Field(24, ge=0, description="random directions among the candidates")
    rays: Rays = Field(
        "every", description="closed forms, own neurons and draws, or one way all neurons pull"
    )
    rivals: int = Field(9, ge=1, description="classes whose boundaries are gone for one by one")
    hops: int = Field(4, ge=0, description="restarts around the best, where a step costs little")
    polish: int = Field(15, ge=0, description="rounds with several linearisations at once")
    probes: int = Field(6, ge=1, description="values by which a trial is brought to the boundary")
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
        return scattered(problem, frame, self._sure(problem, frame, best))

    def candidates(self, problem: Problem, frame: Frame) -> Moves:
        """Crossings worth pursuing, several a point."""
        straight = self._newton(problem, frame)
        length = frame.length(straight)
        near = torch.full_like(problem.x[:, 0], problem.reach / self.keep, dtype=length.dtype)
        near.scatter_reduce_(0, straight.point, length, "amin")
        thrift = 1 if isinstance(frame, NeuronFrame) else THRIFT
        limit = self.keep * near
        aimed = Starts.of(problem, frame, self.draws // thrift, "min-norm", self.rays, limit)
        found = Moves.joined([straight, aimed.crossings])
        # The nearest of the straight ones go first, whatever the rays have found.
        rank = frame.length(found)
        rank[: len(length)] *= torch.where(length <= SURE * near[straight.point], FIRST, 1.0)
        count = max(1, self.starts // thrift)
        return found.take(first(found.point, rank, count))

    def shortened(self, problem: Problem, frame: Frame, best: Moves) -> Moves:
        """Projections until no row gains; rows stay on the side that is fooled."""
        length = frame.length(best)
        share = torch.ones_like(length)
        origin = gap(problem.clean, problem.y).to(length)
        live = torch.arange(len(length))
        for step in range(self.steps):
            rows = best.take(live)
            at, value, slopes = _linearised(problem, frame, rows)
            trial = frame.closest(at, slopes, value, share[live])
            trial, new = self._settled(problem, frame, trial, origin[rows.point], length[live])
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
        origin = gap(problem.clean, problem.y).to(best.square)
        live, bundle = torch.arange(len(best.point)), Bundle.of(frame, len(best.point))
        for _ in range(self.polish):
            rows = best.take(live)
            at, value, slopes = _linearised(problem, frame, rows)
            bundle.add(at, slopes, value)
            wanted, length = bundle.closest(rows), frame.length(rows)
            trial, new = self._settled(problem, frame, wanted, origin[rows.point], length)
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

    def _newton(self, problem: Problem, frame: Frame) -> Moves:
        """From the clean points over linearised boundaries until they are crossed."""
        moves, rival = self._linear(problem, frame)
        live, crossed = torch.arange(len(rival)), torch.zeros_like(rival, dtype=torch.bool)
        for step in range(NEWTON):
            if step:
                rows = moves.take(live)
                lowered = objective("margin", y_of(problem, rows), rival[live])
                _, value, slopes = frame.pull(rows, lowered)
                moves = moves.replaced(live, frame.closest(rows, slopes, value, 1.0))
            rows = moves.take(live)
            rows = rows.times(torch.full_like(rows.square, 1 + OVERSHOOT * 2**step))
            moves = moves.replaced(live, rows)
            hit = fooled(frame.scores(rows), y_of(problem, rows))
            hit &= torch.isfinite(frame.length(rows))
            crossed[live[hit]] = True
            live = live[~hit]
            if not len(live):
                break
        return moves.take(crossed)

    def _linear(self, problem: Problem, frame: Frame) -> tuple[Moves, Tensor]:
        """Onto the boundaries with single rivals, as the clean points see them, and the rivals.

        Those much further than the nearest are left out, and not looked at where the margin alone
        says so.
        """
        point, parts, aims = problem.todo, [], []
        near = torch.full_like(point, torch.inf, dtype=frame.z0.dtype)
        steepest = torch.zeros_like(near)
        for rival in self._rivals(problem):
            lead = gap(problem.clean[point], problem.y[point], rival).to(near)
            rows = (~(lead > STEEPER * self.keep * near * steepest)).nonzero().squeeze(1)
            if not len(rows):
                continue
            still = frame.still(point[rows])
            lowered = objective("margin", problem.y[point[rows]], rival[rows])
            # The margin as float64 has it: next to the boundary lower precision is at a loss.
            parts.append(frame.closest(still, frame.pull(still, lowered)[2], lead[rows], 1.0))
            aims.append(rival[rows])
            length = frame.length(parts[-1])
            near[rows] = torch.minimum(near[rows], length)
            steepest[rows] = torch.maximum(steepest[rows], lead[rows] / length)
        moves, aim = Moves.joined(parts), torch.cat(aims)
        # `point` is in order, so its rows are found again.
        rows = torch.searchsorted(point, moves.point)
        some = frame.length(moves) <= self.keep * near[rows]
        return moves.take(some), aim[some]

    def _sure(self, problem: Problem, frame: Frame, best: Moves) -> Moves:
        """Beyond the edge that float64 sees."""
        if frame.z0.dtype == torch.float64:
            return best
        inside = isinstance(frame, NeuronFrame)
        line = (Line.effects if inside else Line.of)(problem, best.dz.double(), best.point)
        scale, late = torch.ones_like(best.square), torch.arange(len(best.point))
        for longer in (0.0, *LONGER):
            scale[late] = 1 + longer
            hit, _ = line.probe(late, scale[late].double())
            late = late[~hit]
            if not len(late):
                break
        return best.times(scale)

    def _rivals(self, problem: Problem) -> list[Tensor]:
        """Classes in the order of their scores at the clean points."""
        scores, point = problem.clean, problem.todo
        others = scores.scatter(1, problem.y.unsqueeze(1), -torch.inf)[point]
        count = min(max(self.rivals, 1), scores.shape[1] - 1)
        return list(others.topk(count, dim=1).indices.unbind(1))

    def _settled(
        self, problem: Problem, frame: Frame, trial: Moves, origin: Tensor, limit: Tensor
    ) -> tuple[Moves, Tensor]:
        """Each trial scaled to the boundary, and its length; infinity if that is not below a limit.

        Regula falsi on the margin (its Illinois form) between the clean point and the longest scale
        allowed, kept inside by a tenth, so that a flat piece costs no more than bisection.
        """
        y, length = y_of(problem, trial), frame.length(trial)
        high = limit * (1 - 1e-9) / length.clamp_min(torch.finfo(length.dtype).tiny)
        low, low_value = torch.zeros_like(high), origin
        scores = frame.scores(trial.times(high))
        hit, high_value = fooled(scores, y), gap(scores, y)
        # Only rows that succeed at all are worth more probes.
        rows = hit.nonzero().squeeze(1)
        if not len(rows):
            return trial, torch.full_like(limit, torch.inf)
        some, y = trial.take(rows), y[rows]
        low, high, low_value, high_value = low[rows], high[rows], low_value[rows], high_value[rows]
        count = self.probes if isinstance(frame, NeuronFrame) else min(self.probes, PASSES)
        for probe in range(count):
            width = high - low
            # Beyond an edge where ties fool the margin stays 0 and says nothing.
            secant = (low_value > 0) & (high_value < 0)
            t = low + width * torch.where(secant, low_value / (low_value - high_value), 0.5)
            t = torch.minimum(torch.maximum(t, low + 0.1 * width), high - 1e-4 * width)
            if probe == 0:
                # The linear model ends here.
                t = torch.where(high > 1 + 1e-6, torch.full_like(t, 1 + 1e-6), t)
            scores = frame.scores(some.times(t))
            wrong, value = fooled(scores, y), gap(scores, y)
            low_value = torch.where(wrong, low_value / 2, value)
            high_value = torch.where(wrong, value, high_value / 2)
            low, high = torch.where(wrong, low, t), torch.where(wrong, t, high)
        scale = torch.zeros_like(limit).index_copy(0, rows, high)
        return trial.times(scale), torch.where(hit, scale * length, torch.inf)


def _linearised(problem: Problem, frame: Frame, moves: Moves) -> tuple[Moves, Tensor, Tensor]:
    """Margins and slopes at fooled points; where the margin is flat there, just inside."""
    lowered = objective("margin", y_of(problem, moves))
    _, value, slopes = frame.pull(moves, lowered)
    flat = (value >= 0) | (slopes == 0).all(1)
    if flat.any():
        moves = moves.times(torch.where(flat, 1 - INSIDE, 1.0).to(value))
        _, value, slopes = frame.pull(moves, lowered)
    return moves, value, slopes


def _per_point(point: Tensor, length: Tensor) -> Tensor:
    """The shortest length of each row's point."""
    shortest = torch.full((int(point.max()) + 1,), torch.inf, dtype=length.dtype)
    return shortest.scatter_reduce(0, point, length, "amin")[point]


# What is worth its time where a whole curve of many points is wanted: a twentieth of the cost.
CURVE = MinimumNorm(rays="pull", draws=0, starts=2, steps=6, keep=1.2, hops=0, polish=0, probes=3)
