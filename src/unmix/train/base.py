"""What a training run keeps (Record), what it kept (Trace) and why it stopped (Stop)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from unmix.errors import DataError
from unmix.spec import Spec

Reading = Literal["paper", "slides-divide", "label-free"]


class Record(Spec):
    """When to record, and which readings of the coefficient recursion to run beside the training.

    `coefficients` may name: "paper" (Lemma 5.2 with l' as defined in the appendix), "slides-divide"
    (the slides divide by |mu|^2 and |xi|^2) and "label-free" (l' without its label, main text).
    """

    schedule: Literal["log", "linear"] = "log"
    points: int = Field(40, ge=2, description="number of recorded steps, ends included")
    coefficients: tuple[Reading, ...] = ()

    def steps(self, last: int) -> tuple[int, ...]:
        """The recorded steps, from 0 to the last."""
        if self.schedule == "linear":
            chosen = np.linspace(0, last, min(self.points, last + 1))
        else:
            chosen = np.geomspace(1, max(last, 1), self.points - 1)[:-1]
        return tuple(sorted({int(s) for s in np.rint(chosen) if 0 <= s <= last} | {0, last}))


@dataclass(frozen=True)
class Stop:
    """Why one replica stopped, and what to do about it."""

    reason: Literal["steps", "diverged"]
    step: int
    advice: str = ""


@dataclass(frozen=True)
class Trace:
    """Recorded columns [R T] over the recorded steps [T], and one stop a replica."""

    steps: tuple[int, ...]
    columns: dict[str, Float[Tensor, "R T"]]
    stops: tuple[Stop, ...]
    final: dict[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, column in self.columns.items():
            if column.shape != (len(self.stops), len(self.steps)):
                raise DataError(f"trace column {name!r} has shape {tuple(column.shape)}")

    @property
    def diverged(self) -> tuple[int, ...]:
        """Replicas that did not finish."""
        return tuple(r for r, stop in enumerate(self.stops) if stop.reason == "diverged")
