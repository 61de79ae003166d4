"""Red flags: what forbids to take a robust accuracy at its face. Printed beside it, always.

They are read off the outcome itself, and off one gradient at the clean points, so they cost next
to nothing; `checklist` asks more questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from unmix.attacks.frame import Frame, NeuronFrame
from unmix.attacks.objectives import objective
from unmix.attacks.problem import Problem
from unmix.errors import AttackError

# Differences of robust accuracy beyond this are no noise.
POINT = 0.01
# Searches by gradients; the strongest of them is compared with what needs none.
GRADIENT = ("min-norm", "pgd", "apgd", "fgm")
BLIND = ("square",)
# A squared gradient this small a share of what its parts could make may be none.
CANCEL = 1e-5


def flags(
    radii: Sequence[float],
    found: Mapping[str, Float[Tensor, "R n"]],
    control: Mapping[str, Float[Tensor, "R n"]],
    unverified: int,
    blind: float,
    gradient: tuple[str, ...] = GRADIENT,
) -> tuple[str, ...]:
    """Sentences, the gravest first; none is good news. `blind` is the share of points without a
    gradient, and names that start with one of `gradient` are those of searches by gradients."""
    curves = {name: curve(radius, radii) for name, radius in {**found, **control}.items()}
    union = torch.stack([curves[name] for name in found]).amin(0)
    told = [*_beaten(curves, union, control, radii), *_disagreeing(curves, found, radii, gradient)]
    if unverified:
        told.append(f"{unverified} successes of a search did not hold on the model in float64")
    if blind:
        told.append(f"no gradient at {blind:.1%} of the clean points: gradient attacks are blind")
    return tuple(told)


def curve(radius: Float[Tensor, "R n"], radii: Sequence[float]) -> Float[Tensor, " E"]:
    """Robust accuracy over all replicas."""
    return torch.stack([(radius > r).double().mean() for r in radii])


def lead(
    low: Float[Tensor, " E"], high: Float[Tensor, " E"], radii: Sequence[float]
) -> tuple[float, str]:
    """The largest amount by which one curve lies below another, and where."""
    gap, at = (high - low).max(0)
    return float(gap), f"{float(high[at]):.3f} against {float(low[at]):.3f} at {radii[int(at)]:.4g}"


def _beaten(
    curves: Mapping[str, Tensor],
    union: Tensor,
    control: Mapping[str, Tensor],
    radii: Sequence[float],
) -> list[str]:
    told = []
    for name in control:
        gap, where = lead(curves[name], union, radii)
        if gap > POINT:
            told.append(f"the control {name!r} beats the whole union: {where}")
    return told


def _disagreeing(
    curves: Mapping[str, Tensor],
    found: Mapping[str, Tensor],
    radii: Sequence[float],
    gradient: tuple[str, ...],
) -> list[str]:
    """Searches by gradients against everything that does without."""
    steep = [curves[name] for name in found if name.startswith(gradient)]
    if not steep:
        return []
    best, told = torch.stack(steep).amin(0), []
    for name in (n for n in found if not n.startswith(gradient)):
        gap, where = lead(curves[name], best, radii)
        if gap > POINT:
            kind = "without gradients" if name in BLIND else "with a closed form"
            told.append(f"{name!r} {kind} beats every gradient attack: {where}")
    return told


def without_gradient(problems: Sequence[Problem]) -> float:
    """The share of correctly classified points where the margin has no slope."""
    return sum(map(_flat, problems)) / max(sum(len(p.todo) for p in problems), 1)


def _flat(problem: Problem) -> int:
    point, frame = problem.todo, problem.frame
    if not len(point):
        return 0
    try:
        slopes = _slopes(problem, frame, point)
    except AttackError:
        return len(point)
    if isinstance(frame, NeuronFrame):
        # Slopes of pre-activations may cancel in input space: whoever comes near is asked there.
        size = slopes.abs() @ frame.gram.diagonal().sqrt()
        steep = (slopes * (slopes @ frame.gram)).sum(1)
        point = point[steep <= CANCEL * size * size]
        slopes = _slopes(problem, problem.inputs, point) if len(point) else slopes[:0]
    return int((slopes == 0).all(1).sum())


def _slopes(problem: Problem, frame: Frame, point: Tensor) -> Tensor:
    """Of the margin at clean points."""
    return frame.pull(frame.still(point), objective("margin", problem.y[point]))[2]
