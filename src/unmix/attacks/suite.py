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
    return AttackPlan(suite or SuiteL2(), tuple(radii), points).curve(run)


# Time of one attack step from one start at one neuron, in units of a multiplication in training.
STEP = 4000


@dataclass(frozen=True)
class AttackPlan:
    """A suite on a grid of radii, on the first `points` held-out points of a run (or all).

    The radii are multiples of the signal alpha |mu| of clusters, or lengths in input space.
    """

    suite: SuiteL2
    grid: tuple[float, ...]
    points: int | None = None
    unit: Literal["signal", "input"] = "signal"

    def radii(self, experiment: Experiment) -> tuple[float, ...]:
        """In the units of the experiment's inputs."""
        data = experiment.data
        unit = data.alpha * data.unit if self.unit == "signal" else 1.0
        return tuple(radius * unit for radius in self.grid)

    def curve(self, run: Run) -> Attacked:
        """Carry it out."""
        return self.suite.curve(run, self.radii(run.experiment), self.points)

    def cost(self, experiment: Experiment) -> int:
        """Of the attack, in multiplications: right to a factor of a few, good for an ETA."""
        points = len(experiment.seeds) * (self.points or experiment.samples.test)
        starts = self.suite.pgd.steps * self.suite.pgd.restarts
        return points * starts * experiment.net.neurons(experiment.data) * STEP


# Fig 3 of the feature-averaging paper does not state its radii; these cover every net of it.
STANDARD = AttackPlan(SuiteL2(), tuple(round(0.05 * i, 2) for i in range(1, 17)))
