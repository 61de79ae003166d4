"""What every engine does: hold the state of one training and take its steps."""

from __future__ import annotations

from typing import Protocol

from jaxtyping import Bool, Float
from torch import Tensor

from unmix.nets.base import Params


class Engine(Protocol):
    """Full-batch gradient descent on the first layer of R nets; see `reference` for the meaning."""

    def __init__(
        self, params: Params, x: Tensor, targets: Tensor, readout: Tensor, eta: float, slope: int
    ) -> None: ...

    def z(self) -> Float[Tensor, "R n M"]:
        """Pre-activations of the training points."""

    def advance(self, alive: Bool[Tensor, " R"]) -> None:
        """One step, for the replicas that are still alive."""

    def undo(self, replicas: Bool[Tensor, " R"]) -> None:
        """Take the last step back for some replicas."""

    def params(self) -> Params:
        """The weights now."""

    def state(self) -> Params:
        """What must be saved to go on later, bit for bit."""

    def restore(self, state: Params) -> None:
        """Go on from a saved state."""
