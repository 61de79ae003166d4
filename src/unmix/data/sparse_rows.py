"""Points with few nonzero entries: R replicas of n rows in R^d, stored row after row (CSR).

Sparse codes have about kappa of d entries, so a product with them costs kappa / d of a dense one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from unmix.errors import DataError


@dataclass(frozen=True)
class SparseRows:
    """Row i of replica r is `value[o:e]` at the distinct places `index[o:e]`.

    o and e are `offsets[r n + i]` and the offset after it.
    """

    offsets: Int[Tensor, " rows_and_one"]
    index: Int[Tensor, " nonzeros"]
    value: Float[Tensor, " nonzeros"]
    replicas: int
    d: int

    def __post_init__(self) -> None:
        rows = len(self.offsets) - 1
        if rows < 1 or rows % self.replicas:
            raise DataError(f"{rows} rows cannot be shared out to {self.replicas} replicas")
        if int(self.offsets[0]) != 0 or int(self.offsets[-1]) != len(self.index):
            raise DataError("offsets must run from 0 to the number of nonzeros")
        if len(self.index) and not 0 <= int(self.index.min()) <= int(self.index.max()) < self.d:
            raise DataError(f"indices must lie in 0..{self.d - 1}")

    @property
    def points(self) -> int:
        """n."""
        return (len(self.offsets) - 1) // self.replicas

    @property
    def row(self) -> Int[Tensor, " nonzeros"]:
        """Row of every nonzero, counted through all replicas."""
        counts = self.offsets.diff()
        return torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts)

    def one(self, r: int) -> SparseRows:
        """The rows of one replica."""
        return self[r : r + 1]

    def __getitem__(self, some: slice) -> SparseRows:
        """The rows of replicas that follow one another, as a tensor gives them."""
        first, end, step = some.indices(self.replicas)
        if step != 1 or first >= end:
            raise DataError(f"expected replicas in a row, one at least, got {some}")
        cut = self.offsets[first * self.points : end * self.points + 1]
        inside = slice(int(cut[0]), int(cut[-1]))
        parts = (cut - cut[0], self.index[inside], self.value[inside])
        return SparseRows(*parts, end - first, self.d)

    def take(self, rows: Int[Tensor, " b"]) -> SparseRows:
        """Some rows of the only replica, in the order given."""
        if self.replicas != 1:
            raise DataError(f"rows are taken of one replica, here are {self.replicas}")
        counts = self.offsets.diff()[rows]
        offsets = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        first = torch.repeat_interleave(self.offsets[rows] - offsets[:-1], counts)
        places = first + torch.arange(len(first), device=first.device)
        return SparseRows(offsets, self.index[places], self.value[places], 1, self.d)

    def dense(self) -> Float[Tensor, "R n d"]:
        """The same points with their zeros."""
        flat = self.value.new_zeros(self.replicas * self.points, self.d)
        flat[self.row, self.index] = self.value
        return flat.reshape(self.replicas, self.points, self.d)

    def to(self, like: torch.dtype | torch.device | str) -> SparseRows:
        """The same points with values of another type, or elsewhere."""
        if isinstance(like, torch.dtype):
            return replace(self, value=self.value.to(like))
        parts = {name: getattr(self, name).to(like) for name in ("offsets", "index", "value")}
        return replace(self, **parts)
