"""Attacks of other libraries, judged by us: whatever they return is replayed in float64.

A callable takes inputs [n *shape] and labels [n] and returns perturbed inputs, as attacks of
torchattacks and adv-lib (with the model bound) do; `foolbox` ones are wrapped in a lambda. Radii
are those of the perturbations as returned, shortened along their rays: a library that clamps to
[0, 1] or stops inside the boundary is told by `unverified` and by the length it needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from unmix.attacks.base import Attacked, Found, checked, verified
from unmix.attacks.problem import Problem, module_problem
from unmix.attacks.suite import SuiteL2
from unmix.attacks.threat import Threat
from unmix.errors import AttackError

Outside = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Judged:
    """What an outside attack is worth within a radius, point by point."""

    radius: Float[Tensor, " n"]
    length: Float[Tensor, " n"]
    outside: Bool[Tensor, " n"]
    unverified: int

    @property
    def robust_accuracy(self) -> float:
        """Share of points for which nothing that holds was returned within radius and box."""
        return float(self.radius.isinf().double().mean())


def judge(
    attack: Outside,
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    radius: float,
    threat: Threat | None = None,
) -> Judged:
    """One radius: what the attack returns is replayed; what left ball or box does not count."""
    checked([SuiteL2().minimum], [radius], [])
    problem = module_problem(model, x, y, threat or Threat(), radius)
    delta = _returned(attack, problem, x, y)
    length = problem.threat.length(delta)
    clipped = problem.threat.clip(problem.x.double(), delta)
    # Rounding of float32 inputs is no breach.
    slack = 1e-6 * max(radius, float(problem.x.abs().max()))
    out = (length > radius + slack) | ((clipped - delta).abs().amax(1) > slack)
    held = verified(problem, Found(delta, (length > 0) & ~out))
    return Judged(held.radius, length, out, held.unverified)


def outside_curve(
    attacks: Mapping[str, Callable[[float], Outside]],
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    radii: Sequence[float],
    threat: Threat | None = None,
) -> Attacked:
    """Curves of attacks that are made for one radius at a time, in the same form as ours."""
    grid = checked([SuiteL2().minimum], radii, [])
    found, unverified, norm = {}, 0, threat or Threat()
    for name, make in attacks.items():
        best = None
        for radius in (r for r in grid if r > 0):
            held = judge(make(radius), model, x, y, radius, norm)
            best = held.radius if best is None else torch.minimum(best, held.radius)
            unverified += held.unverified
        if best is None:
            raise AttackError("expected at least one positive radius")
        found[name] = best.unsqueeze(0)
    return Attacked(grid, tuple(found), found, {}, 1.0, unverified, norm)


def _returned(attack: Outside, problem: Problem, x: Tensor, y: Tensor) -> Float[Tensor, "n d"]:
    came = attack(x.detach().clone(), y.detach().clone())
    if not isinstance(came, Tensor) or came.shape != x.shape:
        got = tuple(came.shape) if isinstance(came, Tensor) else type(came).__name__
        hint = "wrap it: lambda x, y: library_attack(model, x, y)"
        raise AttackError(f"expected perturbed inputs {tuple(x.shape)}, got {got}", hint)
    return came.detach().flatten(1).double().to(problem.x.device) - problem.x.double()
