"""Learner B: the fine-grained net (feature averaging, section 4.2).

    f_j(x) = 1/h sum_{r<=h} relu(<w_{j,r}, x>),   p = softmax(f),   F = sum_{J+} p_j - sum_{J-} p_j

No bias; the second layer is a frozen block diagonal. `labels` asks for fewer, coarser labels than
clusters: each side of the partition is split into equal runs of clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from unmix.data.base import Batch
from unmix.data.clusters import Clusters
from unmix.nets.base import Net, Params
from unmix.streams import normals

REDRAWS = 100


class KClass(Net):
    """h neurons for each of the labels (by default, one label a cluster)."""

    kind: Literal["k-class"] = "k-class"
    h: int = Field(1, ge=1, description="neurons a class")
    labels: int | None = Field(None, ge=2, description="number of training labels; default k")
    sigma_w: float = Field(1e-5, ge=0, description="standard deviation of the initial weights")
    silent: Literal["keep", "redraw"] = Field(
        "keep", description="neurons that start with no own point active: keep, or draw again"
    )
    slope_at_zero: Literal[0, 1] = Field(1, description="relu'(0): 1 in the paper, 0 in torch")

    packs: ClassVar[tuple[str, ...]] = ("sigma_w",)

    def outputs(self, data: Clusters) -> int:
        return data.k if self.labels is None else self.labels

    def neurons(self, data: Clusters) -> int:
        return self.h * self.outputs(data)

    def init(self, data: Clusters, seeds: Sequence[int], dtype: torch.dtype) -> Params:
        return {"w": normals(seeds, "init.w", (self.neurons(data), data.d), dtype) * self.sigma_w}

    def start(self, data: Clusters, seeds: Sequence[int], batch: Batch) -> Params:
        """The initial weights; silent neurons are drawn again where the net says so.

        A neuron starts silent with probability 1/(n/k + 1), and only such neurons die.
        """
        params = self.init(data, seeds, batch.x.dtype)
        if self.silent == "keep":
            return params
        w, own = params["w"], self.readout(data).T.sign().to(batch.x)[self.targets(data, batch)]
        for attempt in range(1, REDRAWS + 1):
            silent = ((batch.x @ w.transpose(1, 2) >= 0) * own).sum(1) == 0
            if not silent.any():
                break
            again = normals(seeds, f"init.w.{attempt}", tuple(w.shape[1:]), w.dtype)
            w = torch.where(silent.unsqueeze(-1), again * self.sigma_w, w)
        return {"w": w}

    def readout(self, data: Clusters) -> Float[Tensor, "M C"]:
        blocks = torch.eye(self.outputs(data), dtype=torch.float64) / self.h
        return blocks.repeat_interleave(self.h, 0)

    def classes(self, data: Clusters) -> Int[Tensor, " k"]:
        return data.groups(self.outputs(data))
