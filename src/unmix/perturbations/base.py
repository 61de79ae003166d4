"""A perturbation algorithm A(f, x, y, r) with |A|_p <= tau (feature purification, Def 4.2).

Attacks of the house search for the smallest perturbation of few points; these are made for every
point of every step of a training, at one radius, and must be cheap. What they see is a learner in
the basis of the features, x = M (z + delta), in which an l2 ball is the same and an l_inf ball is
turned.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal, Protocol

from jaxtyping import Float
from torch import Tensor

from unmix.balls import dual, steepest
from unmix.data.sparse_rows import SparseRows
from unmix.spec import Spec

Norm = Literal["l2", "linf"]
Points = Float[Tensor, "R n d"] | SparseRows


class Learner(Protocol):
    """f and its gradient in the input, for the points of R replicas."""

    def outputs(self, x: Points) -> Float[Tensor, "R n"]:
        """f."""

    def input_gradient(self, x: Points) -> Float[Tensor, "R n d"]:
        """df/dx."""

    def one(self, r: int) -> Learner:
        """Its replica r alone."""


@dataclass(frozen=True)
class Scene:
    """A learner at work: its code, the labels' direction w*, the dictionary (None: the identity).

    `purpose` names the random stream of this step.
    """

    learner: Learner
    label_vector: Float[Tensor, "R d"]
    dictionary: Float[Tensor, "R d d"] | None
    seeds: tuple[int, ...]
    purpose: str

    def one(self, r: int) -> Scene:
        """Replica r alone."""
        matrix = None if self.dictionary is None else self.dictionary[r : r + 1]
        labels = self.label_vector[r : r + 1]
        return Scene(self.learner.one(r), labels, matrix, (self.seeds[r],), self.purpose)

    def to_input(self, z: Float[Tensor, "R n d"]) -> Float[Tensor, "R n d"]:
        """M z."""
        return z if self.dictionary is None else z @ self.dictionary.transpose(1, 2)

    def to_code(self, x: Float[Tensor, "R n d"]) -> Float[Tensor, "R n d"]:
        """M^T x."""
        return x if self.dictionary is None else x @ self.dictionary


class Perturbation(Spec, ABC):
    """One rule for A; a member says in which norm its radius is meant."""

    kind: str
    norm: Norm = "l2"

    @abstractmethod
    def perturb(
        self, scene: Scene, x: Points, y: Float[Tensor, "R n"], tau: float
    ) -> Float[Tensor, "R n d"]:
        """A in the basis of the features; the learner stays as it is."""


def descending(
    g: Float[Tensor, "R n d"], y: Float[Tensor, "R n"], norm: Norm, least: float
) -> Float[Tensor, "R n d"]:
    """argmin <y g, delta> over |delta|_p <= 1 where |g|_q >= least, else 0 (the zero rule).

    g = df/dx. l2: -y g / |g|_2; linf: -y sign(g), with |g|_1 against the threshold.
    """
    on = dual(g, norm) >= least
    return steepest(g, norm) * (-y * on).unsqueeze(-1)


def dense(x: Points) -> Float[Tensor, "R n d"]:
    """Points with their zeros."""
    return x.dense() if isinstance(x, SparseRows) else x
