"""What every distribution is, its samples, and the check that they are what they say."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from unmix.errors import DataError
from unmix.spec import Spec

B = TypeVar("B", bound="Batch")


@dataclass(frozen=True)
class Batch:
    """Points `x` [R n *shape], labels `y` [R n] and the index of what each point was drawn from.

    Labels are -1 and +1, or whole numbers that name classes. A distribution that knows more about
    its points (their codes, their robust patches) returns a subclass.
    """

    x: Tensor
    y: Tensor
    cluster: Int[Tensor, "R n"]

    def __post_init__(self) -> None:
        if (
            self.x.ndim < 3
            or self.y.shape != self.x.shape[:2]
            or self.cluster.shape != self.y.shape
        ):
            came = [tuple(t.shape) for t in (self.x, self.y, self.cluster)]
            raise DataError(f"expected x [R n d], y [R n], cluster [R n]; got {came}")
        if self.x.shape[1] == 0:
            raise DataError(
                "a batch needs at least one point", "raise samples.train or samples.test"
            )
        if self.x.device.type != "meta":
            self._check_values()

    @property
    def points(self) -> int:
        return self.x.shape[1]

    def to(self: B, device: torch.device | str) -> B:
        """The same batch elsewhere."""
        held = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(self, **{name: value.to(device) for name, value in held.items()})

    def _check_values(self) -> None:
        # NaN is handed on to both ends, which takes a tenth of the time of asking every number.
        if self.x.numel() and not all(torch.isfinite(end) for end in self.x.aminmax()):
            raise DataError("x holds NaN or infinite values", "check the data before using them")
        if self.y.is_floating_point():
            if not (self.y.abs() == 1).all():
                raise DataError("labels must be -1 or +1")
        elif bool((self.y < 0).any()):
            raise DataError("classes must be whole numbers from 0 on")


class Distribution(Spec, ABC):
    """Where points come from."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Of one point."""

    @property
    def size(self) -> int:
        """Numbers in one point."""
        return math.prod(self.shape)

    @property
    @abstractmethod
    def told(self) -> str:
        """Its main numbers, in a few words."""

    @abstractmethod
    def sample(
        self, seeds: Sequence[int], n: int, purpose: str, dtype: torch.dtype = torch.float64
    ) -> Batch:
        """n points a seed; `purpose` ("train", "test") names the streams they are drawn from."""

    def features(
        self, seeds: Sequence[int], dtype: torch.dtype = torch.float64
    ) -> Float[Tensor, "R k d"]:
        """The directions that a robust net keeps apart; not every distribution names them."""
        message = f"{self.told}: these data name no features"
        raise DataError(message, "take data with centres or a dictionary, such as clusters")

    @property
    def best_radius(self) -> float | None:
        """Largest mean l2 radius that any classifier can have; None where nobody knows it."""
        return None
