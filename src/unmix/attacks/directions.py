"""Closed-form directions of the feature-averaging paper, at any length, and their control."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Literal

import torch
from pydantic import Field
from torch.nn.functional import normalize

from unmix.attacks.base import Attack, Found, View, along, better
from unmix.streams import normals

# Directions are followed up to this multiple of alpha |mu|; centres are sqrt(2) of it apart.
REACH = 3.0


class AverageDirection(Attack):
    """-y u with u along U = sum_{J+} mu - sum_{J-} mu (Remark 4.2, Thm 4.5 step 5, Thm D.4)."""

    kind: Literal["average-direction"] = "average-direction"

    def search(self, view: View, radii: Sequence[float]) -> Found:
        data = view.model.data
        u = normalize(torch.einsum("k,rkd->rd", data.signs, data.centres(view.seeds)), dim=-1)
        direction = -view.batch.y.unsqueeze(-1) * u.unsqueeze(1)
        return along(view, direction, REACH * data.alpha * data.unit)


class NearestOpposite(Attack):
    """Towards each centre of the other label, (mu_l - mu_c) / |mu_l - mu_c|; the best counts."""

    kind: Literal["nearest-opposite"] = "nearest-opposite"

    def search(self, view: View, radii: Sequence[float]) -> Found:
        data, batch = view.model.data, view.batch
        mu = data.centres(view.seeds)
        own = torch.stack([m[c] for m, c in zip(mu, batch.cluster, strict=True)])
        results = []
        for j in range(data.k):
            found = along(
                view, normalize(mu[:, j : j + 1] - own, dim=-1), REACH * data.alpha * data.unit
            )
            opposite = batch.y != data.signs[j]
            radius = torch.where(opposite, found.radius, torch.inf)
            results.append(Found(radius, found.delta))
        return reduce(better, results)


class RandomDirections(Attack):
    """Uniform directions in R^d: what a perturbation of that size does when nobody aims it."""

    kind: Literal["random"] = "random"
    draws: int = Field(8, ge=1)

    def search(self, view: View, radii: Sequence[float]) -> Found:
        data = view.model.data
        shape = (view.shape[1], data.d)
        results = []
        for draw in range(self.draws):
            u = normals(view.seeds, f"attack.random.{draw}", shape, torch.float64)
            results.append(along(view, normalize(u, dim=-1), REACH * data.alpha * data.unit))
        return reduce(better, results)
