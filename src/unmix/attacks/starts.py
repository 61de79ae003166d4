"""Where searches start: the clean point, the closed-form directions, random ones, given ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from unmix.attacks.directions import Compass, known
from unmix.attacks.frame import Frame, Moves, NeuronFrame
from unmix.attacks.objectives import fooled
from unmix.attacks.problem import Problem
from unmix.attacks.target import FormTarget

Rays = Literal["every", "pull"]
# Crossings of starts are looked for on this many lengths, more of them where a pass is cheap, and
# fewer where a limit is known.
CHEAP, DEAR, LIMITED = 48, 12, 12
# Halvings by which edges on rays are compared.
HALVINGS = 8
# Neurons that bring a direction of their own for each label.
NEURONS = 8


@dataclass(frozen=True)
class Starts:
    """Unit moves of points, and the first length on a grid at which each fools (or infinity)."""

    moves: Moves
    length: Tensor

    @classmethod
    def of(
        cls,
        problem: Problem,
        frame: Frame,
        draws: int,
        purpose: str,
        rays: Rays = "every",
        limit: Tensor | None = None,
    ) -> Starts:
        """Each closed form, then random directions, for the points worth an attack.

        Crossings are looked for up to a limit of each point.
        """
        point = problem.todo
        parts = [frame.still(point)]
        for compass in _compasses(problem, rays):
            table = frame.along(compass.rows)
            for pick, sign in zip(compass.pick[point].T, compass.sign[point].T, strict=True):
                parts.append(table.turned(point, pick, sign))
        if draws:
            noise = problem.draw(purpose, draws, frame.width)[point]
            parts += [frame.random(point, noise[:, i]) for i in range(draws)]
        units = Moves.joined(parts)
        units = units.take(frame.length(units) > 0)
        count = grid(frame) if limit is None else LIMITED
        if limit is None:
            limit = torch.full_like(problem.x[:, 0], problem.reach, dtype=units.square.dtype)
        size = limit[units.point]
        steps = torch.linspace(0, 1, count + 1)[1:].tolist()
        return cls(units, size * crossing(problem, frame, units.times(size), steps))

    def best(self, count: int) -> Moves:
        """The units of each point that fool first (fewer where it has fewer)."""
        return self.moves.take(first(self.moves.point, self.length, count))

    @property
    def crossings(self) -> Moves:
        """Perturbations that fool."""
        there = self.length.isfinite()
        return self.moves.take(there).times(self.length[there])


def _compasses(problem: Problem, rays: Rays) -> list[Compass]:
    if rays == "pull":
        return [neurons(problem, 0)]
    return [*known(problem), neurons(problem)]


def neurons(problem: Problem, most: int = NEURONS) -> Compass:
    """Along the neurons that matter most against each label, and along all of them together.

    What is left of the closed forms where nobody knows the features: the net's own.
    """
    target = problem.searched
    none = problem.y.unsqueeze(1)[:, :0]
    if not isinstance(target, FormTarget):
        return Compass(problem.x[:0].double(), none, none.double())
    votes, w = target.head.votes, target.w
    count = min(most, len(w))
    rows = w.new_zeros(votes.shape[1], count + 1, w.shape[1])
    for y in problem.y.unique().tolist():
        others = votes.clone()
        others[:, y] = -torch.inf
        pull = others.amax(1) - votes[:, y]
        top = (pull.abs() * w.norm(dim=1)).topk(count).indices
        rows[y, :count] = pull[top].sign().unsqueeze(1) * w[top]
        rows[y, count] = pull @ w
    pick = problem.y.unsqueeze(1) * (count + 1) + torch.arange(count + 1)
    return Compass(rows.flatten(0, 1), pick, torch.ones_like(pick, dtype=torch.float64))


def crossing(problem: Problem, frame: Frame, moves: Moves, scales: Sequence[float]) -> Tensor:
    """The first of some scales at which moves fool, infinity for none."""
    found = torch.full_like(moves.square, torch.inf)
    live = torch.arange(len(found))
    for t in scales:
        if not len(live):
            break
        rows = moves.take(live)
        scores = frame.scores(rows.times(torch.full_like(rows.square, t)))
        hit = fooled(scores, y_of(problem, rows))
        found[live[hit]] = t
        live = live[~hit]
    return found


def grid(frame: Frame) -> int:
    """Lengths at which a start is tried."""
    return CHEAP if isinstance(frame, NeuronFrame) else DEAR


def first(point: Tensor, length: Tensor, count: int) -> Tensor:
    """Rows of the `count` shortest lengths of each point, grouped by point."""
    order = length.argsort(stable=True)
    order = order[point[order].argsort(stable=True)]
    grouped = point[order]
    begin = torch.searchsorted(grouped, grouped, right=False)
    return order[torch.arange(len(order)) - begin < count]


def shortest(problem: Problem, frame: Frame, moves: Moves) -> Moves:
    """The fooling perturbation of each point whose edge on its own ray is nearest."""
    low, high = torch.zeros_like(moves.square), torch.ones_like(moves.square)
    if len(moves.point) > len(moves.point.unique()):
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            hit = fooled(frame.scores(moves.times(middle)), y_of(problem, moves))
            low, high = torch.where(hit, low, middle), torch.where(hit, middle, high)
    return moves.take(first(moves.point, high * frame.length(moves), 1))


def y_of(problem: Problem, moves: Moves) -> Tensor:
    """Labels of rows."""
    return problem.y[moves.point]
