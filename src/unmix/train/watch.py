"""What is recorded of a symmetric net while it learns: how well, how robustly, and what its
neurons are made of. Robust accuracies here are those of one cheap attack each, never a verdict.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from unmix.nets.mixture import ALIVE, Mixture, cosine, mean_over
from unmix.perturbations.base import Norm, Perturbation, Points, Scene, dense
from unmix.perturbations.fixed import Universal
from unmix.perturbations.gradient import FGM, LEAST
from unmix.train.engines.symmetric import SymmetricGemm, regulariser
from unmix.train.losses import losses, pull

COLUMNS = (
    "loss",
    "penalty",
    "accuracy",
    "universal",
    "fgm",
    "zeroed",
    "pull",
    "bias",
    "alive",
    "active",
    "kept",
    "right_sign",
    "purity",
    "nu",
    "dense",
    "theta",
)


@dataclass(frozen=True)
class Watch:
    """Fresh points of one seed, on which a net is looked at now and then.

    loss, pull: mean of log(1 + e^(-y f)) and of its derivative l'; penalty: lambda sum Reg
    accuracy, universal, fgm: on clean points, after -tau y M w*, after FGM of the same radius
    zeroed: share of points at which FGM's zero rule strikes; active: share of neurons on at a point
    and of the neurons that are alive: how many there are, the share that kept its first largest
    coordinate, that has the label's sign there, and the means of purity, nu, dense part and
    theta(w, w^(0)). `read` takes weights for what neurons are made of.
    """

    POINTS: ClassVar[int] = 1000

    scene: Scene
    x: Points
    y: Float[Tensor, "1 n"]
    read: Callable[[Tensor], Mixture]
    first: Float[Tensor, "1 m d"]
    norm: Norm
    radius: float

    def row(self) -> list[float]:
        """Values of COLUMNS, now."""
        engine = self.scene.learner
        assert isinstance(engine, SymmetricGemm)
        schedule, q = engine.schedule, self.y * engine.outputs(self.x)
        gradient = engine.input_gradient(self.x)
        zeroed = (torch.linalg.vector_norm(gradient, dim=-1) < LEAST).double().mean()
        activity = engine.activity(self.x)
        alive = activity >= ALIVE
        values = [
            losses(q.unsqueeze(-1), torch.ones_like(q)).mean(),
            schedule.decay * regulariser(self.scene.to_input(engine.w), schedule.cubic).sum(),
            _right(q),
            self._after(Universal(norm=self.norm)),
            self._after(FGM(norm=self.norm)),
            zeroed,
            pull(q, "logistic").mean(),
            engine.b[0],
            alive.double().sum(),
            activity.mean(),
            *self._neurons(engine.w, alive),
        ]
        return [float(value) for value in values]

    def _after(self, attack: Perturbation) -> Tensor:
        moved = dense(self.x) + attack.perturb(self.scene, self.x, self.y, self.radius)
        return _right(self.y * self.scene.learner.outputs(moved))

    def _neurons(self, u: Float[Tensor, "1 m d"], alive: Tensor) -> list[Tensor]:
        now = self.read(u)
        kept = now.top == self.read(self.first).top
        each = (
            kept.to(u),
            now.right_sign.to(u),
            now.purity,
            now.nu,
            now.dense,
            cosine(u, self.first),
        )
        return [mean_over(values, alive)[0] for values in each]


def _right(q: Float[Tensor, "1 n"]) -> Tensor:
    """Share of points with y f > 0; a net that is off everywhere is half right."""
    return ((q > 0).double() + (q == 0).double() / 2).mean()
