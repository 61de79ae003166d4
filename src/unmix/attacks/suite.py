"""Suites: the union of attacks, point by point. Robustness is judged on the union."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from unmix.attacks.base import Attack, Attacked, attack, carried_out, checked
from unmix.attacks.directions import (
    AverageDirection,
    LabelDirection,
    NearestOpposite,
    OtherMeans,
    RandomDirections,
)
from unmix.attacks.gradient import FGM, PGD
from unmix.attacks.minimum import MinimumNorm
from unmix.attacks.problem import module_problem
from unmix.attacks.threat import Threat
from unmix.experiment import Experiment, Run
from unmix.spec import Spec


class Suite(Spec):
    """Closed-form directions, minimum-norm, FGM and PGD with restarts; PGD from the clean point
    and random directions run beside them as controls."""

    box: tuple[float, float] | None = Field(None, description="interval of every input; none: R")
    minimum: MinimumNorm = MinimumNorm()
    pgd: PGD = PGD()

    @property
    def threat(self) -> Threat:
        """Norm and box."""
        raise NotImplementedError

    @property
    def passes(self) -> int:
        """Evaluations of a point, roughly: what time is counted by."""
        return self.pgd.steps * (self.pgd.restarts + 1)

    @property
    def members(self) -> tuple[Attack, ...]:
        """Those that do not fit the data are left out when it comes to it."""
        closed = (AverageDirection(), NearestOpposite(), LabelDirection(), OtherMeans())
        return *closed, self.minimum, self.pgd, FGM()

    @property
    def controls(self) -> tuple[Attack, ...]:
        return PGD(start="clean", restarts=0), RandomDirections()

    def curve(self, run: Run, radii: Sequence[float], points: int | None = None) -> Attacked:
        """The union over many radii (in input units) at once."""
        return attack(
            run, self.members, radii, points=points, control=self.controls, threat=self.threat
        )

    def on(self, model: nn.Module, x: Tensor, y: Tensor, radii: Sequence[float]) -> Attacked:
        """The same for a user's own model, at points x [n *shape] with labels y [n]."""
        grid = checked(self.members, radii, self.controls)
        problem = module_problem(model, x, y, self.threat, grid[-1])
        return carried_out([problem], self.members, grid, self.controls)


class SuiteL2(Suite):
    """All l2 attacks; without a box two-layer nets are attacked in the span of their neurons."""

    kind: Literal["suite-l2"] = "suite-l2"

    @property
    def threat(self) -> Threat:
        return Threat(norm="l2", box=self.box)


class SuiteLinf(Suite):
    """All l_inf attacks."""

    kind: Literal["suite-linf"] = "suite-linf"

    @property
    def threat(self) -> Threat:
        return Threat(norm="linf", box=self.box)


class SuiteL1(Suite):
    """All l1 attacks."""

    kind: Literal["suite-l1"] = "suite-l1"

    @property
    def threat(self) -> Threat:
        return Threat(norm="l1", box=self.box)


def robustness(
    run: Run, radii: Sequence[float], *, points: int | None = None, suite: Suite | None = None
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

    suite: Suite
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
        return points * self.suite.passes * experiment.net.neurons(experiment.data) * STEP


# Fig 3 of the feature-averaging paper does not state its radii; these cover every net of it.
STANDARD = AttackPlan(SuiteL2(), tuple(round(0.05 * i, 2) for i in range(1, 17)))
