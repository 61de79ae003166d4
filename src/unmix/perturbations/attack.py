"""Any attack of the house as the perturbation of a training: `attack.kind` names it.

    A(f, x, y) = tau delta/|delta|_p   at points that the attack fools within tau, by delta
                 FGM's step, or 0      elsewhere (`otherwise`)

An attack reports what fools, so points that it does not fool, or that are wrong as they are, would
be left clean; by default they move as under FGM, with its zero rule. Attacks stand to the right of
this module: the catalog finds them by their name, and their base class searches for it.
"""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from jaxtyping import Float
from pydantic import Field, model_validator
from torch import Tensor

from unmix import catalog
from unmix.perturbations.base import Perturbation, Points, Scene, dense, descending
from unmix.perturbations.gradient import LEAST
from unmix.spec import AnySpec, Kind


class AttackStep(Perturbation):
    """Where one attack fools within tau, at length tau; where it does not, FGM or nothing."""

    kind: Literal["attack"] = "attack"
    attack: Annotated[AnySpec, Kind("attacks")] = Field(
        default_factory=lambda: catalog.load("attacks", "pgd")(), description="which one"
    )
    otherwise: Literal["fgm", "nothing"] = Field("fgm", description="where the attack fools nobody")
    least: float = Field(LEAST, ge=0, description="threshold of FGM's zero rule on |grad|_q")

    @model_validator(mode="after")
    def _single(self) -> AttackStep:
        if not hasattr(self.attack, "fooling"):
            came = f"attack.kind={self.attack.kind} is a union of attacks, each with its own radii"
            raise ValueError(f"{came}; name one of them, such as pgd or min-norm")
        return self

    def perturb(
        self, scene: Scene, x: Points, y: Float[Tensor, "R n"], tau: float
    ) -> Float[Tensor, "R n d"]:
        points = dense(x)
        rows = [
            self.attack.fooling(scene.one(r), points[r], y[r], self.norm, tau)
            for r in range(len(points))
        ]
        delta, hit = (torch.stack(part) for part in zip(*rows, strict=True))
        if self.otherwise == "fgm":
            g = scene.to_input(scene.learner.input_gradient(x))
            other = tau * descending(g, y, self.norm, self.least)
            delta = torch.where(hit.unsqueeze(-1), delta, other)
        return scene.to_code(delta)
