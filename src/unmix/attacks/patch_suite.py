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
        found = {member.name: _radius(member, view, grid) for member in self.members}
        return Attacked(
            radii=tuple(grid),
            names=tuple(found),
            by_attack=found,
            control={},
            unit=1.0,
            unverified=0,
            threat=Threat(norm="linf"),
        )


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


def _radius(member: PatchAttack, view: PatchView, radii: Sequence[float]) -> Float[Tensor, "R n"]:
    """Zero for points that are wrong as they are, infinity for those that were never broken."""
    clean = view.broken(torch.zeros_like(view.batch.x))
    radius = torch.full(clean.shape, torch.inf, dtype=torch.float64).masked_fill(clean, 0.0)
    for eps in sorted(radii, reverse=True):
        hit = member.success(view, eps) & ~clean
        radius = radius.masked_fill(hit, eps)
    return radius
