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
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from unmix.attacks.base import Attack, Found
from unmix.attacks.line import Line
from unmix.attacks.problem import Problem
from unmix.attacks.target import FormTarget
from unmix.attacks.threat import Threat
from unmix.data.clusters import Clusters
from unmix.data.sparse_code import SparseCode

# Numbers in the directions, or their effects, that are followed at a time.
ROOM = 2**22


@dataclass(frozen=True)
class Compass:
    """S directions a point as rows of a table: which row, and with which sign (0: none).

    Points share directions, so neither they nor their effects are formed for each point.
    """

    rows: Float[Tensor, "K d"]
    pick: Int[Tensor, "n S"]
    sign: Float[Tensor, "n S"]

    @classmethod
    def shared(cls, rows: Float[Tensor, "S d"], sign: Float[Tensor, "n S"]) -> Compass:
        """The same rows for every point."""
        return cls(rows, torch.arange(len(rows)).expand(sign.shape), sign)

    def steep(self, threat: Threat) -> Compass:
        """At unit length; where that is not the same, with the steepest steps beside them."""
        length = threat.length(self.rows).unsqueeze(1)
        rows = torch.where(length > 0, self.rows / length, 0.0)
        if threat.norm == "l2":
            return Compass(rows, self.pick, self.sign)
        both = torch.cat([rows, threat.steepest(self.rows)])
        pick = torch.cat([self.pick, self.pick + len(rows)], 1)
        return Compass(both, pick, torch.cat([self.sign, self.sign], 1))

    def line(self, problem: Problem, point: Int[Tensor, " p"]) -> Line:
        """Rays of some points, all directions of the first before those of the second."""
        pick, sign = self.pick[point].flatten(), self.sign[point].flatten().unsqueeze(1)
        whose, judge = point.repeat_interleave(self.pick.shape[1]), problem.judge
        if problem.linear and isinstance(judge, FormTarget):
            effect = self.rows.double() @ judge.w.T
            return Line(problem, whose, problem.preactivations[whose], sign * effect[pick], True)
        x = problem.x[whose].double()
        return Line(problem, whose, x, sign * self.rows.double()[pick], False)

    def of(self, point: Int[Tensor, " p"], which: Int[Tensor, " p"]) -> Float[Tensor, "p d"]:
        """The chosen direction of each point."""
        sign = self.sign[point, which].unsqueeze(1).double()
        return sign * self.rows.double()[self.pick[point, which]]


class Direction(Attack):
    """Follows given directions and keeps, for each point, the one that fools it first."""

    @abstractmethod
    def directions(self, problem: Problem) -> Compass:
        """Directions of any length."""

    def tried(self, problem: Problem) -> Compass:
        """Directions of unit length."""
        return self.directions(problem).steep(problem.threat)

    def search(self, problem: Problem, radii: Sequence[float]) -> Found:
        found, compass = Found.none(problem), self.tried(problem)
        count = compass.pick.shape[1]
        together = max(1, ROOM // (count * problem.x.shape[1]))
        for point in problem.todo.split(together):
            best, which = compass.line(problem, point).first().reshape(-1, count).min(1)
            hit = best.isfinite()
            u = compass.of(point[hit], which[hit])
            found.delta[point[hit]] = best[hit].unsqueeze(1) * u
            found.hit[point[hit]] = True
        return found


class AverageDirection(Direction):
    """-y U, U = sum_{J+} mu - sum_{J-} mu (averaging: Remark 4.2, Thms 4.5, D.4; pReLU: d_0)."""

    kind: Literal["average-direction"] = "average-direction"

    def applies(self, problem: Problem) -> bool:
        return isinstance(problem.data, Clusters)

    def directions(self, problem: Problem) -> Compass:
        u = problem.data.signs @ problem.centres
        return Compass.shared(u.unsqueeze(0), -problem.batch.y[0].double().unsqueeze(1))


class NearestOpposite(Direction):
    """mu_l - mu_c towards each centre l of the other label (pReLU, Thm 3); the best counts."""

    kind: Literal["nearest-opposite"] = "nearest-opposite"

    def applies(self, problem: Problem) -> bool:
        return isinstance(problem.data, Clusters)

    def directions(self, problem: Problem) -> Compass:
        data, mu = problem.data, problem.centres
        rows = (mu.unsqueeze(0) - mu.unsqueeze(1)).flatten(0, 1)
        own, y = problem.batch.cluster[0], problem.batch.y[0].double().unsqueeze(1)
        pick = own.unsqueeze(1) * data.k + torch.arange(data.k)
        return Compass(rows, pick, (y != data.signs).double())


class LabelDirection(Direction):
    """-y M w*: the universal perturbation of sparse codes (feature purification, Thm 5.1c, E.1).

    The paper has the sign twice; x + delta with delta = -y c M w* is what lowers y <M w*, x>.
    """

    kind: Literal["label-direction"] = "label-direction"

    def applies(self, problem: Problem) -> bool:
        return isinstance(problem.data, SparseCode)

    def directions(self, problem: Problem) -> Compass:
        seeds, y = [problem.seed], problem.batch.y[0].double()
        return Compass.shared(problem.data.ahead(seeds), -y.unsqueeze(1))


class OtherMeans(Direction):
    """Towards the mean of the points of each other label: known of any data."""

    kind: Literal["other-means"] = "other-means"

    def directions(self, problem: Problem) -> Compass:
        labels, own = problem.y.unique(return_inverse=True)
        share = (own == torch.arange(len(labels)).unsqueeze(1)).double()
        mean = (share @ problem.x.double()) / share.sum(1, keepdim=True)
        rows = (mean.unsqueeze(0) - mean.unsqueeze(1)).flatten(0, 1)
        pick = own.unsqueeze(1) * len(labels) + torch.arange(len(labels))
        return Compass(rows, pick, (own.unsqueeze(1) != torch.arange(len(labels))).double())


class RandomDirections(Direction):
    """Uniform directions in R^d: what a perturbation of that size does when nobody aims it."""

    kind: Literal["random"] = "random"
    draws: int = Field(8, ge=1)

    def directions(self, problem: Problem) -> Compass:
        n, d = problem.x.shape
        draws = [problem.draw(f"random.{i}", 1, d)[:, 0] for i in range(self.draws)]
        rows = torch.cat(draws)
        if problem.threat.norm == "linf":
            rows = rows.sign()
        pick = torch.arange(self.draws) * n + torch.arange(n).unsqueeze(1)
        return Compass(rows, pick, torch.ones(n, self.draws, dtype=torch.float64))

    def tried(self, problem: Problem) -> Compass:
        """As they are: steepest steps would be aimed."""
        compass = self.directions(problem)
        length = problem.threat.length(compass.rows).unsqueeze(1)
        return Compass(compass.rows / length, compass.pick, compass.sign)


def known(problem: Problem) -> list[Compass]:
    """Every closed form that applies: starts of the other attacks."""
    members = (AverageDirection(), NearestOpposite(), LabelDirection(), OtherMeans())
    return [m.tried(problem) for m in members if m.applies(problem)]
