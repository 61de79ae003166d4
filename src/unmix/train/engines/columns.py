"""The training points as blocks of columns, so that X need never be in memory as a whole.

Coefficient space touches X three times (X X^T, X W0^T and C X at the end), each a sum or a stack
over blocks of columns. A block may be a view of a tensor, a slice of a file, or drawn when asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from unmix.errors import DataError

# Columns of a block: large enough for a product at full speed, small enough to stay out of sight.
WIDTH = 16_384


@runtime_checkable
class Columns(Protocol):
    """X [S n d]."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """S, n, d."""

    def blocks(self) -> Iterator[tuple[slice, Float[Tensor, "S n b"]]]:
        """Every column once, in order; each pass gives the same numbers."""

    def whole(self) -> Float[Tensor, "S n d"]:
        """X in memory."""


@dataclass(frozen=True)
class Held:
    """X as a tensor."""

    x: Float[Tensor, "S n d"]

    @property
    def shape(self) -> tuple[int, int, int]:
        sets, n, d = self.x.shape
        return sets, n, d

    def blocks(self) -> Iterator[tuple[slice, Float[Tensor, "S n b"]]]:
        d = self.x.shape[2]
        # Blocks of a tensor in memory save nothing but a copy of it: one is best.
        yield slice(0, d), self.x

    def whole(self) -> Float[Tensor, "S n d"]:
        return self.x


@dataclass(frozen=True)
class Drawn:
    """X block by block: `draw(first, last)` gives columns first <= j < last, always alike."""

    shape: tuple[int, int, int]
    draw: Callable[[int, int], Float[Tensor, "S n b"]]
    width: int = WIDTH

    def blocks(self) -> Iterator[tuple[slice, Float[Tensor, "S n b"]]]:
        sets, n, d = self.shape
        for first in range(0, d, self.width):
            last = min(first + self.width, d)
            block = self.draw(first, last)
            if tuple(block.shape) != (sets, n, last - first):
                wanted, came = (sets, n, last - first), tuple(block.shape)
                raise DataError(f"columns {first} to {last}: expected {wanted}, got {came}")
            yield slice(first, last), block

    def whole(self) -> Float[Tensor, "S n d"]:
        return torch.cat([block for _, block in self.blocks()], 2)
