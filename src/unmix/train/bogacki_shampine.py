"""The explicit Runge-Kutta pair of Bogacki and Shampine, 2(3), on the unit spheres of the u_j.

Three new evaluations a step (the last of one is the first of the next). The error is the root of
the mean square over neurons, of directions plus of angles: at p = 1 every (neuron, point) pair has
a kink, and the largest error over all of them would cut the step without end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from unmix.train.fields import Field, Motion, State

EVALUATIONS = 3
THIRD = (2 / 9, 1 / 3, 4 / 9)
ERROR = (-5 / 72, 1 / 12, 1 / 9, -1 / 8)
# No neuron moves further than this, in radians or in its angle, within a step.
FURTHEST = 0.5
FIRST = 0.05
SAFETY, SHRINK, GROW = 0.9, 0.2, 5.0


@dataclass(frozen=True)
class Step:
    """From one state to the next in a time `dt`, with the motion at both ends."""

    start: State
    end: State
    before: Motion
    after: Motion
    dt: float
    error: float

    def at(self, part: float) -> State:
        """The state at a part of the step, by the cubic through both ends (third order)."""
        t = part
        h00, h10 = (1 + 2 * t) * (1 - t) ** 2, t * (1 - t) ** 2 * self.dt
        h01, h11 = t * t * (3 - 2 * t), t * t * (t - 1) * self.dt
        u = h00 * self.start.u + h01 * self.end.u + h10 * self.before.u + h11 * self.after.u
        a = h00 * self.start.a + h01 * self.end.a + h10 * self.before.a + h11 * self.after.a
        return State(normalize(u, dim=-1), a)


def attempt(field: Field, start: State, before: Motion, dt: float) -> Step:
    """One step with its estimated error; the caller takes it or tries a smaller one."""
    second = field.motion(_moved(start, dt, (before, 0.5)))
    third = field.motion(_moved(start, dt, (second, 0.75)))
    end = _moved(start, dt, *zip((before, second, third), THIRD, strict=True))
    after = field.motion(end)
    stages = (before, second, third, after)
    u = _sum([(m.u, c) for m, c in zip(stages, ERROR, strict=True)])
    a = _sum([(m.a, c) for m, c in zip(stages, ERROR, strict=True)])
    size = u.square().sum(-1).mean().sqrt().double() + a.square().mean().sqrt()
    return Step(start, end, before, after, dt, dt * float(size))


def first_step(motion: Motion) -> float:
    """A small step: at p > 2 the rates begin near 0 and grow without bound."""
    return FIRST * longest(motion)


def longest(motion: Motion) -> float:
    """The longest step that moves no neuron too far."""
    fastest = motion.fastest
    return FURTHEST / fastest if fastest > 0 else float("inf")


def next_step(dt: float, error: float, tolerance: float) -> float:
    """The step that the error of the last one recommends; the least one after an overflow."""
    if not math.isfinite(error):
        return dt * SHRINK
    factor = SAFETY * (tolerance / error) ** (1 / 3) if error > 0 else GROW
    return dt * min(GROW, max(SHRINK, factor))


def _moved(start: State, dt: float, *parts: tuple[Motion, float]) -> State:
    """start + dt sum c m, back on the spheres."""
    u = start.u + dt * _sum([(m.u, c) for m, c in parts])
    a = start.a + dt * _sum([(m.a, c) for m, c in parts])
    return State(normalize(u, dim=-1), a)


def _sum(parts: list[tuple[Tensor, float]]) -> Tensor:
    total = parts[0][1] * parts[0][0]
    for value, c in parts[1:]:
        total = torch.add(total, value, alpha=c)
    return total
