"""Full-batch gradient descent: the loop, its records and its stops."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from unmix.data.base import Batch
from unmix.data.clusters import Clusters
from unmix.nets.base import Net, Params
from unmix.train.base import Checkpoint, Hooks, Stop, Trace, Training
from unmix.train.coefficients import Coefficients
from unmix.train.engines.base import Engine
from unmix.train.engines.gemm import Gemm
from unmix.train.engines.gram import Gram
from unmix.train.engines.reference import Reference
from unmix.train.losses import derivatives, losses, margins

# A loss this many times the first one is not coming back.
BLOW_UP = 1e4
ENGINES: dict[str, type[Engine]] = {"reference": Reference, "gemm": Gemm, "gram": Gram}
COLUMNS = ("loss", "margin", "margin_min", "margin_max", "accuracy", "active_own", "active_off")


class NoTraining(Training):
    """Keep the initial weights; for the constructed classifiers."""

    kind: Literal["none"] = "none"

    def length(self) -> int:
        return 0

    def begin(self, net: Net, data: Clusters, params: Params, batch: Batch) -> Descent:
        return Descent(self, net, data, params, batch)


class GradientDescent(Training):
    """theta <- theta - eta grad L(theta), `steps` times."""

    kind: Literal["gradient-descent"] = "gradient-descent"
    eta: float = Field(1e-3, gt=0, description="step size")
    steps: int = Field(100, ge=0, description="number of steps T")
    engine: Literal["auto", "reference", "gemm", "gram"] = "auto"

    def length(self) -> int:
        return self.steps

    def engine_for(self, n: int, d: int) -> str:
        """Gram wins when n < 2 d (flops) and its set-up pays off within some 20 steps."""
        if self.engine == "auto":
            return "gram" if n < 2 * d and self.steps >= 20 else "gemm"
        return self.engine

    def begin(self, net: Net, data: Clusters, params: Params, batch: Batch) -> Descent:
        return Descent(self, net, data, params, batch)


class Descent:
    """One training of R replicas, step by step."""

    def __init__(
        self,
        train: GradientDescent | NoTraining,
        net: Net,
        data: Clusters,
        params: Params,
        batch: Batch,
    ) -> None:
        self.train, self.batch = train, batch
        self.eta = train.eta if isinstance(train, GradientDescent) else 0.0
        self.slope = getattr(net, "slope_at_zero", 1)
        self.readout = net.readout(data).to(batch.x)
        self.targets = net.targets(data, batch)
        name = "gemm"
        if isinstance(train, GradientDescent):
            name = train.engine_for(batch.points, data.d)
        start = (params, batch.x, self.targets, self.readout)
        self.engine = ENGINES[name](*start, self.eta, self.slope)
        self.coefficients = Coefficients(train.record.coefficients, batch)
        self.own = votes_for_label(self.readout, net, data, batch)
        self.last = train.length()
        self.steps = train.record.steps(self.last)
        self.rows: list[Tensor] = []
        self.stops: list[Stop | None] = [None] * batch.x.shape[0]
        self.first = 0

    def run(self, hooks: Hooks) -> tuple[Params, Trace]:
        """Train to the end; `hooks` may save checkpoints on the way."""
        for step in range(self.first, self.last + 1):
            z, outputs = self._look(step)
            if step in self.steps:
                self.rows.append(self._row(z, outputs))
            hooks.progress(step)
            if step == self.last or not self._alive().any():
                break
            if hooks.wants_checkpoint():
                hooks.checkpoint(self._checkpoint(step))
            self._advance(z, outputs)
        return self.engine.params(), self._trace()

    def resume(self, state: Checkpoint) -> None:
        """Go on from a checkpoint of the same training."""
        self.first, self.stops = state.step, list(state.stops)
        groups: dict[str, dict[str, Tensor]] = {key: {} for key in ("engine", "sum")}
        for name, value in state.tensors.items():
            if name != "rows":
                group, _, key = name.partition(".")
                groups[group][key] = value
        self.engine.restore(groups["engine"])
        self.coefficients.sums = groups["sum"]
        self.rows = list(state.tensors["rows"]) if "rows" in state.tensors else []
        if self.rows:
            self.loss0 = self.rows[0][:, COLUMNS.index("loss")]
        # The row of the step itself is recorded again by the loop.
        self.rows = self.rows[: sum(s < state.step for s in self.steps)]

    def _look(self, step: int) -> tuple[Tensor, Tensor]:
        """Pre-activations and outputs; a replica whose loss blew up is put back and stopped."""
        z = self.engine.z()
        outputs = z.relu() @ self.readout
        loss = losses(outputs, self.targets).mean(1)
        if step == 0:
            self.loss0 = loss
        limit = BLOW_UP * self.loss0.clamp_min(1.0)
        blown = (~torch.isfinite(loss) | (loss > limit)) & self._alive()
        if blown.any():
            self._stop(blown, step)
            z = self.engine.z()
            outputs = z.relu() @ self.readout
        return z, outputs

    def _stop(self, blown: Tensor, step: int) -> None:
        advice = f"lower train.eta (now {self.eta:g}), for example to {self.eta / 10:g}"
        for row in blown.nonzero().flatten().tolist():
            self.stops[row] = Stop("diverged", step, advice)
        if step > 0:
            self.engine.undo(blown)
            self.coefficients.undo(blown)

    def _advance(self, z: Tensor, outputs: Tensor) -> None:
        if self.coefficients.needed:
            on = (z >= 0 if self.slope == 1 else z > 0).to(z) * self._alive().reshape(-1, 1, 1)
            slopes = derivatives(outputs, self.targets)
            self.coefficients.observe(on, slopes, self.readout, self.eta)
        self.engine.advance(self._alive())

    def _row(self, z: Tensor, outputs: Tensor) -> Tensor:
        """The recorded columns [R, columns] at the current weights."""
        q = margins(outputs, self.targets)
        on = (z >= 0).to(z)
        right = q > 0 if outputs.shape[-1] == 1 else outputs.argmax(-1) == self.targets
        values = [
            losses(outputs, self.targets).mean(1),
            q.mean(1),
            q.amin(1),
            q.amax(1),
            right.to(z).mean(1),
            (on * self.own).sum((1, 2)) / self.own.sum((1, 2)),
            (on * (1 - self.own)).sum((1, 2)) / (1 - self.own).sum((1, 2)).clamp_min(1),
        ]
        return torch.stack(values, 1)

    def _alive(self) -> Tensor:
        alive = [stop is None for stop in self.stops]
        return torch.tensor(alive, device=self.readout.device)

    def _checkpoint(self, step: int) -> Checkpoint:
        tensors = {f"engine.{k}": v for k, v in self.engine.state().items()}
        tensors |= {f"sum.{k}": v for k, v in self.coefficients.sums.items()}
        if self.rows:
            tensors["rows"] = torch.stack(self.rows)
        return Checkpoint(step, tensors, list(self.stops))

    def _trace(self) -> Trace:
        # A replica set that stopped early keeps its last row, so every column has T rows.
        rows = self.rows + [self.rows[-1]] * (len(self.steps) - len(self.rows))
        table = torch.stack(rows, 1)
        columns = {name: table[..., i] for i, name in enumerate(COLUMNS)}
        stops = tuple(stop or Stop("steps", self.last) for stop in self.stops)
        return Trace(self.steps, columns, stops, self.coefficients.sums)


def votes_for_label(readout: Tensor, net: Net, data: Clusters, batch: Batch) -> Tensor:
    """[R n M]: 1 where neuron r stands for point i's own label (binary) or class (k-class)."""
    if net.classes(data) is None:
        return (readout[:, 0].sign() == batch.y.unsqueeze(-1)).to(readout)
    return readout.T[net.targets(data, batch)].sign()
