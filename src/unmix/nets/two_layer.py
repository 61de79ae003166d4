"""Learner A: the binary two-layer ReLU net (feature averaging, section 3.2).

    f(x) = 1/m sum_{r<=m} relu(<w_{+,r}, x> + b_{+,r}) - 1/m sum_{r<=m} relu(<w_{-,r}, x> + b_{-,r})

The 2m first-layer weights and biases are trained, the second layer stays at +-1/m.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from unmix.data.clusters import Clusters
from unmix.nets.base import Net, Params
from unmix.streams import normals


class TwoLayer(Net):
    """2m neurons, m for each label."""

    kind: Literal["two-layer"] = "two-layer"
    m: int = Field(5, ge=1, description="neurons a label")
    sigma_w: float = Field(1e-5, ge=0, description="standard deviation of the initial weights")
    sigma_b: float = Field(1e-5, ge=0, description="standard deviation of the initial biases")
    slope_at_zero: Literal[0, 1] = Field(1, description="relu'(0): 1 in the paper, 0 in torch")

    packs: ClassVar[tuple[str, ...]] = ("sigma_w", "sigma_b")

    def neurons(self, data: Clusters) -> int:
        return 2 * self.m

    def init(self, data: Clusters, seeds: Sequence[int], dtype: torch.dtype) -> Params:
        w = normals(seeds, "init.w", (2 * self.m, data.d), dtype) * self.sigma_w
        b = normals(seeds, "init.b", (2 * self.m,), dtype) * self.sigma_b
        return {"w": w, "b": b}

    def readout(self, data: Clusters) -> Float[Tensor, "M C"]:
        column = torch.full((2 * self.m, 1), 1 / self.m, dtype=torch.float64)
        column[self.m :] *= -1
        return column
