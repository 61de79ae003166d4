"""Gradient descent, full-batch or by mini-batches: the loop, its records and its stops."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor

from unmix.errors import SpecError
from unmix.nets.base import Net, Network, Params
from unmix.nets.tops import ReluTop, Top
from unmix.streams import stream
from unmix.train.base import Checkpoint, Hooks, Start, Stop, Trace, Trainer, Training
from unmix.train.coefficients import Coefficients
from unmix.train.engines import ENGINES, EngineName, choose
from unmix.train.engines.base import Problem, masked
from unmix.train.engines.columns import Held
from unmix.train.engines.costs import Job, measured
from unmix.train.losses import BinaryLoss, Loss, Reduction, margins

# A loss this many times the first one is not coming back.
BLOW_UP = 1e4
# Steps between two states that are kept to go back to when a replica diverges.
KEPT_EVERY = 64
COLUMNS = ("loss", "margin", "margin_min", "margin_max", "accuracy", "active_own", "active_off")


class NoTraining(Training):
    """Keep the initial weights; for the constructed classifiers."""

    kind: Literal["none"] = "none"

    trains = (Network,)

    def length(self) -> int:
        return 0

    def begin(self, start: Start) -> Trainer:
        if not isinstance(start.net, Net):
            return Still(start)
        still = GradientDescent(steps=0, record=self.record)
        return Descent(replace(start, trainings=(still,) * len(start.trainings)))


@dataclass
class Still:
    """Parameters that stay as they are, of a net that descent does not know."""

    start: Start

    def run(self, hooks: Hooks) -> tuple[Params, Trace]:
        """Nothing is done, and nothing recorded."""
        stops = (Stop("steps", 0),) * self.start.replicas
        return self.start.params, Trace((0,), {}, stops)

    def resume(self, state: Checkpoint) -> None:
        """There is nothing to go on with."""


class GradientDescent(Training):
    """theta <- theta - eta grad L, `steps` times, on all points or on `batch` of them a step."""

    kind: Literal["gradient-descent"] = "gradient-descent"
    eta: float = Field(1e-3, gt=0, description="step size")
    steps: int = Field(100, ge=0, description="number of steps T")
    batch: int | None = Field(None, ge=1, description="points a step, drawn anew each epoch")
    loss: BinaryLoss = "logistic"
    reduction: Reduction = "mean"
    engine: EngineName = "auto"

    packs: ClassVar[tuple[str, ...]] = ("eta",)

    def length(self) -> int:
        return self.steps

    def cost(self, net: Any, data: Any, points: int) -> int:
        """One Gram product, then steps in coefficient space; with batches, two products a step."""
        if self.batch is not None:
            return data.d * (points + 2 * self.steps * self.batch * net.neurons(data))
        return points * min(points, 2 * data.d) * (data.d + self.steps * net.neurons(data))

    def threads(self, net: Any, data: Any, points: int, pack: int, dtype: str) -> int:
        top = net.top(data, torch.empty(0))
        sizes = (pack, 1, net.neurons(data), points, data.d, self.steps, self.batch)
        job = Job(*sizes, top.normed, dtype)
        return measured().fastest(job, (1, os.cpu_count() or 1)).threads

    def begin(self, start: Start) -> Descent:
        return Descent(start)


@dataclass(frozen=True)
class Order:
    """Which points each step of SGD sees: a new permutation an epoch, one stream a seed."""

    seeds: Sequence[int]
    points: int
    size: int

    def rows(self, step: int) -> Int[Tensor, "S b"]:
        """The mini-batch of a step; the last one of an epoch may be smaller."""
        per_epoch = math.ceil(self.points / self.size)
        epoch, turn = divmod(step, per_epoch)
        picked = slice(turn * self.size, (turn + 1) * self.size)
        return torch.stack([self.permutation(seed, epoch)[picked] for seed in self.seeds])

    def permutation(self, seed: int, epoch: int) -> Int[Tensor, " n"]:
        """All points in the order of one epoch."""
        order = stream(seed, f"train.order.{epoch}").permutation(self.points)
        return torch.from_numpy(order)


@dataclass(frozen=True)
class Kept:
    """A state to go back to."""

    step: int
    engine: Params
    sums: Params


class Descent:
    """One training of R replicas, step by step."""

    def __init__(self, start: Start) -> None:
        train = start.training(GradientDescent)
        self.last, self.loss = train.length(), Loss(train.loss, train.reduction)
        self.targets = start.spread(start.net.targets(start.data, start.batch))
        eta = torch.tensor(start.each("eta"), dtype=torch.float64).to(start.batch.x)
        top, points = start.net.top(start.data, start.batch.x), Held(start.batch.x)
        self.problem = Problem(start.params, points, self.targets, top, self.loss, eta)
        _check_coefficients(train, top)
        self.order = Order(start.seeds, start.batch.points, train.batch) if train.batch else None
        self.engine_name = choose(train.engine, self.problem, self.last, train.batch)
        self.engine = ENGINES[self.engine_name](self.problem)
        self.coefficients = Coefficients(train.record.coefficients, start.spread(start.batch.y))
        self.own = start.net.form(start.data, start.params).own(self.targets)
        self.steps = train.record.steps(self.last)
        self.rows: list[Tensor] = []
        self.stops: list[Stop | None] = [None] * start.replicas
        self.alive = torch.ones(start.replicas, dtype=torch.bool, device=start.batch.x.device)
        self.first = 0
        self._keep(0)

    def run(self, hooks: Hooks) -> tuple[Params, Trace]:
        """Train to the end; `hooks` may save checkpoints on the way."""
        recorded = set(self.steps)
        for step in range(self.first, self.last + 1):
            outputs = self._look(step)
            if step in recorded:
                self._record(step, outputs)
            hooks.progress(step)
            if step == self.last or not self.alive.any():
                break
            if hooks.wants_checkpoint():
                hooks.checkpoint(self._checkpoint(step))
            if step - self.kept.step >= KEPT_EVERY:
                self._keep(step)
            self._advance(outputs)
        return self.engine.params(), self._trace()

    def resume(self, state: Checkpoint) -> None:
        """Go on from a checkpoint of the same training."""
        self.first, self.stops = state.step, list(state.stops)
        self.alive = torch.tensor([stop is None for stop in self.stops]).to(self.alive)
        parts: dict[str, Params] = {"sum": {}}
        for name, value in state.tensors.items():
            part, _, key = name.partition(".")
            parts.setdefault(part, {})[key] = value
        # The cost model may have been measured anew since; the checkpoint decides.
        (self.engine_name,) = parts.keys() & ENGINES.keys()
        self.engine = ENGINES[self.engine_name](self.problem)
        self.engine.restore(parts[self.engine_name])
        self.coefficients.sums = parts["sum"]
        self.rows = list(state.tensors["rows"]) if "rows" in state.tensors else []
        # The row of the step itself is recorded again by the loop.
        self.rows = self.rows[: sum(s < state.step for s in self.steps)]
        self.loss0 = state.tensors["loss0"]
        self._keep(state.step)

    def _look(self, step: int) -> Float[Tensor, "R n C"]:
        """Outputs on the points of this step; a replica that blew up is put back and stopped."""
        outputs = self.engine.forward(self._rows(step))
        if step == 0:
            self.loss0 = self._losses(step, outputs)
        if float(outputs.abs().amax()) <= _calm(self.loss):
            return outputs
        loss = self._losses(step, outputs)
        limit = BLOW_UP * self.loss0.clamp_min(1.0)
        blown = (~torch.isfinite(loss) | (loss > limit)) & self.alive
        return self._put_back(blown, step) if blown.any() else outputs

    def _put_back(self, blown: Bool[Tensor, " R"], step: int) -> Float[Tensor, "R n C"]:
        """Undo the last step of some replicas: go back to a kept state and come again."""
        if step > 0:
            self._return_to(step - 1)
        for row in blown.nonzero().flatten().tolist():
            eta = float(self.problem.eta[row])
            advice = f"lower train.eta (now {eta:g}), for example to {eta / 10:g}"
            self.stops[row] = Stop("diverged", step, advice)
        self.alive = self.alive & ~blown
        if step > 0:
            self._keep(step - 1)
            self._advance(self.engine.forward(self._rows(step - 1)))
        return self.engine.forward(self._rows(step))

    def _return_to(self, step: int) -> None:
        self.engine.restore(self.kept.engine)
        self.coefficients.sums = dict(self.kept.sums)
        for earlier in range(self.kept.step, step):
            self._advance(self.engine.forward(self._rows(earlier)))

    def _keep(self, step: int) -> None:
        engine = {name: t.clone() for name, t in self.engine.state().items()}
        self.kept = Kept(step, engine, dict(self.coefficients.sums))

    def _advance(self, outputs: Float[Tensor, "R n C"]) -> None:
        top = self.problem.top
        if self.coefficients.needed and isinstance(top, ReluTop):
            z = self.engine.z()
            on = (z >= 0 if top.slope_at_zero == 1 else z > 0).to(z)
            slopes = self.problem.slopes(outputs.transpose(1, 2), None).transpose(1, 2)
            self.coefficients.observe(on, masked(slopes, self._moving()), top.readout)
        self.engine.advance(self._moving())

    def _moving(self) -> Bool[Tensor, " R"] | None:
        """Who takes a step; None while nobody has stopped."""
        return self.alive if any(self.stops) else None

    def _record(self, step: int, outputs: Float[Tensor, "R n C"]) -> None:
        if self.order is None:
            self.rows.append(self._row(outputs))
            return
        self.rows.append(self._row(self.engine.forward()))
        self.engine.forward(self._rows(step))

    def _row(self, outputs: Float[Tensor, "R n C"]) -> Float[Tensor, "R columns"]:
        """The recorded columns at the current weights, over all training points."""
        q = margins(outputs, self.targets)
        on = self.engine.z() >= 0
        right = q > 0 if outputs.shape[-1] == 1 else outputs.argmax(-1) == self.targets
        own_on, all_on = (on & self.own).sum((1, 2)).to(q), on.sum((1, 2)).to(q)
        own, every = self.own.sum((1, 2)).to(q), on[0].numel()
        values = [
            self.loss.values(outputs, self.targets).mean(1),
            q.mean(1),
            q.amin(1),
            q.amax(1),
            right.to(q).mean(1),
            own_on / own.clamp_min(1),
            (all_on - own_on) / (every - own).clamp_min(1),
        ]
        return torch.stack(values, 1)

    def _losses(self, step: int, outputs: Float[Tensor, "R n C"]) -> Float[Tensor, " R"]:
        rows = self._rows(step)
        targets = self.targets if rows is None else self.problem.targets_at(rows)
        return self.loss.values(outputs, targets).mean(1)

    def _rows(self, step: int) -> Int[Tensor, "S b"] | None:
        return None if self.order is None else self.order.rows(step).to(self.alive.device)

    def _checkpoint(self, step: int) -> Checkpoint:
        tensors = {f"{self.engine_name}.{k}": v.clone() for k, v in self.engine.state().items()}
        tensors |= {f"sum.{k}": v for k, v in self.coefficients.sums.items()}
        tensors["loss0"] = self.loss0
        if self.rows:
            tensors["rows"] = torch.stack(self.rows)
        return Checkpoint(step, tensors, list(self.stops))

    def _trace(self) -> Trace:
        sums = self.coefficients.sums
        return Trace.of_rows(self.steps, COLUMNS, self.rows, self.stops, sums)


def _calm(loss: Loss) -> float:
    """No output of this size makes a loss blow up, so most steps need no other look."""
    return BLOW_UP / 10 if loss.binary == "logistic" else math.log(BLOW_UP)


def _check_coefficients(train: GradientDescent, top: Top) -> None:
    """The recursion of Lemma 5.2 is one of full-batch descent on the first layer alone."""
    if train.record.coefficients and (train.batch is not None or not isinstance(top, ReluTop)):
        raise SpecError(
            "coefficients are recorded for full-batch descent under a frozen second layer only",
            "leave out train.record.coefficients",
        )
