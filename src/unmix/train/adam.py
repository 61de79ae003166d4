"""Adam by mini-batches, for nets on real data (pReLU, section 5.2): epochs, records, checkpoints.

    m <- b1 m + (1-b1) g,  q <- b2 q + (1-b2) g^2,
    theta <- theta - eta (m/(1-b1^t)) / (sqrt(q/(1-b2^t)) + eps)

Replicas are trained one after the other within each epoch: they share nothing, and one replica's
weights stay in the cache. A checkpoint lies between two epochs.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from unmix.data.base import Batch
from unmix.nets.base import Params
from unmix.nets.prelu_classes import PReLUClasses
from unmix.train.base import Checkpoint, Hooks, Record, Start, Stop, Trace, Training
from unmix.train.descent import Order
from unmix.train.power_steps import ENGINES, Points, Steps, stable_rank

COLUMNS = ("loss", "accuracy", "test_accuracy", "stable_rank")


class Adam(Training):
    """`epochs` passes over the training points in batches of `batch`, cross-entropy."""

    kind: Literal["adam"] = "adam"
    eta: float = Field(1e-3, gt=0, description="step size")
    epochs: int = Field(51, ge=0, description="passes over the training points")
    batch: int = Field(1000, ge=1, description="points a step, drawn anew each epoch")
    beta1: float = Field(0.9, ge=0, lt=1)
    beta2: float = Field(0.999, ge=0, lt=1)
    eps: float = Field(1e-8, gt=0)
    watch: int = Field(10_000, ge=1, description="held-out points whose accuracy is recorded")
    record: Record = Record(points=13)
    engine: Literal["hand", "reference"] = Field(
        "hand", description="gradients by hand, or by automatic differentiation"
    )

    trains = (PReLUClasses,)

    def length(self) -> int:
        return self.epochs

    def cost(self, net: Any, data: Any, points: int) -> int:
        """Two products a step, and in each record one and the Gram matrix of the features."""
        h, d, looks = net.neurons(data), int(data.size), len(self.record.steps(self.epochs))
        look = (points + self.watch) * d * h + points * h * h
        return 2 * self.epochs * points * d * h + looks * look

    def threads(self, net: Any, data: Any, points: int, pack: int, dtype: str) -> int:
        return 1

    def begin(self, start: Start) -> Epochs:
        return Epochs(start)


class Epochs:
    """One training of R replicas, epoch by epoch."""

    def __init__(self, start: Start) -> None:
        self.train = start.training(Adam)
        self.net = start.net.classifier(start.data, start.params)
        self.params = {name: value.clone() for name, value in start.params.items()}
        self.sets = self._prepared(start.batch)
        like, seeds = start.batch.x, start.seeds
        held = start.data.sample(seeds, self.train.watch, "test", like.dtype).to(like.device)
        self.held = self._prepared(held)
        self.order = Order(seeds, start.batch.points, self.train.batch)
        self.trained = start.net.trained
        zeros = {name: torch.zeros_like(self.params[name]) for name in self.trained}
        self.moments = {f"{m}.{name}": zero.clone() for m in "mq" for name, zero in zeros.items()}
        self.steps = self.train.record.steps(self.train.epochs)
        self.rows: list[Tensor] = []
        self.stops: list[Stop | None] = [None] * start.replicas
        self.first = 0

    def run(self, hooks: Hooks) -> tuple[Params, Trace]:
        """Train to the end; `hooks` may save checkpoints between epochs."""
        for epoch in range(self.first, self.train.epochs + 1):
            if epoch in self.steps:
                self.rows.append(self._look(epoch))
            hooks.progress(epoch)
            if epoch == self.train.epochs:
                break
            if hooks.wants_checkpoint():
                hooks.checkpoint(self._checkpoint(epoch))
            for replica, stop in enumerate(self.stops):
                if stop is None:
                    self._epoch(replica, epoch)
        return self.params, self._trace()

    def resume(self, state: Checkpoint) -> None:
        """Go on from a checkpoint of the same training."""
        self.first, self.stops = state.step, list(state.stops)
        held = {name: t.clone() for name, t in state.tensors.items()}
        self.params = {n: held[f"params.{n}"] for n in self.params}
        self.moments = {n: held[n] for n in self.moments}
        # The row of the epoch itself is recorded again by the loop.
        self.rows = list(held["rows"])[: sum(s < state.step for s in self.steps)]

    def _epoch(self, replica: int, epoch: int) -> None:
        """All batches of one epoch, for one replica; one that blows up is put back and stopped."""
        before = {name: self.params[name][replica].clone() for name in self.trained}
        engine, size = self._engine(replica), self.train.batch
        order = self.order.permutation(self.order.seeds[replica], epoch)
        batches = order.to(engine.points.y.device).split(size)
        for turn, rows in enumerate(batches):
            self._move(replica, engine.gradient(rows)[1], epoch * len(batches) + turn + 1)
        if all(self.params[name][replica].isfinite().all() for name in self.trained):
            return
        for name, value in before.items():
            self.params[name][replica] = value
        advice = f"lower train.eta (now {self.train.eta:g})"
        self.stops[replica] = Stop("diverged", epoch, advice)

    def _move(self, replica: int, moves: Params, t: int) -> None:
        """Adam's step number t."""
        a = self.train
        for name in self.trained:
            g = moves[name]
            m, q = self.moments[f"m.{name}"][replica], self.moments[f"q.{name}"][replica]
            m.lerp_(g, 1 - a.beta1)
            q.mul_(a.beta2).addcmul_(g, g, value=1 - a.beta2)
            scale = q.sqrt().div_(math.sqrt(1 - a.beta2**t)).add_(a.eps)
            self.params[name][replica].addcdiv_(m, scale, value=-a.eta / (1 - a.beta1**t))

    def _look(self, epoch: int) -> Float[Tensor, "columns R"]:
        """What is recorded before an epoch; a stopped replica keeps its last row."""
        found = []
        for replica, stop in enumerate(self.stops):
            if stop is not None and self.rows:
                found.append(self.rows[-1][:, replica])
                continue
            engine = self._engine(replica)
            loss, accuracy, gram = engine.look(engine.points)
            held = engine.look(self.held[replica % len(self.held)])[1]
            row = [loss, accuracy, held, stable_rank(gram)]
            found.append(torch.tensor(row, dtype=torch.float64))
        return torch.stack(found, 1)

    def _engine(self, replica: int) -> Steps:
        mine = {name: value[replica] for name, value in self.params.items()}
        points = self.sets[replica % len(self.sets)]
        return ENGINES[self.train.engine](self.net.p, mine, points, self.train.batch)

    def _prepared(self, batch: Batch) -> list[Points]:
        """One set of points for all replicas that share one place in memory, else one each."""
        sets = 1 if batch.x.stride(0) == 0 else len(batch.x)
        return [Points.of(self.net.replica(r), batch.x[r : r + 1], batch.y[r]) for r in range(sets)]

    def _checkpoint(self, epoch: int) -> Checkpoint:
        held = {f"params.{name}": value for name, value in self.params.items()} | self.moments
        tensors = {name: value.clone() for name, value in held.items()}
        return Checkpoint(epoch, tensors | {"rows": torch.stack(self.rows)}, list(self.stops))

    def _trace(self) -> Trace:
        columns = dict(zip(COLUMNS, torch.stack(self.rows, -1), strict=True))
        done = [stop or Stop("steps", self.train.epochs) for stop in self.stops]
        return Trace(self.steps, columns, tuple(done))
