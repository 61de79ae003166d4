"""Transfer between runs: perturbations found on one net, judged on another at the same points.

What fools both nets comes from what they have in common: the data, not the weights. A net whose own
gradients are masked has no defence against the gradients of its neighbour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch

from unmix.attacks.base import L2, Attack, Attacked, carried_out, checked, held_out
from unmix.attacks.directions import Compass, Direction
from unmix.attacks.minimum import MinimumNorm
from unmix.attacks.problem import Problem, targets
from unmix.attacks.threat import Threat
from unmix.errors import AttackError
from unmix.experiment import Run


class Transfer(Direction):
    """The shortest perturbation of each point that fools the lender, as a direction.

    It is followed here until this net is fooled, too. Points that the lender has wrong as they are
    bring none.
    """

    kind: Literal["transfer"] = "transfer"
    by: MinimumNorm = MinimumNorm()

    def applies(self, problem: Problem) -> bool:
        return problem.lender is not None

    def directions(self, problem: Problem) -> Compass:
        assert problem.lender is not None
        there = replace(problem, target=problem.lender, lender=None)
        held = self.by.judged(there, (problem.largest,))
        sign = (held.radius.isfinite() & (held.radius > 0)).double().unsqueeze(1)
        return Compass(held.delta, torch.arange(len(sign)).unsqueeze(1), sign)


def transferred(
    run: Run,
    source: Run,
    radii: Sequence[float],
    *,
    points: int | None = None,
    attacks: Sequence[Attack] = (Transfer(),),
    control: Sequence[Attack] = (),
    threat: Threat = L2,
) -> Attacked:
    """Attack a run with what fools the nets of another, replica by replica.

    `source` has as many seeds as the run, or one that lends to all; it may be the same experiment
    with other seeds, a repair of it, or another net for the same task.
    """
    grid = checked(attacks, radii, control)
    made = lent(held_out(run, threat, grid[-1], points), source)
    return carried_out(made, attacks, grid, control, unit=getattr(run.data, "unit", 1.0))


def lent(made: Sequence[Problem], source: Run) -> list[Problem]:
    """The same problems with the nets of another run beside them."""
    if source.replicas not in (1, len(made)):
        came = f"the source has {source.replicas} seeds, the attacked run {len(made)}"
        raise AttackError(came, "take a source with as many seeds, or with one")
    shape, theirs = made[0].batch.x.shape[2:], source.fresh(1).x.shape[2:]
    if shape != theirs:
        came = f"inputs of shape {tuple(shape)} here and {tuple(theirs)} at the source"
        raise AttackError(came, "transfer is between nets for the same task")
    nets = targets(source, tuple(shape))
    nets *= len(made) // len(nets)
    for problem, net in zip(made, nets, strict=True):
        here, there = (t.scores(problem.x[:1].to(t.dtype)).shape[1] for t in (problem.target, net))
        if here != there:
            raise AttackError(f"{here} labels here and {there} at the source")
    return [replace(problem, lender=net) for problem, net in zip(made, nets, strict=True)]
