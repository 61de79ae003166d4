"""Coordinates in which perturbations are searched.

A frame evaluates a classifier at x + delta for many rows (perturbations of points, several a
point), pulls slopes back, and does the geometry. There are two:

InputFrame    delta itself, for every classifier and every threat
NeuronFrame   z = z0 + W delta, for two-layer nets in l2 without a box: there a perturbation acts
              through z alone, the shortest with a given effect lies in the span of the neurons, and
              everything is a matter of the Gram matrix G = W W^T: with s = dm/dz

                  <grad m, delta> = s . dz,   |grad m|^2 = s^T G s,   W grad m = G s,

              delta = W^T G^-1 dz. One product with G a step, whatever the input dimension.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from unmix.attacks.objectives import Objective, Scores
from unmix.attacks.target import FormTarget, Target
from unmix.attacks.threat import Threat

Rows = Float[Tensor, "P D"]
Column = Float[Tensor, " P"]
Which = Int[Tensor, " P"]
Basis = tuple[Float[Tensor, "D d"] | None, Float[Tensor, "D D"] | None]

# Nearly parallel neurons make G singular. This share of its largest entry is added before it is
# inverted; an effect changes by less than the root of it, and is mended when a result is judged.
RIDGE = 1e-13


@dataclass(frozen=True)
class Moves:
    """Rows of perturbations: of which point, the effect dz, and |delta|^2 where dz hides it."""

    point: Which
    dz: Rows
    square: Column

    def take(self, rows: Tensor) -> Moves:
        """Some rows, by index or mask."""
        return Moves(self.point[rows], self.dz[rows], self.square[rows])

    def where(self, rows: Tensor, other: Moves) -> Moves:
        """Rows of `other` where the mask says so, else these."""
        dz = torch.where(rows.unsqueeze(1), other.dz, self.dz)
        return Moves(self.point, dz, torch.where(rows, other.square, self.square))

    def replaced(self, rows: Tensor, new: Moves) -> Moves:
        """A copy with some rows, by index, set to new ones."""
        dz, square = self.dz.clone(), self.square.clone()
        dz[rows], square[rows] = new.dz, new.square
        return Moves(self.point, dz, square)

    def turned(self, point: Which, pick: Which, sign: Column) -> Moves:
        """Rows of this table as moves of points, with signs."""
        sign = sign.to(self.dz)
        return Moves(point, sign.unsqueeze(1) * self.dz[pick], sign * sign * self.square[pick])

    def times(self, t: Column) -> Moves:
        """t delta."""
        return Moves(self.point, t.unsqueeze(1) * self.dz, t * t * self.square)

    @classmethod
    def joined(cls, parts: list[Moves]) -> Moves:
        columns = zip(*((m.point, m.dz, m.square) for m in parts), strict=True)
        return cls(*(torch.cat(column) for column in columns))


class Frame(ABC):
    """Points z0 [n D], and what can be done with perturbations of them."""

    z0: Rows

    @property
    def points(self) -> int:
        return len(self.z0)

    @property
    def basis(self) -> Basis:
        """Of which perturbations are mixtures, in float64, and its Gram matrix; or none."""
        return None, None

    @property
    @abstractmethod
    def width(self) -> int:
        """Standard normals that a random direction takes."""

    @abstractmethod
    def random(self, point: Which, draw: Rows) -> Moves:
        """Directions of unit length made of standard normals [P width]."""

    @abstractmethod
    def along(self, directions: Float[Tensor, "K d"]) -> Moves:
        """A table of directions of the input space, at unit length within the frame."""

    @abstractmethod
    def length(self, moves: Moves) -> Column:
        """|delta|."""

    @abstractmethod
    def closest(self, moves: Moves, slopes: Rows, value: Column, share: Tensor | float) -> Moves:
        """A share of the way to the shortest perturbation at which the linearised value is 0."""

    @abstractmethod
    def step(self, moves: Moves, slopes: Rows, size: Column, radius: Column) -> Moves:
        """A step of steepest descent of a given size, projected into the ball."""

    @abstractmethod
    def momentum(self, now: Moves, moved: Moves, before: Moves, radius: Column) -> Moves:
        """P(now + 3/4 (moved - now) + 1/4 (now - before)), APGD's step."""

    @abstractmethod
    def mixed(self, moves: Moves) -> Float[Tensor, "P D"]:
        """delta as mixtures of the basis, or as it is."""

    @abstractmethod
    def scores_at(self, z: Rows) -> Scores:
        """Scores at coordinates z."""

    @abstractmethod
    def pull_at(self, z: Rows, lowered: Objective) -> tuple[Scores, Tensor, Rows]:
        """Scores, the objective's value and its slopes at coordinates z."""

    def lift(self, moves: Moves) -> Float[Tensor, "P d"]:
        """delta."""
        mix, (basis, _) = self.mixed(moves), self.basis
        return mix if basis is None else mix @ basis

    def still(self, point: Which) -> Moves:
        """No perturbation."""
        zero = self.z0.new_zeros(len(point), self.z0.shape[1])
        return Moves(point, zero, zero.new_zeros(len(point)))

    def scores(self, moves: Moves) -> Scores:
        return self.scores_at(self.z0[moves.point] + moves.dz)

    def pull(self, moves: Moves, lowered: Objective) -> tuple[Scores, Tensor, Rows]:
        return self.pull_at(self.z0[moves.point] + moves.dz, lowered)


@dataclass(frozen=True)
class InputFrame(Frame):
    """delta in input coordinates, dz = delta."""

    target: Target
    z0: Rows
    threat: Threat

    @property
    def width(self) -> int:
        return self.z0.shape[1]

    def random(self, point: Which, draw: Rows) -> Moves:
        """Normal directions; for linf their signs, the corners of the ball."""
        return self._moves(point, self._unit(draw.sign() if self.threat.norm == "linf" else draw))

    def along(self, directions: Float[Tensor, "K d"]) -> Moves:
        return self._moves(torch.arange(len(directions)), self._unit(directions.to(self.z0)))

    def length(self, moves: Moves) -> Column:
        return self.threat.length(moves.dz)

    def closest(self, moves: Moves, slopes: Rows, value: Column, share: Tensor | float) -> Moves:
        gap = value - (slopes * moves.dz).sum(1)
        there = self.threat.closest(self.z0[moves.point], slopes, gap)
        c = share.unsqueeze(1) if isinstance(share, Tensor) else share
        return self._moves(moves.point, moves.dz + c * (there - moves.dz))

    def step(self, moves: Moves, slopes: Rows, size: Column, radius: Column) -> Moves:
        moved = moves.dz - size.unsqueeze(1) * self.threat.step(slopes)
        return self._moves(moves.point, self.threat.project(self.z0[moves.point], moved, radius))

    def momentum(self, now: Moves, moved: Moves, before: Moves, radius: Column) -> Moves:
        dz = _momentum(now, moved, before)
        return self._moves(now.point, self.threat.project(self.z0[now.point], dz, radius))

    def mixed(self, moves: Moves) -> Float[Tensor, "P D"]:
        return moves.dz

    def scores_at(self, z: Rows) -> Scores:
        return self.target.scores(self._boxed(z))

    def pull_at(self, z: Rows, lowered: Objective) -> tuple[Scores, Tensor, Rows]:
        return self.target.pull(self._boxed(z), lowered)

    def _boxed(self, z: Rows) -> Rows:
        return z if self.threat.box is None else z.clamp(*self.threat.box)

    def _unit(self, delta: Rows) -> Rows:
        length = self.threat.length(delta).unsqueeze(1)
        return torch.where(length > 0, delta / length, 0.0)

    def _moves(self, point: Which, delta: Rows) -> Moves:
        return Moves(point, delta, delta.new_zeros(len(delta)))


@dataclass(frozen=True)
class NeuronFrame(Frame):
    """dz = W delta on a two-layer net, by the Gram matrix of its neurons; l2 without a box.

    `gram` is in the precision of the search, `products` the same in float64, `root` its factor.
    """

    target: FormTarget
    z0: Rows
    gram: Float[Tensor, "M M"]
    root: Float[Tensor, "M M"]
    products: Float[Tensor, "M M"]

    @classmethod
    def of(cls, target: FormTarget, z0: Float[Tensor, "n M"]) -> NeuronFrame:
        """The Gram matrix is formed and factored in float64: parallel neurons are delicate."""
        w = target.w.double()
        gram = w @ w.T
        ridge = RIDGE * float(gram.diagonal().max()) + torch.finfo(gram.dtype).tiny
        root = torch.linalg.cholesky(gram + ridge * torch.eye(len(gram)).to(gram))
        return cls(target, z0, gram.to(z0), root, gram)

    @property
    def width(self) -> int:
        return len(self.gram)

    def random(self, point: Which, draw: Rows) -> Moves:
        """Uniform in the span: of a direction in R^d only sqrt(r/d) of the length lies there."""
        unit = draw / draw.norm(dim=1, keepdim=True)
        return Moves(point, unit @ self.root.T.to(unit), unit.new_ones(len(unit)))

    def along(self, directions: Float[Tensor, "K d"]) -> Moves:
        """The part in the span has the same effect."""
        dz = directions.to(self.root) @ self.target.w.T.double()
        square = self._whitened(dz).square().sum(1)
        there = square > 0
        dz = torch.where(there.unsqueeze(1), dz / square.sqrt().unsqueeze(1), 0.0)
        return Moves(torch.arange(len(dz)), dz.to(self.z0), there.to(self.z0))

    def length(self, moves: Moves) -> Column:
        return moves.square.clamp_min(0).sqrt()

    def closest(self, moves: Moves, slopes: Rows, value: Column, share: Tensor | float) -> Moves:
        """delta' = -(gap / |g|^2) g with gap = value - <g, delta>, no shorter than 0."""
        effect, steep, inner = self._gradient(moves, slopes)
        factor = -(value - inner).clamp_min(0) / steep
        return self._blend(moves, 1 - share, share * factor, effect, steep, inner)

    def step(self, moves: Moves, slopes: Rows, size: Column, radius: Column) -> Moves:
        effect, steep, inner = self._gradient(moves, slopes)
        moved = self._blend(moves, 1.0, -size / steep.sqrt(), effect, steep, inner)
        return self._shortened(moved, radius)

    def momentum(self, now: Moves, moved: Moves, before: Moves, radius: Column) -> Moves:
        return self._shortened(self._measured(now.point, _momentum(now, moved, before)), radius)

    def plus(self, one: Moves, other: Moves) -> Moves:
        """The sum of two perturbations of the same points."""
        return self._measured(one.point, one.dz + other.dz)

    @property
    def basis(self) -> Basis:
        return self.target.w.double(), self.products

    def mixed(self, moves: Moves) -> Float[Tensor, "P D"]:
        return torch.cholesky_solve(moves.dz.double().T, self.root).T

    def scores_at(self, z: Rows) -> Scores:
        return self.target.head.scores(z)

    def pull_at(self, z: Rows, lowered: Objective) -> tuple[Scores, Tensor, Rows]:
        return self.target.head.pull(z, lowered)

    def _shortened(self, moves: Moves, radius: Column) -> Moves:
        return moves.times((radius / self.length(moves).clamp_min(_tiny(radius))).clamp_max(1.0))

    def _gradient(self, moves: Moves, slopes: Rows) -> tuple[Rows, Column, Column]:
        """G s, |grad|^2 and <grad, delta>."""
        effect = slopes @ self.gram
        steep = (slopes * effect).sum(1).clamp_min(_tiny(effect))
        return effect, steep, (slopes * moves.dz).sum(1)

    def _blend(
        self,
        moves: Moves,
        a: Tensor | float,
        b: Column,
        effect: Rows,
        steep: Column,
        inner: Column,
    ) -> Moves:
        """a delta + b grad."""
        scale = a.unsqueeze(1) if isinstance(a, Tensor) else a
        dz = torch.addcmul(scale * moves.dz, b.unsqueeze(1), effect)
        square = a * a * moves.square + 2 * a * b * inner + b * b * steep
        return Moves(moves.point, dz, square)

    def _measured(self, point: Which, dz: Rows) -> Moves:
        """The shortest perturbation with a given effect."""
        return Moves(point, dz, self._whitened(dz.double()).square().sum(1).to(dz))

    def _whitened(self, dz: Rows) -> Rows:
        """Coordinates in an orthonormal basis of the span."""
        return torch.linalg.solve_triangular(self.root, dz.T, upper=False).T


def _momentum(now: Moves, moved: Moves, before: Moves) -> Rows:
    return 0.75 * moved.dz + 0.5 * now.dz - 0.25 * before.dz


def _tiny(like: Tensor) -> float:
    return torch.finfo(like.dtype).tiny
