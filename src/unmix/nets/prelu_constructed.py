"""The pReLU paper's reference classifiers, as nets that the training could reach (section 3).

    F(x)     = relu(<sum_{J+} mu, x>) - relu(<sum_{J-} mu, x>)        p = 1, feature averaging
    F^(p)(x) = sum_{J+} relu(<mu_k, x>)^p - sum_{J-} relu(<mu_k, x>)^p     a neuron a subclass

in unit centres. Any neurons with w_j = lam_j (unit direction), v_j = y lam_j realise them, as long
as sum lam_j^2 over the neurons of a direction is the length of what they stand for: sqrt(K1) and
sqrt(K2) in F, 1 in F^(p). `lam` gives the lam_j up to that factor; other neurons are zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from pydantic import Field, model_validator
from torch import Tensor

from unmix.data.clusters import Clusters
from unmix.errors import SpecError
from unmix.nets.base import Params
from unmix.nets.prelu import PowerNet

Group = tuple[int, ...]


class PReLUAveraging(PowerNet):
    """F: the neurons `plus` share the mean positive centre, the neurons `minus` the negative."""

    kind: Literal["prelu-averaging"] = "prelu-averaging"
    plus: Group = Field((0,), description="I+, neurons of the positive label")
    minus: Group = Field((1,), description="I-, neurons of the negative label")
    lam: tuple[float, ...] | None = Field(
        None, description="relative sizes lam_j, one a neuron of plus and then of minus"
    )
    h: int | None = Field(None, ge=1, description="number of neurons; default: just enough")

    @model_validator(mode="after")
    def _possible(self) -> PReLUAveraging:
        _check_groups((self.plus, self.minus), self.lam, self.h)
        return self

    def power(self) -> float:
        return 1.0

    def neurons(self, data: Clusters) -> int:
        return self.h or 1 + max(self.plus + self.minus)

    def init(self, data: Clusters, seeds: Sequence[int], dtype: torch.dtype) -> Params:
        mu = data.centres(seeds) / data.unit
        sums = torch.stack([mu[:, list(side)].sum(1) for side in (data.plus, data.minus)], 1)
        signs = torch.tensor([1.0, -1.0], dtype=torch.float64)
        groups = (self.plus, self.minus)
        return _realised(sums, signs, groups, self.lam, self.neurons(data), dtype)


class PReLUSubclasses(PowerNet):
    """F^(p): the neurons groups[k] share the centre of subclass k."""

    kind: Literal["prelu-subclasses"] = "prelu-subclasses"
    p: float = Field(3.0, ge=1, description="exponent, any real number >= 1")
    groups: tuple[Group, ...] | None = Field(
        None, description="neurons of each subclass; default: neuron k for subclass k"
    )
    lam: tuple[float, ...] | None = Field(
        None, description="relative sizes lam_j, in the order of the neurons in groups"
    )
    h: int | None = Field(None, ge=1, description="number of neurons; default: just enough")

    @model_validator(mode="after")
    def _possible(self) -> PReLUSubclasses:
        if self.groups is not None:
            _check_groups(self.groups, self.lam, self.h)
        return self

    def power(self) -> float:
        return self.p

    def neurons(self, data: Clusters) -> int:
        return self.h or 1 + max(j for group in self._groups(data) for j in group)

    def init(self, data: Clusters, seeds: Sequence[int], dtype: torch.dtype) -> Params:
        mu, groups = data.centres(seeds) / data.unit, self._groups(data)
        return _realised(mu, data.signs, groups, self.lam, self.neurons(data), dtype)

    def _groups(self, data: Clusters) -> tuple[Group, ...]:
        groups = self.groups or tuple((k,) for k in range(data.k))
        if len(groups) != data.k:
            raise SpecError(
                f"groups: expected one for each of the {data.k} clusters, got {len(groups)}"
            )
        _check_groups(groups, self.lam, self.h)
        return groups


def _check_groups(groups: Sequence[Group], lam: Sequence[float] | None, h: int | None) -> None:
    neurons = [j for group in groups for j in group]
    if not all(groups) or min(neurons) < 0 or len(set(neurons)) < len(neurons):
        raise ValueError("each group needs a neuron, and no neuron may be in two of them")
    if h is not None and max(neurons) >= h:
        raise ValueError(f"neuron {max(neurons)} does not fit into h={h} (they count from 0)")
    if lam is not None and (len(lam) != len(neurons) or min(lam) <= 0):
        raise ValueError(f"lam must be {len(neurons)} positive numbers, one a neuron")


def _realised(
    directions: Float[Tensor, "R g d"],
    signs: Float[Tensor, " g"],
    groups: Sequence[Group],
    lam: Sequence[float] | None,
    h: int,
    dtype: torch.dtype,
) -> Params:
    """sum_j v_j |w_j| over group g is signs_g |directions_g|, along directions_g."""
    w = directions.new_zeros(len(directions), h, directions.shape[-1])
    v = directions.new_zeros(len(directions), h)
    sizes = iter(lam or [1.0] * sum(map(len, groups)))
    for g, group in enumerate(groups):
        share = torch.tensor([next(sizes) for _ in group], dtype=torch.float64)
        length = directions[:, g].norm(dim=-1, keepdim=True)
        own = share / share.norm() * length.sqrt()
        w[:, list(group)] = own.unsqueeze(-1) * (directions[:, g] / length).unsqueeze(1)
        v[:, list(group)] = signs[g] * own
    return {"w": w.to(dtype), "v": v.to(dtype)}
