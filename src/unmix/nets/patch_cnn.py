"""The patch CNN (robust and non-robust features, section 2.3), and its minima of section 3.

    F_i(X) = sum_{r<=m} sum_{p<=P} s(<w_ir, x_p>)

with s the smoothed ReLU. The predicted class is the argmax of F. Where two outputs share the
largest value there is none (-1): a tie is an error.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from unmix.data.base import Batch
from unmix.data.patches import Patches
from unmix.nets.activations import SmoothedRelu
from unmix.nets.base import Network, Params
from unmix.streams import normals


class PatchNet(Network):
    """What all patch CNNs share: the activation, and how weights become a classifier."""

    takes = (Patches,)

    q: float = Field(3.0, ge=2, description="power of the smoothed ReLU's foot")
    rho: float = Field(1.0, gt=0, description="where the smoothed ReLU becomes linear")

    @property
    @abstractmethod
    def width(self) -> int:
        """m, filters of a class."""

    def neurons(self, data: Any) -> int:
        return int(data.k * self.width)

    def activation(self) -> SmoothedRelu:
        return SmoothedRelu(self.q, self.rho)

    def classifier(self, data: Any, params: Params) -> PatchModel:
        return PatchModel(self, data, params)


class PatchCnn(PatchNet):
    """m filters a class, all trained, from N(0, sigma_0^2 I)."""

    kind: Literal["patch-cnn"] = "patch-cnn"
    m: int = Field(100, ge=1, description="filters of a class")
    sigma_0: float = Field(0.01, ge=0, description="scale of the start")

    packs = ("sigma_0",)

    @property
    def width(self) -> int:
        return self.m

    def start(self, data: Patches, seeds: Sequence[int], batch: Batch) -> Params:
        shape = (data.k, self.m, data.d)
        return {"w": normals(seeds, "init.w", shape, batch.x.dtype) * self.sigma_0}


class Minimum(PatchNet):
    """One filter a class, gamma times one feature of its class."""

    gamma: float = Field(50.0, gt=0, description="scale of the filters; the theory lets it grow")

    @property
    def width(self) -> int:
        return 1

    def start(self, data: Patches, seeds: Sequence[int], batch: Batch) -> Params:
        w = self.gamma * self.feature(data).to(batch.x.dtype)
        return {"w": w.unsqueeze(1).repeat(len(seeds), 1, 1, 1)}

    @abstractmethod
    def feature(self, data: Patches) -> Float[Tensor, "k d"]:
        """The feature that each class uses."""


class NonRobustMinimum(Minimum):
    """w_i = gamma v_i (Prop 3.1)."""

    kind: Literal["patch-non-robust"] = "patch-non-robust"

    def feature(self, data: Patches) -> Float[Tensor, "k d"]:
        return data.axes()[1]


class RobustMinimum(Minimum):
    """w_i = gamma u_i (Prop 3.2)."""

    kind: Literal["patch-robust"] = "patch-robust"

    def feature(self, data: Patches) -> Float[Tensor, "k d"]:
        return data.axes()[0]


@dataclass(frozen=True)
class PatchModel:
    """A patch CNN with weights w [R k m d]."""

    net: PatchNet
    data: Patches
    params: Params

    @property
    def w(self) -> Float[Tensor, "R k m d"]:
        return self.params["w"]

    def double(self) -> PatchModel:
        return PatchModel(self.net, self.data, {n: p.double() for n, p in self.params.items()})

    def preactivations(self, x: Float[Tensor, "R n P d"]) -> Float[Tensor, "R n P km"]:
        """<w_ir, x_p>, the filters of class 1 first."""
        z = x.flatten(1, 2) @ self.w.flatten(1, 2).transpose(1, 2)
        return z.unflatten(1, x.shape[1:3])

    def outputs(self, x: Float[Tensor, "R n P d"]) -> Float[Tensor, "R n k"]:
        s = self.net.activation().value(self.preactivations(x))
        return s.sum(2).unflatten(-1, self.w.shape[1:3]).sum(-1)

    def margin(self, x: Float[Tensor, "R n P d"], y: Int[Tensor, "R n"]) -> Float[Tensor, "R n"]:
        """F_y - max_{j != y} F_j."""
        return margins(self.outputs(x), y)

    def ascent(
        self, x: Float[Tensor, "R n P d"], side: Float[Tensor, "R n k"]
    ) -> Float[Tensor, "R n P d"]:
        """grad_X sum_i side_i F_i, by hand."""
        slope = self.net.activation().slope(self.preactivations(x))
        slope = slope * side.repeat_interleave(self.w.shape[2], -1).unsqueeze(2)
        return (slope.flatten(1, 2) @ self.w.flatten(1, 2)).unflatten(1, x.shape[1:3])

    def predict(self, x: Float[Tensor, "R n P d"]) -> Int[Tensor, "R n"]:
        f = self.outputs(x)
        best = f.amax(-1, keepdim=True)
        return torch.where((f == best).sum(-1) == 1, f.argmax(-1), -1)

    def accuracy(self, batch: Batch) -> Float[Tensor, " R"]:
        return (self.predict(batch.x) == batch.y).double().mean(1)


def margins(f: Float[Tensor, "R n k"], y: Int[Tensor, "R n"]) -> Float[Tensor, "R n"]:
    """Own output minus the best other one."""
    own = y.unsqueeze(-1)
    best = f.scatter(-1, own, -torch.inf).amax(-1)
    return f.gather(-1, own)[..., 0] - best
