"""What every engine is given, and what it does: hold the state of one training, take its steps.

R replicas stand on S data sets, Q = R / S on each: replica s Q + q belongs to data set s. Replicas
that share their points share every product over them, which is what makes a grid of step sizes or
initial scales cheap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from unmix.errors import DataError
from unmix.nets.base import Params
from unmix.nets.tops import Extras, Top
from unmix.train.engines.columns import Columns
from unmix.train.losses import Loss, pull


@dataclass(frozen=True)
class Problem:
    """min L over `params` (w [R M d], perhaps b [R M], the top's extras), at step sizes eta."""

    params: Params
    x: Columns
    targets: Tensor
    top: Top
    loss: Loss
    eta: Float[Tensor, " R"]

    def __post_init__(self) -> None:
        replicas = self.params["w"].shape[0]
        sets = self.x.shape[0]
        if replicas % sets or self.targets.shape[0] != replicas or self.eta.shape != (replicas,):
            raise DataError(
                f"{replicas} replicas do not stand evenly on {sets} data sets, "
                f"{self.targets.shape[0]} rows of targets and {len(self.eta)} step sizes"
            )

    @property
    def extras(self) -> Extras:
        return {name: self.params[name] for name in self.top.extras}

    def targets_at(self, rows: Int[Tensor, "S b"]) -> Tensor:
        """Targets [R b] of a mini-batch."""
        return self.targets.gather(1, per_replica(rows, len(self.targets)))

    def slopes(
        self, outputs: Float[Tensor, "R C n"], rows: Int[Tensor, "S b"] | None
    ) -> Float[Tensor, "R C n"]:
        """eta dL/d outputs on all points, or on a mini-batch of them."""
        targets = self.targets if rows is None else self.targets_at(rows)
        weight = self.eta.reshape(-1, 1, 1) * self.loss.share(outputs.shape[2])
        if outputs.shape[1] == 1:
            # Without a turn of the axes: for few neurons, calls of torch are what a step costs.
            y = targets.unsqueeze(1)
            return pull(y * outputs, self.loss.binary).mul_(y * -weight)
        return self.loss.slopes(outputs.transpose(1, 2), targets).transpose(1, 2) * weight


@runtime_checkable
class Engine(Protocol):
    """Gradient descent on R nets; see `reference` for the meaning."""

    def __init__(self, problem: Problem) -> None: ...

    def forward(self, rows: Int[Tensor, "S b"] | None = None) -> Float[Tensor, "R n C"]:
        """Outputs at all points, or at a mini-batch; the next `advance` is taken on the same."""

    def z(self) -> Float[Tensor, "R n M"]:
        """Pre-activations of all points, now; the engine may write over them at the next step."""

    def advance(self, alive: Bool[Tensor, " R"] | None = None) -> None:
        """One step from the last `forward`, for the replicas still alive (None: for all)."""

    def params(self) -> Params:
        """The weights now, in memory of their own."""

    def state(self) -> Params:
        """What must be kept to go on later, bit for bit; the engine may write into it."""

    def restore(self, state: Params) -> None:
        """Go on from a kept state, which stays as it is."""


def per_replica(rows: Int[Tensor, "S b"], replicas: int) -> Int[Tensor, "R b"]:
    """Rows of each replica from those of its data set."""
    return rows.repeat_interleave(replicas // len(rows), 0)


def masked(step: Tensor, alive: Bool[Tensor, " R"] | None) -> Tensor:
    """Zero for stopped replicas: selected, since theirs may hold infinities."""
    if alive is None:
        return step
    return torch.where(alive.reshape(-1, *[1] * (step.ndim - 1)), step, torch.zeros_like(step))


def over_sets(tensor: Float[Tensor, "R M n"], sets: int) -> Float[Tensor, "S QM n"]:
    """All neurons that see one data set, in a row; a view."""
    return tensor.view(sets, -1, tensor.shape[2])
