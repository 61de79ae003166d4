"""Perturbations that do not look at the learner: the dense direction of the labels, and noise."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from unmix.perturbations.base import Perturbation, Points, Scene, dense
from unmix.streams import normals


class Universal(Perturbation):
    """-tau y M w*/|M w*| (Thm 5.1c), or -tau y sign(M w*) in l_inf: the same for every net."""

    kind: Literal["universal"] = "universal"

    def perturb(
        self, scene: Scene, x: Points, y: Float[Tensor, "R n"], tau: float
    ) -> Float[Tensor, "R n d"]:
        ahead = scene.to_input(scene.label_vector.unsqueeze(1))
        unit = normalize(ahead, dim=-1) if self.norm == "l2" else ahead.sign()
        return scene.to_code(-tau * y.unsqueeze(-1) * unit)


class Noise(Perturbation):
    """A uniform direction of length tau, or random signs times tau: the control."""

    kind: Literal["noise"] = "noise"

    def perturb(
        self, scene: Scene, x: Points, y: Float[Tensor, "R n"], tau: float
    ) -> Float[Tensor, "R n d"]:
        like = dense(x)
        drawn = normals(scene.seeds, scene.purpose, tuple(like.shape[1:]), torch.float64).to(like)
        if self.norm == "l2":
            # A uniform direction is one in every basis.
            return tau * normalize(drawn, dim=-1)
        return scene.to_code(tau * drawn.sign())
