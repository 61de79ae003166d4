"""The paper's explicit classifiers: built from the centres, never trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from unmix.data.clusters import Clusters
from unmix.nets.base import Net, Params


class FeatureAveraging(Net):
    """f_FA(x) = relu(<sum_{J+} mu, x> + b_+) - relu(<sum_{J-} mu, x> + b_-)   (Def 4.1, Thm D.1).

    Biases are in units of |mu|^2. With both 0 this is the paper's |J_s| relu(<mean mu, x>).
    """

    kind: Literal["feature-averaging"] = "feature-averaging"
    bias_plus: float = 0.0
    bias_minus: float = 0.0

    def neurons(self, data: Clusters) -> int:
        return 2

    def init(self, data: Clusters, seeds: Sequence[int], dtype: torch.dtype) -> Params:
        mu = data.centres(seeds, dtype)
        w = torch.stack([mu[:, list(side)].sum(1) for side in (data.plus, data.minus)], 1)
        b = torch.tensor([self.bias_plus, self.bias_minus], dtype=dtype) * data.unit**2
        return {"w": w, "b": b.repeat(len(seeds), 1)}

    def readout(self, data: Clusters) -> Float[Tensor, "M C"]:
        return torch.tensor([[1.0], [-1.0]], dtype=torch.float64)


class FeatureDecoupling(Net):
    """f_FD(x) = sum_j y_j relu(<mu_j, x> - beta |mu|^2); beta = 1/2 in Thm D.3.

    beta = 1 - 1/sqrt(2) is best: the radius at a centre is |mu|/sqrt(2) for both labels.
    """

    kind: Literal["feature-decoupling"] = "feature-decoupling"
    beta: float = Field(0.5, ge=0, lt=1)

    def neurons(self, data: Clusters) -> int:
        return data.k

    def init(self, data: Clusters, seeds: Sequence[int], dtype: torch.dtype) -> Params:
        b = torch.full((len(seeds), data.k), -self.beta * data.unit**2, dtype=dtype)
        return {"w": data.centres(seeds, dtype), "b": b}

    def readout(self, data: Clusters) -> Float[Tensor, "M C"]:
        return data.signs[:, None]


class NonRobustMultiClass(Net):
    """f_j(x) = relu(<mu_j + sum_{l in J_s(j)} mu_l, x>), h = 1   (Prop 4.8, Thm D.4)."""

    kind: Literal["non-robust-multi-class"] = "non-robust-multi-class"

    def neurons(self, data: Clusters) -> int:
        return data.k

    def init(self, data: Clusters, seeds: Sequence[int], dtype: torch.dtype) -> Params:
        mu = data.centres(seeds, dtype)
        same = (data.signs[:, None] == data.signs).to(dtype) + torch.eye(data.k, dtype=dtype)
        return {"w": same @ mu}

    def readout(self, data: Clusters) -> Float[Tensor, "M C"]:
        return torch.eye(data.k, dtype=torch.float64)

    def classes(self, data: Clusters) -> Int[Tensor, " k"]:
        return torch.arange(data.k)
