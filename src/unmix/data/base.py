"""Samples, and the check that they are what they say."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from unmix.errors import DataError


@dataclass(frozen=True)
class Batch:
    """Points `x`, labels `y` in {-1, +1} and cluster indices, one row of points per replica."""

    x: Float[Tensor, "R n d"]
    y: Float[Tensor, "R n"]
    cluster: Int[Tensor, "R n"]

    def __post_init__(self) -> None:
        if (
            self.x.ndim != 3
            or self.y.shape != self.x.shape[:2]
            or self.cluster.shape != self.y.shape
        ):
            came = [tuple(t.shape) for t in (self.x, self.y, self.cluster)]
            raise DataError(f"expected x [R n d], y [R n], cluster [R n]; got {came}")
        if self.x.shape[1] == 0:
            raise DataError(
                "a batch needs at least one point", "raise samples.train or samples.test"
            )
        if not torch.isfinite(self.x).all():
            raise DataError("x holds NaN or infinite values", "check the data before using them")
        if not (self.y.abs() == 1).all():
            raise DataError("labels must be -1 or +1")

    @property
    def points(self) -> int:
        return self.x.shape[1]
