"""The symmetric net (feature purification, section 4): neurons in pairs +-w, one threshold b.

    f(x) = sum_i R(<w_i, x>) - R(-<w_i, x>),    R(s) = E relu(s - b + rho),   rho ~ N(0, sigma^2)

so f(-x) = -f(x). Parameters: `w` [R m d], `b` [R] and `sigma` [R], the noise of the pre-activations
at the end of training, averaged out. The second layer is frozen at 1, and sign(0) = +1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from unmix.data.base import Batch
from unmix.data.sparse_code import SparseCode
from unmix.errors import DataError, SpecError
from unmix.nets.activations import GaussianRelu
from unmix.nets.base import Network, Params
from unmix.nets.form import Form
from unmix.streams import normals

# What a search in single precision leaves out of each branch: less than 1e-7 sigma. In float64
# what lies beyond 9 sigma, 1e-20 sigma, is below the last digit.
REACH, EXACT = 5.0, 9.0
# Points and neurons, as indices.
Entries = tuple[Tensor, ...]


class Symmetric(Network):
    """m neurons at random, w_i ~ N(0, sigma_0^2 I), or the pure dictionary, w_i = +-M_j."""

    kind: Literal["symmetric"] = "symmetric"
    m: int = Field(1200, ge=1, description="number of neurons, each with its mirror image")
    b: float = Field(0.08, gt=0, description="b^(0), the threshold before training")
    c1: float = Field(2.2, gt=0, description="sigma_0 = b^(0) / sqrt(c1 log d)")
    initial: Literal["gaussian", "pure"] = Field(
        "gaussian", description="random weights, or m/D copies of sign(w*_j) M_j"
    )
    smoothing: float = Field(0.1, ge=0, description="sigma / b before training")

    takes = (SparseCode,)

    def check(self, data: Any) -> None:
        super().check(data)
        if self.initial == "pure" and self.m % data.count:
            hint = f"for example --set net.m={4 * data.count}"
            features = f"data.d={data.d}" if data.D is None else f"data.D={data.D}"
            raise SpecError(f"net.m={self.m}: expected a multiple of {features}", hint)

    def scale(self, d: int) -> float:
        """sigma_0."""
        return self.b / math.sqrt(self.c1 * math.log(d))

    def neurons(self, data: SparseCode) -> int:
        return self.m

    def start(self, data: SparseCode, seeds: Sequence[int], batch: Batch) -> Params:
        dtype = batch.x.dtype
        if self.initial == "gaussian":
            drawn = normals(seeds, "init.w", (self.m, data.d), torch.float64)
            w = self.scale(data.d) * drawn
        else:
            signs = data.label_vector(seeds)[:, : data.count].sign().unsqueeze(-1)
            w = (data.features(seeds) * signs).repeat(1, self.m // data.count, 1)
        b = torch.full((len(seeds),), self.b, dtype=dtype)
        return {"w": w.to(dtype), "b": b, "sigma": self.smoothing * b}

    def classifier(self, data: SparseCode, params: Params) -> SymmetricModel:
        return SymmetricModel(self, data, params)


@dataclass(frozen=True)
class SymmetricModel:
    """The net with parameters, both branches computed in full: plain, and right everywhere."""

    net: Symmetric
    data: SparseCode
    params: Params

    def double(self) -> SymmetricModel:
        params = {name: value.double() for name, value in self.params.items()}
        return SymmetricModel(self.net, self.data, params)

    @cached_property
    def form(self) -> Form:
        """2m neurons w and -w with bias -b; all replicas have one sigma, as they have one b."""
        w, b, sigma = (self.params[name] for name in ("w", "b", "sigma"))
        if not (sigma == sigma[0]).all():
            raise DataError("replicas with different sigma have no common activation")
        bias = -b.unsqueeze(1).expand(-1, 2 * w.shape[1])
        second = torch.cat([w.new_ones(w.shape[1], 1), -w.new_ones(w.shape[1], 1)])
        readout = second.expand(len(w), -1, -1)
        return Form(torch.cat([w, -w], 1), bias, readout, GaussianRelu(float(sigma[0])))

    def decision(self, x: Float[Tensor, "R n d"]) -> Float[Tensor, "R n"]:
        """f(x)."""
        return self.form.decision(x)

    def predict(self, x: Float[Tensor, "R n d"]) -> Float[Tensor, "R n"]:
        f = self.decision(x)
        return torch.where(f >= 0, torch.ones_like(f), -torch.ones_like(f))

    def accuracy(self, batch: Batch) -> Float[Tensor, " R"]:
        return (self.predict(batch.x) == batch.y).double().mean(1)

    def target(self) -> SymmetricTarget:
        """The first replica as attacks see it."""
        w, b, sigma = (self.params[name][0].detach() for name in ("w", "b", "sigma"))
        exact = w.dtype == torch.float64
        return SymmetricTarget(w, float(b), float(sigma), EXACT if exact else REACH)


@dataclass(frozen=True)
class SymmetricTarget:
    """One net, its scores (-f/2, f/2) and their slopes; a branch below -reach sigma counts as 0."""

    w: Float[Tensor, "m d"]
    b: float
    sigma: float
    reach: float

    @property
    def dtype(self) -> torch.dtype:
        return self.w.dtype

    def scores(self, x: Float[Tensor, "P d"]) -> Float[Tensor, "P 2"]:
        s = x @ self.w.T
        return self._sides(self._values(s, self._on(s)).sum(1))

    def pull(
        self, x: Float[Tensor, "P d"], lowered: Callable[[Tensor], tuple[Tensor, Tensor]]
    ) -> tuple[Float[Tensor, "P 2"], Tensor, Float[Tensor, "P d"]]:
        """Scores, an objective of them, and its gradient in x."""
        s = x @ self.w.T
        on = self._on(s)
        scores = self._sides(self._values(s, on).sum(1))
        objective, slopes = lowered(scores)
        along = (slopes[:, 1] - slopes[:, 0]) / 2
        return scores, objective, along.unsqueeze(1) * (self._steep(s, on) @ self.w)

    def double(self) -> SymmetricTarget:
        """To the last digit, whatever the reach was."""
        return SymmetricTarget(self.w.double(), self.b, self.sigma, EXACT)

    def _on(self, s: Float[Tensor, "P m"]) -> Entries | None:
        """Entries within reach, where one branch is all; None where both must be looked at."""
        if self.b < self.reach * self.sigma:
            return None
        return (s.abs() >= self.b - self.reach * self.sigma).nonzero(as_tuple=True)

    def _values(self, s: Float[Tensor, "P m"], on: Entries | None) -> Float[Tensor, "P m"]:
        """R(s) - R(-s)."""
        relu = GaussianRelu(self.sigma)
        if on is None:
            return relu.value(s - self.b) - relu.value(-s - self.b)
        value = torch.zeros_like(s)
        value[on] = relu.value(s[on].abs() - self.b) * s[on].sign()
        return value

    def _steep(self, s: Float[Tensor, "P m"], on: Entries | None) -> Float[Tensor, "P m"]:
        """Its slope."""
        relu = GaussianRelu(self.sigma)
        if on is None:
            return relu.slope(s - self.b) + relu.slope(-s - self.b)
        steep = torch.zeros_like(s)
        steep[on] = relu.slope(s[on].abs() - self.b)
        return steep

    @staticmethod
    def _sides(f: Float[Tensor, " P"]) -> Float[Tensor, "P 2"]:
        return torch.stack([-f / 2, f / 2], 1)
