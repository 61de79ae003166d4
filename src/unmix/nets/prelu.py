"""The pReLU net (pReLU, eq 1): both layers are trained, and each neuron is 1-homogeneous in w.

    f_p(x) = sum_j v_j relu(<x, w_j>)^p / |w_j|^(p-1) = sum_j q_j relu(<x, u_j>)^p

with u_j = w_j/|w_j| and the contribution q_j = v_j |w_j|. A neuron with w_j = 0 contributes 0.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from unmix.data.clusters import Clusters
from unmix.errors import DataError
from unmix.nets.activations import Activation, Power
from unmix.nets.base import Net, Params
from unmix.nets.form import Form
from unmix.nets.tops import PowerTop, Top
from unmix.streams import normals


class PowerNet(Net):
    """Any net of this shape, trained or constructed: parameters `w` [R h d] and `v` [R h]."""

    @abstractmethod
    def power(self) -> float:
        """p."""

    def readout(self, data: Clusters) -> Float[Tensor, "M C"]:
        raise DataError(
            f"the second layer of a {getattr(self, 'kind', 'pReLU')!r} net is a parameter, "
            "so it is not known from the data alone",
            "ask the trained model: run.model.form.readout",
        )

    def activation(self) -> Activation:
        return Power(self.power())

    def top(self, data: Clusters, like: Tensor) -> Top:
        return PowerTop(self.power())

    def form(self, data: Clusters, params: Params) -> Form:
        """Unit weights u_j and readout q_j; no power of a tiny |w_j| is ever formed."""
        w, v = params["w"], params["v"]
        q = (v * w.norm(dim=-1)).unsqueeze(-1)
        return Form(unit(w), w.new_zeros(v.shape), q, self.activation())


class PReLU(PowerNet):
    """h neurons with p >= 1; p = 1 is the ReLU net of the paper, p >= 3 its remedy."""

    kind: Literal["prelu"] = "prelu"
    p: float = Field(3.0, ge=1, description="exponent, any real number >= 1")
    h: int = Field(200, ge=1, description="number of neurons")
    initial: Literal["gaussian", "balanced"] = Field(
        "gaussian",
        description="all weights iid (the paper's code), or v = +-|w| (its theory, eq 4)",
    )
    sigma: float = Field(
        1e-7,
        gt=0,
        description="standard deviation of all weights (gaussian), or eps of w = eps w0 (balanced)",
    )

    packs: ClassVar[tuple[str, ...]] = ("sigma",)

    def power(self) -> float:
        return self.p

    def neurons(self, data: Clusters) -> int:
        return self.h

    def init(self, data: Clusters, seeds: Sequence[int], dtype: torch.dtype) -> Params:
        w = normals(seeds, "init.w", (self.h, data.d), torch.float64)
        v = normals(seeds, "init.v", (self.h,), torch.float64)
        if self.initial == "gaussian":
            w, v = self.sigma * w, self.sigma * v
        else:
            # Entries U(-1, 1)/sqrt(d) keep every |w0| below M = 1; the signs of v are fair coins.
            w = (2 * torch.special.ndtr(w) - 1) * (self.sigma / math.sqrt(data.d))
            v = torch.where(v > 0, 1.0, -1.0) * w.norm(dim=-1)
        return {"w": w.to(dtype), "v": v.to(dtype)}


def unit(w: Float[Tensor, "*s d"]) -> Float[Tensor, "*s d"]:
    """w/|w|, and 0 for w = 0."""
    length = w.norm(dim=-1, keepdim=True)
    return torch.where(length > 0, w / length, torch.zeros_like(w))
