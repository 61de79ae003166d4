"""Patch data (robust and non-robust features, Definition of D and Assumption 2.3).

    y uniform on [k],   x_p = alpha_p u_y + xi_p (p in J_R)  or  beta_p v_y + xi_p (p in J_NR)

with u_j = e_j, v_j = e_{k+j} and xi_p ~ N(0, sigma_n^2 I_d) over all coordinates. The axes matter:
an l_inf ball acts on each feature on its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor

from unmix.data.base import Batch, Distribution
from unmix.streams import normals, stream

Range = tuple[float, float]


@dataclass(frozen=True)
class Patched(Batch):
    """Points x [R n P d], their classes (`cluster`, too), which of their patches are robust (J_R),
    and alpha_p or beta_p of each patch."""

    robust: Bool[Tensor, "R n P"]
    signal: Float[Tensor, "R n P"]


class Patches(Distribution):
    """k classes, each with one robust and one non-robust feature; defaults are the paper's."""

    kind: Literal["patches"] = "patches"
    k: int = Field(2, ge=2, description="number of classes")
    d: int = Field(100, ge=4, description="dimension of a patch")
    patches: int = Field(16, ge=1, description="P, patches of a point")
    robust: int = Field(1, ge=0, description="n_R, robust patches of a point")
    alpha: Range = Field((2.0, 2.0), description="alpha_p is uniform in this range")
    beta: Range = Field((1.0, 1.0), description="beta_p is uniform in this range")
    sigma_n: float = Field(0.1, ge=0, description="noise scale of every coordinate")
    classes: Literal["uniform", "balanced"] = Field(
        "uniform", description="y drawn at random, or one class after the other"
    )
    partition: Literal["uniform", "fixed", "binomial"] = Field(
        "uniform",
        description="J_R: a uniform n_R-subset, the first n_R, or each patch with chance n_R/P",
    )

    @model_validator(mode="after")
    def _possible(self) -> Patches:
        if 2 * self.k > self.d:
            raise ValueError(f"2k={2 * self.k} feature axes do not fit into d={self.d}")
        if self.robust > self.patches:
            raise ValueError(f"robust={self.robust} exceeds patches={self.patches}")
        for name, (low, high) in (("alpha", self.alpha), ("beta", self.beta)):
            if not 0 < low <= high:
                raise ValueError(f"{name}: expected 0 < low <= high, got {[low, high]}")
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.patches, self.d)

    @property
    def told(self) -> str:
        return f"k={self.k} P={self.patches} d={self.d}"

    def axes(self) -> Float[Tensor, "2 k d"]:
        """Robust features u, then non-robust features v."""
        return torch.eye(2 * self.k, self.d, dtype=torch.float64).unflatten(0, (2, self.k))

    def sample(
        self, seeds: Sequence[int], n: int, purpose: str, dtype: torch.dtype = torch.float64
    ) -> Patched:
        """n points a seed; `purpose` ("train", "test") names the streams they are drawn from."""
        y = torch.stack([self._labels(seed, n, purpose) for seed in seeds])
        robust = torch.stack([self._partition(seed, n, purpose) for seed in seeds])
        shape = (n, self.patches, self.d)
        x = normals(seeds, f"{purpose}.noise", shape, torch.float64) * self.sigma_n
        axis = self.axis(y, robust)
        size = torch.stack([self._sizes(seed, n, purpose) for seed in seeds])
        signal = torch.where(robust, size[..., 0], size[..., 1])
        x.scatter_add_(-1, axis.unsqueeze(-1), signal.unsqueeze(-1))
        return Patched(x.to(dtype), y, y, robust, signal.to(dtype))

    def features(
        self, seeds: Sequence[int], dtype: torch.dtype = torch.float64
    ) -> Float[Tensor, "R f d"]:
        """u_1..u_k, v_1..v_k, the same for every seed."""
        return self.axes().flatten(0, 1).to(dtype).expand(len(seeds), -1, -1)

    def axis(self, y: Int[Tensor, "R n"], robust: Bool[Tensor, "R n P"]) -> Int[Tensor, "R n P"]:
        """The coordinate of each patch's feature."""
        return torch.where(robust, 0, self.k) + y.unsqueeze(-1)

    def only(
        self,
        batch: Patched,
        features: Literal["robust", "non-robust"],
        gone: Literal["feature", "patch"] = "feature",
    ) -> Patched:
        """The batch with one kind of feature alone (section 4: D_FR and D_FNR).

        "Replaced by the all-zero vector" may mean that the other feature goes and its patch keeps
        the noise, or that the whole patch goes.
        """
        lost = batch.robust if features == "non-robust" else ~batch.robust
        if gone == "patch":
            x = batch.x.masked_fill(lost.unsqueeze(-1), 0)
        else:
            taken = torch.where(lost, -batch.signal, torch.zeros_like(batch.signal))
            axis = self.axis(batch.y, batch.robust).unsqueeze(-1)
            x = batch.x.scatter_add(-1, axis, taken.unsqueeze(-1))
        return replace(batch, x=x, signal=batch.signal.masked_fill(lost, 0))

    def ratios(self, tau: float, eps: float) -> dict[str, float]:
        """The quantities of Assumption 2.3 and of separability, as ratios and never as a verdict.

        The theory wants alpha/beta >> 1, S_tau << 1, alpha/eps >> 1, eps/beta < 1 and the two noise
        ratios near 1; a robust classifier needs alpha/(2 eps) > 1 and, for nets w_i = A u_i in the
        linear regime, n_R (alpha - eps) / (P eps) > 1.
        """
        noise = self.sigma_n * math.sqrt(self.d)
        low, high = self.alpha[0], self.beta[1]
        non_robust = (self.patches - self.robust) * _moment(self.beta, tau)
        dense = self.robust * _moment(self.alpha, tau)
        return {
            "alpha/beta": low / high,
            "S_tau": dense / non_robust if non_robust else math.inf,
            "alpha/eps": low / eps,
            "eps/beta": eps / high,
            "beta/noise": high / noise if noise else math.inf,
            "eps/noise": eps / noise if noise else math.inf,
            "alpha/2eps": low / (2 * eps),
            "robust margin": self.robust * (low - eps) / (self.patches * eps),
        }

    def _labels(self, seed: int, n: int, purpose: str) -> Int[Tensor, " n"]:
        if self.classes == "balanced":
            return torch.arange(n) % self.k
        return torch.from_numpy(stream(seed, f"{purpose}.class").integers(self.k, size=n))

    def _partition(self, seed: int, n: int, purpose: str) -> Bool[Tensor, "n P"]:
        u = torch.from_numpy(stream(seed, f"{purpose}.partition").random((n, self.patches)))
        if self.partition == "binomial":
            return u < self.robust / self.patches
        if self.partition == "fixed":
            return (torch.arange(self.patches) < self.robust).expand(n, -1)
        return u.argsort(-1).argsort(-1) < self.robust

    def _sizes(self, seed: int, n: int, purpose: str) -> Float[Tensor, "n P 2"]:
        """alpha_p and beta_p of every patch, of which one is used."""
        u = torch.from_numpy(stream(seed, f"{purpose}.size").random((n, self.patches, 2)))
        low = torch.tensor([self.alpha[0], self.beta[0]], dtype=torch.float64)
        high = torch.tensor([self.alpha[1], self.beta[1]], dtype=torch.float64)
        return low + (high - low) * u


def _moment(span: Range, tau: float) -> float:
    """E a^tau for a uniform in a range."""
    low, high = span
    if low == high:
        return low**tau
    if tau == -1:
        return math.log(high / low) / (high - low)
    return (high ** (tau + 1) - low ** (tau + 1)) / ((tau + 1) * (high - low))
