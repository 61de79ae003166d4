"""A run of the symmetric net seen where it learns: in the basis of its features, or in R^d."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from unmix.data.sparse_code import SparseCode
from unmix.errors import DataError
from unmix.experiment import Run
from unmix.nets.base import Params
from unmix.nets.mixture import ALIVE, Mixture, Reading
from unmix.nets.symmetric import Symmetric
from unmix.perturbations.base import Points, Scene
from unmix.train.engines.symmetric import SymmetricGemm

# Points on which activity and other means over the distribution are taken.
POINTS = 2000


@dataclass(frozen=True)
class Coded:
    """Some weights of a run where they learn, with the threshold, the noise and the data.

    w is M^T w, and points are codes, where the features are orthonormal; else both are in R^d.
    """

    w: Float[Tensor, "R m d"]
    params: Params
    data: SparseCode
    seeds: tuple[int, ...]
    reading: Reading

    @classmethod
    def of(cls, run: Run, weights: str = "after") -> Coded:
        """`weights`: "after" training, "before" its adversarial part, or at the "start"."""
        data, e = run.data, run.experiment
        if not isinstance(e.net, Symmetric):
            hint = "--set net.kind=symmetric"
            raise DataError(f"this probe reads symmetric nets, not a {e.net.named!r} net", hint)
        params = run.params
        if weights == "start":
            params = run.initial
        elif weights == "before":
            if "before" not in run.trace.final:
                raise DataError("this run has no adversarial part", "--set train.kind=purification")
            params = params | {"w": run.trace.final["before"]}
        w = params["w"]
        if data.orthonormal and data.basis != "identity":
            w = w @ data.dictionary(e.seeds, w.dtype)
        return cls(w, params | {"w": w}, data, e.seeds, Reading.of(data, e.seeds, w))

    @property
    def label_vector(self) -> Float[Tensor, "R D"]:
        """w*."""
        return self.reading.label_vector

    @property
    def mixture(self) -> Mixture:
        """Neurons feature by feature."""
        return self.reading(self.w)

    @property
    def u(self) -> Float[Tensor, "R m D"]:
        """<w_i, M_j>."""
        return self.reading.coordinates(self.w)

    @property
    def learner(self) -> SymmetricGemm:
        """Outputs and gradients at `points`."""
        return SymmetricGemm.still(self.params)

    @property
    def reader(self) -> SymmetricGemm:
        """The same net as a function of codes, f(M z): its weights there are M^T w."""
        if self.data.orthonormal:
            return self.learner
        return SymmetricGemm.still(self.params | {"w": self.u})

    @property
    def scene(self) -> Scene:
        """What a perturbation sees; an l_inf ball stands in input space."""
        turned = self.data.orthonormal and self.data.basis != "identity"
        matrix = self.data.dictionary(self.seeds, self.w.dtype) if turned else None
        return Scene(self.learner, self.reading.ahead, matrix, self.seeds, "probe.noise")

    def points(self, n: int = POINTS, purpose: str = "test") -> tuple[Points, Tensor]:
        """Held-out points where the weights are, sparse where there is no noise."""
        if self.data.sparse:
            return self.data.codes(self.seeds, n, purpose, self.w.dtype)
        plain: SparseCode = self.data
        if self.data.orthonormal:
            plain = self.data.override("basis=identity")
        coded = plain.sample(self.seeds, n, purpose, self.w.dtype)
        return coded.x, coded.y

    def orthogonal(self) -> None:
        """Refuse features that are no orthonormal basis of R^d."""
        if self.data.orthonormal and self.data.count == self.data.d:
            return
        came = f"basis={self.data.basis} with D={self.data.count} features in d={self.data.d}"
        hint = "dense-mixture, tickets, growth, purified, density and sparsity take others, too"
        raise DataError(f"this probe needs an orthonormal basis of features; got {came}", hint)

    def alive(self) -> Bool[Tensor, "R m"]:
        """Neurons that are on at 0.5 % of the points or more."""
        return self.learner.activity(self.points()[0]) >= ALIVE


def per_replica(values: list[Tensor]) -> Float[Tensor, " R"]:
    """One number a replica, from a list of them."""
    return torch.stack([value.double() for value in values])
