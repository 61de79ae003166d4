"""A run of the symmetric net seen in the basis of its features, where codes are sparse."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from unmix.data.sparse_code import SparseCode
from unmix.errors import DataError
from unmix.experiment import Run
from unmix.nets.base import Params
from unmix.nets.mixture import ALIVE, Mixture
from unmix.nets.symmetric import Symmetric
from unmix.perturbations.base import Points, Scene
from unmix.train.engines.symmetric import SymmetricGemm

# Points on which activity and other means over the distribution are taken.
POINTS = 2000


@dataclass(frozen=True)
class Coded:
    """u = M^T w of some weights of a run, with w*, the threshold, the noise and the data."""

    u: Float[Tensor, "R m d"]
    params: Params
    data: SparseCode
    seeds: tuple[int, ...]
    label_vector: Float[Tensor, "R d"]

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
        turned = data.basis != "identity"
        u = w @ data.dictionary(e.seeds, w.dtype) if turned else w
        labels = data.label_vector(e.seeds, w.dtype)
        return cls(u, params | {"w": u}, data, e.seeds, labels)

    @property
    def mixture(self) -> Mixture:
        """Neurons feature by feature, which every one of the d coordinates must be."""
        if self.data.count < self.data.d:
            came = f"D={self.data.count} features in d={self.data.d} dimensions"
            hint = "density, sparsity, mixtures and every attack take D < d"
            raise DataError(f"this probe reads a feature in each coordinate; got {came}", hint)
        return Mixture(self.u, self.label_vector)

    @property
    def learner(self) -> SymmetricGemm:
        """Outputs and gradients in the basis of the features."""
        return SymmetricGemm.still(self.params)

    @property
    def scene(self) -> Scene:
        """What a perturbation sees; an l_inf ball stands in input space."""
        turned = self.data.basis != "identity"
        matrix = self.data.dictionary(self.seeds, self.u.dtype) if turned else None
        return Scene(self.learner, self.label_vector, matrix, self.seeds, "probe.noise")

    def points(self, n: int = POINTS, purpose: str = "test") -> tuple[Points, Tensor]:
        """Held-out points in the basis of the features, sparse where there is no noise."""
        if self.data.sigma_x or self.data.sigma_s:
            plain: SparseCode = self.data.override("basis=identity")
            coded = plain.sample(self.seeds, n, purpose, self.u.dtype)
            return coded.x, coded.y
        return self.data.codes(self.seeds, n, purpose, self.u.dtype)

    def alive(self) -> Bool[Tensor, "R m"]:
        """Neurons that are on at 0.5 % of the points or more."""
        return self.learner.activity(self.points()[0]) >= ALIVE


def per_replica(values: list[Tensor]) -> Float[Tensor, " R"]:
    """One number a replica, from a list of them."""
    return torch.stack([value.double() for value in values])
