"""The suite for symmetric nets (feature purification), after or before adversarial training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from torch import Tensor

from unmix.attacks.base import Attack, Attacked
from unmix.attacks.directions import LabelDirection, RandomDirections
from unmix.attacks.gradient import FGM, PGD
from unmix.attacks.minimum import MinimumNorm
from unmix.attacks.suite import Suite
from unmix.attacks.threat import Threat
from unmix.errors import AttackError
from unmix.experiment import Run


class CodeSuite(Suite):
    """The labels' direction, minimum-norm, FGM and PGD, with random directions as control.

    `before` attacks the weights with which adversarial training began: the cleanly trained net of
    the same run.
    """

    kind: Literal["suite-code"] = "suite-code"
    norm: Literal["l2", "linf"] = "l2"
    weights: Literal["after", "before"] = "after"
    minimum: MinimumNorm = MinimumNorm(steps=10, starts=3, draws=4, hops=0, polish=0)
    pgd: PGD = PGD(steps=20, restarts=2)

    @property
    def threat(self) -> Threat:
        return Threat(norm=self.norm, box=self.box)

    @property
    def passes(self) -> int:
        """A seventh of those elsewhere, as measured: few entries of so wide a net are on."""
        return super().passes // 7

    @property
    def members(self) -> tuple[Attack, ...]:
        return LabelDirection(), self.minimum, self.pgd, FGM(zero=1e-6)

    @property
    def controls(self) -> tuple[Attack, ...]:
        return (RandomDirections(draws=1),)

    def curve(self, run: Run, radii: Sequence[float], points: int | None = None) -> Attacked:
        """The union over many radii at once, of the weights asked for."""
        if self.weights == "before":
            run = cleanly_trained(run)
        return super().curve(run, radii, points)


def cleanly_trained(run: Run) -> Run:
    """The net of a run before its adversarial part."""
    before: Tensor | None = run.trace.final.get("before")
    if before is None:
        came = "this run has no weights from before adversarial training"
        raise AttackError(came, "--set train.kind=purification")
    return replace(run, params=run.params | {"w": before}, parent=run.experiment.digest())
