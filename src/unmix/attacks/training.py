"""A learner under way, as attacks see it: for adversarial training against any of them.

The problem stands in input space; the learner computes in the basis of its features, in its own
precision, and is not copied: what is found here moves training points and judges nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from unmix.attacks.objectives import Objective, Scores
from unmix.attacks.problem import Problem
from unmix.attacks.target import halves, labels
from unmix.attacks.threat import Threat
from unmix.data.base import Batch
from unmix.errors import AttackError
from unmix.perturbations.base import Norm, Scene
from unmix.streams import normals

if TYPE_CHECKING:
    from unmix.attacks.base import Attack

# A success may be longer than the radius by this share: rounding.
HAIR = 1e-6


@dataclass(frozen=True)
class LearnerTarget:
    """A scene of one replica: scores (-f/2, f/2) of points in input space, and their slopes."""

    scene: Scene
    dtype: torch.dtype

    def scores(self, x: Float[Tensor, "P d"]) -> Scores:
        f = self.scene.learner.outputs(self._code(x))[0]
        return f.unsqueeze(1) * halves(f)

    def pull(
        self, x: Float[Tensor, "P d"], lowered: Objective
    ) -> tuple[Scores, Tensor, Float[Tensor, "P d"]]:
        scores = self.scores(x)
        objective, slopes = lowered(scores)
        g = self.scene.to_input(self.scene.learner.input_gradient(self._code(x)))[0]
        return scores, objective, (slopes @ halves(slopes)).unsqueeze(1) * g

    def double(self) -> LearnerTarget:
        """Itself: a step of training is no verdict."""
        return self

    def _code(self, x: Float[Tensor, "P d"]) -> Float[Tensor, "1 P d"]:
        return self.scene.to_code(x.to(self.dtype).unsqueeze(0))


@dataclass(frozen=True)
class StepProblem(Problem):
    """The points of one step; every step has its own random starts."""

    purpose: str = ""

    def draw(self, purpose: str, count: int, width: int) -> Float[Tensor, "n S w"]:
        shape = (len(self.x), count, width)
        name = f"{self.purpose}.{purpose}"
        return normals([self.seed], name, shape, self.searched.dtype)[0].to(self.x.device)


def fooling(
    attack: Attack,
    scene: Scene,
    code: Float[Tensor, "n d"],
    y: Float[Tensor, " n"],
    norm: Norm,
    radius: float,
) -> tuple[Float[Tensor, "n d"], Bool[Tensor, " n"]]:
    """Perturbations in input space, of length `radius` along what fools within it, and where."""
    x = scene.to_input(code.unsqueeze(0))[0]
    batch = Batch(x[None], y[None], torch.zeros_like(y[None], dtype=torch.int64))
    threat = Threat(norm=norm)
    target = LearnerTarget(scene, x.dtype)
    (seed,) = scene.seeds
    problem = StepProblem(target, x, labels(y), threat, radius, seed, batch, purpose=scene.purpose)
    if not attack.applies(problem):
        hint = "train against pgd, apgd, fgm, min-norm, square or random"
        raise AttackError(f"{attack.name} needs more than a learner and {norm} balls", hint)
    none = torch.zeros_like(x), torch.zeros_like(problem.right)
    if not problem.right.any():
        return none
    with torch.no_grad():
        found = attack.search(problem, [radius])
    length = threat.length(found.delta)
    hit = found.hit & problem.right & (length > 0) & (length <= radius * (1 + HAIR))
    # Not a product with `hit`: what an attack gives up may be infinite.
    moved = torch.where(hit.unsqueeze(1), radius * found.delta / length.unsqueeze(1), 0.0)
    return moved.to(x), hit
