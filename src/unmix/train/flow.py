"""Gradient flow of pReLU nets by an adaptive integrator, instead of many tiny descent steps.

    theta' = -grad L(theta),   L = mean (or sum) of l(y f),   from t = 0 to `time`

Equal flow time is what makes it comparable: S steps of gradient descent with rate eta on the same
loss are a flow of time S eta. Each replica is integrated alone, with steps of its own: replicas
share nothing, so a lone run and a batched one agree to the bit, and no replica waits for the
stiffest. (At these widths one matrix product fills a core; a batch of them is no faster.)
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal

import torch
from jaxtyping import Float
from pydantic import Field as Described
from torch import Tensor

from unmix.errors import SpecError
from unmix.nets.base import Net, Params
from unmix.nets.prelu import PowerNet
from unmix.train.angles import Angles
from unmix.train.base import Checkpoint, Hooks, Start, Stop, Trace, Training
from unmix.train.fields import Field, PointField, State
from unmix.train.integral import COLUMNS, Integral
from unmix.train.losses import BinaryLoss, Reduction

# Progress is counted in thousandths of the horizon's logarithm.
LENGTH = 1000
# Gradient evaluations of a usual flow, for an estimate of its time.
USUAL = 300
# Products of fewer multiplications than this take a millisecond or so: one thread does them best.
SMALL = 10**8


class FlowTraining(Training):
    """What all flows of a pReLU net share; a member says on which points it flows."""

    time: float = Described(1000.0, gt=0, description="horizon T; S steps of size eta are S eta")
    loss: BinaryLoss = "exponential"
    reduction: Reduction = Described(
        "mean", description="of the points' losses; the sum runs n times faster"
    )
    tolerance: float = Described(
        1e-3, gt=0, le=0.1, description="root mean square error a step, in radians"
    )
    until_loss: float | None = Described(
        None, gt=0, description="stop where the mean loss falls to this"
    )
    until_output: float | None = Described(
        None, gt=0, description="stop where max |f| grows to this: the end of alignment"
    )
    prune: float = Described(
        0.0,
        ge=0,
        lt=1,
        description="an approximation: once the mean loss is below 0.05, freeze the neurons whose "
        "|v||w| is below this share of the sum over all",
    )
    evaluations: int = Described(20_000, ge=4, description="most gradient evaluations a seed")

    def length(self) -> int:
        return LENGTH

    def cost(self, net: Any, data: Any, points: int) -> int:
        """Two products an evaluation."""
        return points * int(data.size) * (1 + 2 * USUAL * net.neurons(data))

    def threads(self, net: Any, data: Any, points: int, pack: int, dtype: str) -> int:
        return 1

    def begin(self, start: Start) -> Flow:
        p = _power(start.net)
        return Flow(self, [self.flowing(p, start, r) for r in range(start.replicas)])

    @abstractmethod
    def flowing(self, p: float, start: Start, r: int) -> Flowing:
        """The vector field of replica r, and where it starts."""


class GradientFlow(FlowTraining):
    """The flow on the training points."""

    kind: Literal["flow"] = "flow"

    def threads(self, net: Any, data: Any, points: int, pack: int, dtype: str) -> int:
        large = points * net.neurons(data) * data.d > SMALL
        return torch.get_num_threads() if large else 1

    def flowing(self, p: float, start: Start, r: int) -> Flowing:
        n, x, y = start.batch.points, start.batch.x[r], start.batch.y[r]
        angles, u, a = Angles.of(start.params["w"][r], start.params["v"][r])
        share = torch.full_like(y, 1 / n, dtype=torch.float64)
        pace = 1.0 if self.reduction == "mean" else float(n)
        return Flowing(PointField(x, y, share, pace, p, self.loss, angles), State(u, a))


class Flowing:
    """One replica: its field, its start, and how its end is read."""

    def __init__(self, field: Field, start: State) -> None:
        self.field, self.start = field, start

    def params(self, state: State) -> Params:
        """w = |w| u and v."""
        angles, like = self.field.angles, self.start.u
        w = angles.length(state.a).unsqueeze(-1) * self.directions(state.u)
        return {"w": w.to(like), "v": angles.v(state.a).to(like)}

    def directions(self, u: Float[Tensor, "h r"]) -> Float[Tensor, "h d"]:
        """The neurons' directions in the space of the inputs."""
        return u


class Flow:
    """One training of R replicas, one after the other."""

    def __init__(self, train: FlowTraining, flows: list[Flowing]) -> None:
        self.train, self.flows = train, flows
        self.times = train.record.times(train.time)
        self.done: list[tuple[Params, Tensor, Tensor]] = []
        self.stops: list[Stop] = []
        self.resumed: dict[str, Tensor] = {}

    def run(self, hooks: Hooks) -> tuple[Params, Trace]:
        """Train to the end; `hooks` may save checkpoints on the way."""
        hooks.progress(0)
        for r in range(len(self.done), len(self.flows)):
            integral = self._integral(self.flows[r])
            if self.resumed:
                integral.restore(self.resumed)
                self.resumed = {}
            while integral.stop is None:
                if hooks.wants_checkpoint():
                    hooks.checkpoint(self._checkpoint(integral))
                integral.advance()
                hooks.progress(int((r + integral.part()) / len(self.flows) * LENGTH))
            params = self.flows[r].params(integral.whole())
            self.done.append((params, integral.table(), integral.totals()))
            self.stops.append(integral.stop)
        hooks.progress(LENGTH)
        return _stacked([params for params, _, _ in self.done]), self._trace()

    def resume(self, state: Checkpoint) -> None:
        """Go on from a checkpoint of the same training."""
        groups: dict[str, dict[str, Tensor]] = {"done": {}, "now": {}}
        for name, value in state.tensors.items():
            group, _, key = name.partition(".")
            groups[group][key] = value
        self.stops = [stop for stop in state.stops if stop is not None]
        done = groups["done"]
        self.done = [
            ({"w": done["w"][r], "v": done["v"][r]}, done["table"][r], done["totals"][r])
            for r in range(len(self.stops))
        ]
        self.resumed = groups["now"]

    def _integral(self, flow: Flowing) -> Integral:
        t = self.train
        return Integral(
            flow.field,
            flow.start,
            self.times,
            t.tolerance,
            t.until_loss,
            t.until_output,
            t.prune,
            t.evaluations,
        )

    def _checkpoint(self, integral: Integral) -> Checkpoint:
        tensors = {f"now.{name}": value for name, value in integral.state().items()}
        if self.done:
            params = _stacked([params for params, _, _ in self.done])
            tensors |= {f"done.{name}": value for name, value in params.items()}
            tensors["done.table"] = torch.stack([table for _, table, _ in self.done])
            tensors["done.totals"] = torch.stack([totals for _, _, totals in self.done])
        waiting: list[Stop | None] = [None] * (len(self.flows) - len(self.stops))
        return Checkpoint(integral.accepted, tensors, [*self.stops, *waiting])

    def _trace(self) -> Trace:
        table = torch.stack([table for _, table, _ in self.done])
        columns = {name: table[..., i] for i, name in enumerate(COLUMNS)}
        totals = torch.stack([totals for _, _, totals in self.done])
        final = {name: totals[:, i] for i, name in enumerate(Integral.TOTALS)}
        steps = tuple(range(len(self.times)))
        return Trace(steps, columns, tuple(self.stops), final, self.times)


def _stacked(parts: list[Params]) -> Params:
    return {name: torch.stack([part[name] for part in parts]) for name in parts[0]}


def _power(net: Net) -> float:
    """p of a net whose two layers both flow."""
    if isinstance(net, PowerNet):
        return net.power()
    raise SpecError(
        f"train: the flow needs a net that trains both layers, not {getattr(net, 'kind', '?')!r}",
        "--set net.kind=prelu (p = 1 is the ReLU net)",
    )
