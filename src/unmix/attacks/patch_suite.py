"""Suites for patch CNNs: several attacks at their own radii, and the plan that carries them out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from unmix.attacks.base import Attacked
from unmix.attacks.flags import flags
from unmix.attacks.patch_view import PatchView
from unmix.attacks.patches import (
    AllFeatures,
    InPlace,
    ModelFree,
    OwnFeatures,
    PatchAscent,
    PatchAttack,
    Strong,
)
from unmix.attacks.suite import AttackPlan
from unmix.attacks.threat import Threat
from unmix.errors import AttackError
from unmix.experiment import Experiment, Run
from unmix.spec import Spec

Name = Literal[
    "model-free",
    "own-features",
    "in-place",
    "all-features",
    "ce-pgd",
    "fy-pgd",
    "fy-raw",
    "one-step",
    "patch-strong",
]
THREATS: tuple[Name, ...] = ("model-free", "own-features", "in-place", "all-features")
PUBLISHED: tuple[Name, ...] = ("ce-pgd", "fy-pgd", "fy-raw", "one-step")


class PatchSuite(Spec):
    """The union of attacks, point by point, at each radius of its own.

    ce-pgd: sign steps on the cross-entropy from a random start; fy-pgd: sign steps on -F_y from the
    point; fy-raw: raw steps of 1000 on -F_y; one-step: the training attack, with its eta~.
    """

    kind: Literal["patch-suite"] = "patch-suite"
    attacks: tuple[Name, ...] = Field((*THREATS, *PUBLISHED), min_length=1)
    step: float = Field(1e3, gt=0, description="eta~ of `one-step`, as one point sees it")

    @property
    def threat(self) -> Threat:
        """The ball in which every member searches; inputs are not confined to a box."""
        return Threat(norm="linf")

    @property
    def members(self) -> tuple[PatchAttack, ...]:
        fy = PatchAscent(label="fy-pgd", objective="Fy", start="zero")
        table: dict[Name, PatchAttack] = {
            "model-free": ModelFree(),
            "own-features": OwnFeatures(),
            "in-place": InPlace(),
            "all-features": AllFeatures(),
            "ce-pgd": PatchAscent(label="ce-pgd"),
            "fy-pgd": fy,
            "fy-raw": fy.override("label=fy-raw", "direction=raw", "step=1000.0"),
            "one-step": fy.override(
                "label=one-step", "direction=raw", f"step={self.step}", "steps=1"
            ),
            "patch-strong": Strong(),
        }
        return tuple(table[name] for name in self.attacks)

    def curve(self, run: Run, radii: Sequence[float], points: int | None = None) -> Attacked:
        """The smallest of the radii at which each attack breaks each point."""
        grid = sorted(float(r) for r in radii)
        if not grid or grid[0] < 0:
            raise AttackError("expected non-negative radii", "for example radii=[1.2]")
        return self.on(PatchView.of(run, points), grid)

    def on(self, view: PatchView, grid: Sequence[float]) -> Attacked:
        """The same on a view."""
        members = self.members
        judged = {member.name: _radius(member, view, grid) for member in members}
        found = {name: radius for name, (radius, _) in judged.items()}
        unverified = sum(lost for _, lost in judged.values())
        steep = tuple(m.name for m in members if isinstance(m, PatchAscent | Strong))
        # Who is right has F_y > 0, so a patch in a sloping part: no gradient is zero there.
        told = flags(grid, found, {}, unverified, 0.0, steep)
        names = tuple(found)
        return Attacked(tuple(grid), names, found, {}, 1.0, unverified, self.threat, told)


@dataclass(frozen=True)
class PatchPlan(AttackPlan):
    """A suite for patch CNNs, at radii in input space."""

    suite: PatchSuite  # type: ignore[assignment]
    unit: Literal["signal", "input"] = "input"

    def cost(self, experiment: Experiment) -> int:
        """A forward and a backward pass for every step of every attack."""
        passes = sum(
            5 * member.steps if isinstance(member, Strong) else getattr(member, "steps", 1)
            for member in self.suite.members
        )
        points = len(experiment.seeds) * (self.points or experiment.samples.test)
        size = int(experiment.data.size) * int(experiment.net.neurons(experiment.data))
        return 2 * points * size * passes * len(self.grid)


def _radius(
    member: PatchAttack, view: PatchView, radii: Sequence[float]
) -> tuple[Float[Tensor, "R n"], int]:
    """Zero for points that are wrong as they are, infinity for those that were never broken; and
    the claims of the search, over all radii, that did not hold."""
    clean = view.broken(torch.zeros_like(view.batch.x))
    radius = torch.full(clean.shape, torch.inf, dtype=torch.float64).masked_fill(clean, 0.0)
    unverified = 0
    for eps in sorted(radii, reverse=True):
        judged = member.judged(view, eps)
        radius = radius.masked_fill(judged.broken & ~clean, eps)
        unverified += judged.unverified
    return radius, unverified
