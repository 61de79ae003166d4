"""The pReLU net on real data: several classes, biases on top, and pixels that it first centres.

With the centre c (mean training image), x_c = x - c, u_j = w_j/|w_j| and cos_j = <x_c, u_j>/|x_c|:

    Phi_j(x) = |w_j| |x_c|^s max(cos_j, 0)^p,     outputs = Phi V + b,     label = argmax

The paper says that data are "centred and normalised"; its code divides the p-th power by
|x_c|^(p-1) and leaves p = 1 as it is, so that every p is homogeneous of degree s = 1 in x_c.
`inputs` names that reading and the two others: "cosine" s = 1, "unit" (the text) s = 0, and "raw"
(centred only) s = p. Preprocessing loses nothing: x = c + |x_c| (x_c/|x_c|).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from unmix.data.base import Batch
from unmix.data.images.distribution import Images
from unmix.data.images.features import Features
from unmix.nets.base import Network, Params
from unmix.nets.power_target import PowerTarget
from unmix.streams import stream

# Pre-activations of so many numbers are held at once.
BLOCK = 1 << 22


class PReLUClasses(Network):
    """h neurons with exponent p, one output a class; all weights and output biases are trained."""

    kind: Literal["prelu-classes"] = "prelu-classes"
    p: float = Field(3.0, ge=1, description="exponent, any real number >= 1")
    h: int = Field(500, ge=1, description="number of neurons")
    inputs: Literal["cosine", "unit", "raw"] = Field(
        "cosine", description="power of |x_c| that is left: 1 (the code), 0 (the text), p"
    )
    fan: Literal["hidden", "inputs"] = Field(
        "hidden", description="what the initial bound sqrt(6/fan) counts: h (the code), or d"
    )
    offset: Literal["trained", "none"] = Field("trained", description="output biases")

    takes = (Images, Features)

    def neurons(self, data: Any) -> int:
        return self.h

    def degree(self) -> float:
        """s."""
        return {"cosine": 1.0, "unit": 0.0, "raw": self.p}[self.inputs]

    @property
    def trained(self) -> tuple[str, ...]:
        """The parameters that a training moves."""
        return ("w", "v", "b") if self.offset == "trained" else ("w", "v")

    def start(self, data: Any, seeds: Sequence[int], batch: Batch) -> Params:
        """Uniform within sqrt(6/fan) below and 1/sqrt(h) on top; the centre is a parameter that
        no training moves, so that a stored net needs no data."""
        d, classes, x = data.size, data.classes, batch.x
        bound = math.sqrt(6 / (self.h if self.fan == "hidden" else d))
        top = 1 / math.sqrt(self.h)
        params = {
            "w": _uniform(seeds, "init.w", (self.h, d), bound),
            "v": _uniform(seeds, "init.v", (self.h, classes), top),
            "b": _uniform(seeds, "init.b", (classes,), top),
        }
        if self.offset == "none":
            params["b"].zero_()
        # All replicas see one set of points, in one place of memory.
        mean = x[0].mean(0) if x.stride(0) == 0 else x.mean(1)
        return {n: t.to(x) for n, t in params.items()} | {
            "centre": mean.expand(len(x), -1).contiguous()
        }

    def classifier(self, data: Any, params: Params) -> PowerClassifier:
        return PowerClassifier(params, self.p, self.degree())


def _uniform(
    seeds: Sequence[int], purpose: str, shape: tuple[int, ...], bound: float
) -> Float[Tensor, "R *shape"]:
    draws = [stream(seed, purpose).uniform(-bound, bound, shape) for seed in seeds]
    return torch.stack([torch.from_numpy(draw) for draw in draws])


@dataclass(frozen=True)
class PowerClassifier:
    """R such nets with parameters w [R h d], v [R h C], b [R C] and centre [R d]."""

    params: Params
    p: float
    degree: float

    def double(self) -> PowerClassifier:
        params = {name: t.double() for name, t in self.params.items()}
        return PowerClassifier(params, self.p, self.degree)

    def replica(self, index: int) -> PowerClassifier:
        """One of the nets alone."""
        params = {name: t[index : index + 1] for name, t in self.params.items()}
        return PowerClassifier(params, self.p, self.degree)

    def prepare(
        self, x: Float[Tensor, "R n d"]
    ) -> tuple[Float[Tensor, "R n d"], Float[Tensor, "R n"]]:
        """x_c/|x_c| and |x_c|; a point at the centre has direction 0."""
        centred = x - self.params["centre"].unsqueeze(1)
        length = centred.norm(dim=-1)
        return centred / _safe(length).unsqueeze(-1), length

    def restore(
        self, direction: Float[Tensor, "R n d"], length: Float[Tensor, "R n"]
    ) -> Float[Tensor, "R n d"]:
        """Pixels again."""
        return self.params["centre"].unsqueeze(1) + length.unsqueeze(-1) * direction

    def features(self, x: Float[Tensor, "R n d"]) -> Float[Tensor, "R n h"]:
        """Phi, the hidden layer after its activation; differentiable."""
        direction, length = self.prepare(x)
        norms = _safe(self.params["w"].norm(dim=-1)).unsqueeze(1)
        cosine = (direction @ self.params["w"].transpose(1, 2)).relu() / norms
        return norms * cosine**self.p * (length**self.degree).unsqueeze(-1)

    def outputs(self, x: Float[Tensor, "R n d"]) -> Float[Tensor, "R n C"]:
        """One number a class; differentiable."""
        return self.features(x) @ self.params["v"] + self.params["b"].unsqueeze(1)

    def target(self) -> PowerTarget:
        """A lone replica, as attacks ask for it."""
        w, v, b, centre = (self.params[n][0].detach() for n in ("w", "v", "b", "centre"))
        return PowerTarget(w, v, b, centre, self.p, self.degree)

    def predict(self, x: Float[Tensor, "R n d"]) -> Int[Tensor, "R n"]:
        rows = max(1, BLOCK // self.params["w"].shape[1])
        return torch.cat([self.outputs(part).argmax(-1) for part in x.split(rows, 1)], 1)

    def accuracy(self, batch: Batch) -> Float[Tensor, " R"]:
        return (self.predict(batch.x) == batch.y).double().mean(1)


def _safe(lengths: Tensor) -> Tensor:
    """Nothing of length 0 may give 0/0."""
    return lengths.clamp_min(torch.finfo(lengths.dtype).tiny)
