"""What every training shares: what to keep (Record), what was kept (Trace), why it ended (Stop)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from unmix.data.base import Batch
from unmix.errors import DataError
from unmix.nets.base import Net, Network, Params
from unmix.spec import Spec

UNFINISHED = ("diverged", "stalled", "collapsed")
T = TypeVar("T", bound="Training")
Reading = Literal["paper", "slides-divide", "label-free"]
Reason = Literal["steps", "time", "loss", "escape", "diverged", "stalled", "collapsed"]


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

    def times(self, last: float) -> tuple[float, ...]:
        """The recorded times of a flow, from 0 to the last; log ones begin at last/10 000."""
        if self.schedule == "linear":
            chosen = np.linspace(0, last, self.points)
        else:
            chosen = np.concatenate([[0], np.geomspace(last / 1e4, last, self.points - 1)])
        # The ends are exact, whatever the rounding of the steps between them.
        return (0.0, *map(float, chosen[1:-1]), float(last))


@dataclass(frozen=True)
class Stop:
    """Why one replica stopped, and what to do about it.

    steps: all done; time, loss, escape: a flow reached its horizon, its loss, its largest output;
    diverged: the loss blew up; stalled: a flow used up its gradient evaluations;
    collapsed: adversarial training left a net that is off at most points.
    """

    reason: Reason
    step: int
    advice: str = ""
    time: float | None = None


@dataclass(frozen=True)
class Trace:
    """Recorded columns [R T] over the recorded steps [T], and one stop a replica.

    A flow counts its records in `steps` and says in `times` when they were taken.
    """

    steps: tuple[int, ...]
    columns: dict[str, Float[Tensor, "R T"]]
    stops: tuple[Stop, ...]
    final: dict[str, Tensor] = field(default_factory=dict)
    times: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.times and len(self.times) != len(self.steps):
            raise DataError(f"a trace of {len(self.steps)} records has {len(self.times)} times")
        for name, column in self.columns.items():
            if column.shape != (len(self.stops), len(self.steps)):
                raise DataError(f"trace column {name!r} has shape {tuple(column.shape)}")

    @classmethod
    def of_rows(
        cls,
        steps: tuple[int, ...],
        names: Sequence[str],
        rows: Sequence[Float[Tensor, "R columns"]],
        stops: Sequence[Stop | None],
        final: dict[str, Tensor],
    ) -> Trace:
        """One row a recorded step; a set of replicas that stopped early keeps its last row.

        A replica without a stop has done all its steps.
        """
        table = torch.stack([*rows, *[rows[-1]] * (len(steps) - len(rows))], 1)
        columns = {name: table[..., i] for i, name in enumerate(names)}
        ended = tuple(stop or Stop("steps", steps[-1]) for stop in stops)
        return cls(steps, columns, ended, final)

    def every(self, first: int, step: int) -> Trace:
        """The replicas first, first + step, ...: those of one experiment of a pack."""
        columns = {name: column[first::step].clone() for name, column in self.columns.items()}
        final = {name: value[first::step].clone() for name, value in self.final.items()}
        return replace(self, columns=columns, stops=self.stops[first::step], final=final)

    @property
    def diverged(self) -> tuple[int, ...]:
        """Replicas that did not finish."""
        return tuple(r for r, stop in enumerate(self.stops) if stop.reason in UNFINISHED)


@dataclass
class Checkpoint:
    """All that the loop needs to go on from a step, bit for bit."""

    step: int
    tensors: dict[str, Tensor]
    stops: list[Stop | None]


@dataclass(frozen=True)
class Hooks:
    """What the caller wants to hear: progress (steps done) and, now and then, a checkpoint."""

    progress: Callable[[int], None] = lambda step: None
    wants_checkpoint: Callable[[], bool] = lambda: False
    checkpoint: Callable[[Checkpoint], None] = lambda state: None


@dataclass(frozen=True)
class Start:
    """Where a training begins: Q replicas on the points of each of S seeds, R = S Q in all.

    Replica s Q + q is the q-th of seed s; its training is `trainings[q]`, and these differ at most
    in the fields that their class lists in `packs`.
    """

    net: Any
    data: Any
    params: Params
    batch: Batch
    seeds: Sequence[int]
    trainings: tuple[Training, ...]

    @property
    def replicas(self) -> int:
        return len(self.seeds) * len(self.trainings)

    def training(self, kind: type[T]) -> T:
        """What all trainings share."""
        first = self.trainings[0]
        if not isinstance(first, kind):
            raise DataError(f"expected a {kind.__name__}, got a {type(first).__name__}")
        return first

    def each(self, field: str) -> list[float]:
        """A field of every replica's training."""
        return [getattr(t, field) for t in self.trainings] * len(self.seeds)

    def spread(self, rows: Tensor) -> Tensor:
        """A tensor of data sets [S ...] as one of replicas [R ...]."""
        return rows.repeat_interleave(len(self.trainings), 0)


@runtime_checkable
class Trainer(Protocol):
    """One training of R replicas under way."""

    def run(self, hooks: Hooks) -> tuple[Params, Trace]:
        """Train to the end; `hooks` may save checkpoints on the way."""

    def resume(self, state: Checkpoint) -> None:
        """Go on from a checkpoint of the same training."""


class Training(Spec, ABC):
    """How parameters move from their start."""

    record: Record = Record()

    # Nets that it can train.
    trains: ClassVar[tuple[type[Network], ...]] = (Net,)
    # Fields in which trainings of one pack of replicas may differ.
    packs: ClassVar[tuple[str, ...]] = ()

    def check(self, net: Any, data: Any) -> None:
        """Raise a ValueError or a SpecError where this cannot train the net."""
        if not isinstance(net, self.trains):
            came = f"train: {self.named!r} cannot train a {net.named!r} net"
            raise ValueError(came)

    @property
    def named(self) -> str:
        """Its name in the catalog."""
        return str(getattr(self, "kind", type(self).__name__))

    @abstractmethod
    def length(self) -> int:
        """The number that progress is counted to."""

    def cost(self, net: Any, data: Any, points: int) -> int:
        """Multiplications of one seed's training, to a factor of two or so: good for an ETA."""
        return points * int(data.size) * (1 + 3 * self.length() * net.neurons(data))

    def threads(self, net: Any, data: Any, points: int, pack: int, dtype: str) -> int:
        """How many threads pay, for packs of so many replicas on as many points."""
        return torch.get_num_threads()

    @abstractmethod
    def begin(self, start: Start) -> Trainer:
        """This training (and its siblings in `start`) from these parameters on these points."""
