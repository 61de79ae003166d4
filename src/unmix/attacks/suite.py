"""Suites: the union of attacks, point by point. Robustness is judged on the union."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from unmix.attacks.base import Attack, Attacked, attack
from unmix.attacks.directions import AverageDirection, NearestOpposite, RandomDirections
from unmix.attacks.gradient import PGD
from unmix.experiment import Experiment, Run
from unmix.spec import Spec


class SuiteL2(Spec):
    """Both closed-form directions and PGD with restarts; PGD from the clean point and random
    directions run beside them as controls."""

    kind: Literal["suite-l2"] = "suite-l2"
    pgd: PGD = PGD()

    @property
    def members(self) -> tuple[Attack, ...]:
        return AverageDirection(), NearestOpposite(), self.pgd

    @property
    def controls(self) -> tuple[Attack, ...]:
        return PGD(start="clean", restarts=1), RandomDirections()

    def curve(self, run: Run, radii: Sequence[float], points: int | None = None) -> Attacked:
        """The union over many radii (in input units) at once."""
        return attack(run, self.members, radii, points=points, control=self.controls)


def robustness(
    run: Run, radii: Sequence[float], *, points: int | None = None, suite: SuiteL2 | None = None
) -> Attacked:
    """Robust accuracy at radii in units of alpha |mu| (where 1/sqrt 2 is the best possible)."""
    plan = AttackPlan(suite or SuiteL2(), tuple(radii), points)
    return plan.suite.curve(run, plan.radii(run.experiment), points)


@dataclass(frozen=True)
class AttackPlan:
    """A suite at radii in units of alpha |mu|, on the first `points` held-out points (or all)."""

    suite: SuiteL2
    relative_radii: tuple[float, ...]
    points: int | None = None

    def radii(self, experiment: Experiment) -> tuple[float, ...]:
        """In the units of the experiment's inputs."""
        unit = experiment.data.alpha * experiment.data.unit
        return tuple(radius * unit for radius in self.relative_radii)


# Fig 3 of the feature-averaging paper does not state its radii; these cover every net of it.
STANDARD = AttackPlan(SuiteL2(), tuple(round(0.05 * i, 2) for i in range(1, 17)))
