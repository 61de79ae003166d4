"""Closed-form directions of the papers, at any length, and random ones as their control.

A paper's perturbation is a unit direction for each point (several, where the paper has a set); it
is followed until the point is fooled. Under l_inf and l1 the direction is tried as it is, at equal
length, and as the steepest unit step for its effect (for l_inf: its signs).

Feature averaging and pReLU speak of the same two sets: U = sum_{J+} mu - sum_{J-} mu is sqrt(K) d_0
of the pReLU paper, and mu_l - mu_c is sqrt(2) d_{c,l}.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from unmix.attacks.base import Attack, Found
from unmix.attacks.problem import Problem
from unmix.data.clusters import Clusters
from unmix.data.sparse_code import SparseCode

# Numbers in the directions that are followed at a time.
ROOM = 2**22


class Direction(Attack):
    """Follows given directions and keeps, for each point, the one that fools it first."""

    @abstractmethod
    def directions(self, problem: Problem) -> Sequence[Float[Tensor, "n d"]]:
        """Sets of directions of any length, one a point; 0 where a point has none."""

    def search(self, problem: Problem, radii: Sequence[float]) -> Found:
        found, point = Found.none(problem), problem.todo
        sets = torch.stack([u[point].double() for u in self.tried(problem)], 1)
        count = sets.shape[1]
        together = max(1, ROOM // (count * sets.shape[2]))
        for some, rows in zip(point.split(together), sets.split(together), strict=True):
            t = problem.ray(rows.flatten(0, 1), some.repeat_interleave(count)).unflatten(
                0, (-1, count)
            )
            best, which = t.min(1)
            hit = best.isfinite()
            u = rows[torch.arange(len(rows)), which]
            found.delta[some[hit]] = best[hit].unsqueeze(1) * u[hit]
            found.hit[some[hit]] = True
        return found

    def tried(self, problem: Problem) -> list[Float[Tensor, "n d"]]:
        """The directions at unit length, with their steepest versions."""
        sets, threat = list(self.directions(problem)), problem.threat
        if threat.norm != "l2":
            sets += [threat.steepest(u) for u in sets]
        lengths = [threat.length(u).unsqueeze(1) for u in sets]
        return [torch.where(v > 0, u / v, 0.0) for u, v in zip(sets, lengths, strict=True)]


class AverageDirection(Direction):
    """-y U, U = sum_{J+} mu - sum_{J-} mu (averaging: Remark 4.2, Thms 4.5, D.4; pReLU: d_0)."""

    kind: Literal["average-direction"] = "average-direction"

    def applies(self, problem: Problem) -> bool:
        return isinstance(problem.data, Clusters)

    def directions(self, problem: Problem) -> Sequence[Float[Tensor, "n d"]]:
        u = problem.data.signs @ problem.centres
        return [-problem.batch.y[0].double().unsqueeze(1) * u]


class NearestOpposite(Direction):
    """mu_l - mu_c towards each centre l of the other label (pReLU, Thm 3); the best counts."""

    kind: Literal["nearest-opposite"] = "nearest-opposite"

    def applies(self, problem: Problem) -> bool:
        return isinstance(problem.data, Clusters)

    def directions(self, problem: Problem) -> Sequence[Float[Tensor, "n d"]]:
        data, batch = problem.data, problem.batch
        mu = problem.centres
        own, y = mu[batch.cluster[0]], batch.y[0]
        return [(mu[j] - own) * (y != data.signs[j]).unsqueeze(1) for j in range(data.k)]


class LabelDirection(Direction):
    """-y M w*: the universal perturbation of sparse codes (feature purification, Thm 5.1c, E.1).

    The paper has the sign twice; x + delta with delta = -y c M w* is what lowers y <M w*, x>.
    """

    kind: Literal["label-direction"] = "label-direction"

    def applies(self, problem: Problem) -> bool:
        return isinstance(problem.data, SparseCode)

    def directions(self, problem: Problem) -> Sequence[Float[Tensor, "n d"]]:
        seeds, y = [problem.seed], problem.batch.y[0].double()
        u = problem.data.dictionary(seeds)[0] @ problem.data.label_vector(seeds)[0]
        return [-y.unsqueeze(1) * u]


class OtherMeans(Direction):
    """Towards the mean of the points of each other label: known of any data."""

    kind: Literal["other-means"] = "other-means"

    def directions(self, problem: Problem) -> Sequence[Float[Tensor, "n d"]]:
        x, y = problem.x.double(), problem.y
        means = {int(c): x[y == c].mean(0) for c in y.unique()}
        own = torch.stack([means[int(c)] for c in y])
        return [(mean - own) * (y != c).unsqueeze(1) for c, mean in means.items()]


class RandomDirections(Direction):
    """Uniform directions in R^d: what a perturbation of that size does when nobody aims it."""

    kind: Literal["random"] = "random"
    draws: int = Field(8, ge=1)

    def directions(self, problem: Problem) -> Sequence[Float[Tensor, "n d"]]:
        d = problem.x.shape[1]
        draws = [problem.draw(f"random.{i}", 1, d)[:, 0] for i in range(self.draws)]
        return [u.sign() for u in draws] if problem.threat.norm == "linf" else draws

    def tried(self, problem: Problem) -> list[Float[Tensor, "n d"]]:
        return [u / problem.threat.length(u).unsqueeze(1) for u in self.directions(problem)]


def known(problem: Problem) -> list[Float[Tensor, "n d"]]:
    """Unit directions of every closed form that applies: starts of the other attacks."""
    members = (AverageDirection(), NearestOpposite(), LabelDirection(), OtherMeans())
    return [u for m in members if m.applies(problem) for u in m.tried(problem)]
