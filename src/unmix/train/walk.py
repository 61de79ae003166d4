"""The symmetric net's training, replica by replica: phases of steps, each with its own points.

Where features are orthonormal everything is done in their basis, u = M^T w, in which codes are
sparse; weights are turned there at the start and back at the end. Where they overlap it is done in
input space, on dense points. Replicas share nothing, so each walks alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from unmix.data.sparse_code import SparseCode
from unmix.nets.base import Params
from unmix.nets.mixture import Reading
from unmix.perturbations.base import Perturbation, Points, Scene, dense
from unmix.streams import normals
from unmix.train.base import Checkpoint, Hooks, Start, Stop, Trace
from unmix.train.descent import Order
from unmix.train.engines.symmetric import Schedule, SymmetricGemm
from unmix.train.watch import COLUMNS, Watch

Source = Literal["fresh", "fixed"]
Noise = Literal["mean", "drawn"]


@dataclass(frozen=True)
class Phase:
    """Steps with one step size and batch; the radius is 0 for `hold` steps, then rises to tau."""

    steps: int
    eta: float
    batch: int | None
    attack: Perturbation | None = None
    tau: float = 0.0
    hold: int = 0
    rise: int = 0
    grows: bool = True

    def radius(self, step: int) -> float:
        """tau of a step of this phase."""
        if step < self.hold:
            return 0.0
        return self.tau * min(1.0, (step - self.hold + 1) / (self.rise + 1))


@dataclass(frozen=True)
class Plan:
    """What all replicas do."""

    phases: tuple[Phase, ...]
    schedule: Schedule
    source: Source
    noise: Noise
    radius: float

    @property
    def steps(self) -> int:
        return sum(phase.steps for phase in self.phases)

    def at(self, step: int) -> tuple[Phase, int]:
        """The phase of a step, and the step within it."""
        for phase in self.phases[:-1]:
            if step < phase.steps:
                return phase, step
            step -= phase.steps
        return self.phases[-1], step

    def schedule_of(self, phase: Phase) -> Schedule:
        """Alg. 2 keeps the bias where Alg. 1 left it."""
        return self.schedule if phase.grows else self.schedule.override("growth=0.0")

    @property
    def norm(self) -> Literal["l2", "linf"]:
        """In which norm robustness is watched: that of the last attack."""
        attacks = [phase.attack.norm for phase in self.phases if phase.attack is not None]
        return attacks[-1] if attacks else "l2"

    @property
    def attacked_from(self) -> int | None:
        """The first step with an attack."""
        before = 0
        for phase in self.phases:
            if phase.attack is not None:
                return before
            before += phase.steps
        return None


class Supply:
    """Where one seed's points come from: in the basis of the features, if they are one."""

    def __init__(self, plan: Plan, data: SparseCode, seed: int, kept: int, like: Tensor) -> None:
        self.plan, self.seed, self.like = plan, seed, like
        self.data: SparseCode = data.override("basis=identity") if data.orthonormal else data
        if plan.source == "fixed":
            self.kept, self.labels = self.draw(kept, "train")
            self.count = kept

    def step(self, step: int, size: int | None) -> tuple[Points, Float[Tensor, "1 n"]]:
        """Points and labels of a step."""
        if self.plan.source == "fresh":
            return self.draw(size or 1, f"train.step.{step}")
        if size is None or size >= self.count:
            return self.kept, self.labels
        (rows,) = Order((self.seed,), self.count, size).rows(step)
        taken = self.kept[:, rows] if isinstance(self.kept, Tensor) else self.kept.take(rows)
        return taken, self.labels[:, rows]

    def draw(self, n: int, purpose: str) -> tuple[Points, Float[Tensor, "1 n"]]:
        """Sparse where there is no noise."""
        kind, place = self.like.dtype, self.like.device
        if not self.data.sparse:
            coded = self.data.sample((self.seed,), n, purpose, kind)
            return coded.x.to(place), coded.y.to(place)
        z, y = self.data.codes((self.seed,), n, purpose, kind)
        return z.to(place), y.to(place)


class Walk:
    """One replica under way."""

    def __init__(self, plan: Plan, start: Start, r: int) -> None:
        self.plan, self.data, self.seed = plan, start.data, start.seeds[r]
        w = start.params["w"][r : r + 1]
        self.dictionary = None
        if self.data.orthonormal and self.data.basis != "identity":
            self.dictionary = self.data.dictionary((self.seed,), w.dtype).to(w.device)
        u = w if self.dictionary is None else w @ self.dictionary
        params = {"w": u, "b": start.params["b"][r : r + 1]}
        self.engine = SymmetricGemm(params, plan.schedule, dictionary=self.dictionary)
        self.supply = Supply(plan, self.data, self.seed, start.batch.points, w)
        read = Reading.of(self.data, (self.seed,), w)
        self.scene = Scene(self.engine, read.ahead, self.dictionary, (self.seed,), "")
        points = self.supply.draw(Watch.POINTS, "train.watch")
        self.watch = Watch(self.scene, *points, read, u.clone(), plan.norm, plan.radius)
        self.before, self.phase = u.clone(), plan.phases[0]
        self.step, self.stop = 0, None if plan.steps else Stop("steps", 0)
        self.rows: list[Tensor] = []

    def look(self) -> None:
        """Record a row; a dead or broken net stops."""
        row = self.watch.row()
        self.rows.append(torch.tensor(row, dtype=torch.float64))
        values = dict(zip(COLUMNS, row, strict=True))
        begun = self.plan.attacked_from
        if not values["loss"] < float("inf"):
            eta = self.plan.at(self.step)[0].eta
            self.stop = Stop("diverged", self.step, f"lower train.eta (now {eta:g})")
        elif begun is not None and self.step > begun and values["zeroed"] > 0.5:
            advice = "the net is dead: its gradient is 0 at most points; lower train.tau"
            self.stop = Stop("collapsed", self.step, advice)

    def advance(self) -> None:
        """One step of Algorithm 1 or 2."""
        phase, inside = self.plan.at(self.step)
        if self.step == self.plan.attacked_from:
            self.before = self.engine.params()["w"].clone()
        if phase is not self.phase:
            self.phase, self.engine.schedule = phase, self.plan.schedule_of(phase)
        x, y = self.supply.step(self.step, phase.batch)
        tau = phase.radius(inside)
        if phase.attack is not None and tau > 0:
            scene = replace(self.scene, purpose=f"train.attack.{self.step}")
            x = dense(x) + phase.attack.perturb(scene, x, y, tau)
        self.engine.step(x, y, phase.eta, self._rho(y.shape[1]))
        self.step += 1
        if self.step == self.plan.steps:
            self.stop = Stop("steps", self.step)

    def _rho(self, n: int) -> Float[Tensor, "1 n m"] | None:
        if self.plan.noise == "mean":
            return None
        w, b = self.engine.w, float(self.engine.b[0])
        sigma = self.engine.schedule.sigma(b)
        drawn = normals((self.seed,), f"train.rho.{self.step}", (n, w.shape[1]), w.dtype)
        return (sigma * drawn).to(w.device)

    def params(self) -> Params:
        """Weights in input space, threshold and noise."""
        state = self.engine.params()
        sigma = self.engine.schedule.sigma(float(state["b"][0]))
        b = state["b"].to(state["w"])
        return {"w": self._back(state["w"]), "b": b, "sigma": torch.full_like(b, sigma)}

    def memory(self) -> Params:
        """The weights with which adversarial training began."""
        if (begun := self.plan.attacked_from) is None:
            return {}
        return {"before": self._back(self.before if self.step > begun else self.engine.w)}

    def state(self) -> Params:
        return self.engine.state() | {"rows": torch.stack(self.rows), "before": self.before}

    def restore(self, step: int, state: Params) -> None:
        self.engine.restore(state)
        self.step, self.rows, self.before = step, list(state["rows"]), state["before"]
        self.phase = self.plan.at(max(step - 1, 0))[0]
        self.engine.schedule = self.plan.schedule_of(self.phase)

    def _back(self, u: Float[Tensor, "1 m d"]) -> Float[Tensor, "1 m d"]:
        return u.clone() if self.dictionary is None else u @ self.dictionary.transpose(1, 2)


class Walks:
    """One training of R replicas, one after the other."""

    def __init__(self, plan: Plan, start: Start, recorded: tuple[int, ...]) -> None:
        self.plan, self.start, self.recorded = plan, start, recorded
        self.done: list[tuple[Params, Params, Tensor]] = []
        self.stops: list[Stop] = []
        self.resumed: tuple[int, Params] | None = None

    def run(self, hooks: Hooks) -> tuple[Params, Trace]:
        """Train to the end; `hooks` may save checkpoints on the way."""
        recorded = set(self.recorded)
        for r in range(len(self.done), self.start.replicas):
            walk = Walk(self.plan, self.start, r)
            if self.resumed is not None:
                walk.restore(*self.resumed)
                self.resumed = None
            while True:
                if walk.step in recorded and len(walk.rows) < self._rows_until(walk.step):
                    walk.look()
                if walk.stop is not None:
                    break
                if walk.rows and hooks.wants_checkpoint():
                    hooks.checkpoint(self._checkpoint(walk))
                walk.advance()
                hooks.progress((r * self.plan.steps + walk.step) // self.start.replicas)
            self._finish(walk)
        hooks.progress(self.plan.steps)
        return _stacked([params for params, _, _ in self.done]), self._trace()

    def resume(self, state: Checkpoint) -> None:
        """Go on from a checkpoint of the same training."""
        groups: dict[str, Params] = {"params": {}, "memory": {}, "now": {}}
        for name, value in state.tensors.items():
            group, _, key = name.partition(".")
            groups.setdefault(group, {})[key] = value
        self.stops = [stop for stop in state.stops if stop is not None]
        self.done = [
            (
                {name: value[r : r + 1] for name, value in groups["params"].items()},
                {name: value[r : r + 1] for name, value in groups["memory"].items()},
                groups["table"]["rows"][r],
            )
            for r in range(len(self.stops))
        ]
        self.resumed = (state.step, groups["now"])

    def _rows_until(self, step: int) -> int:
        """Rows that a walk has once it has looked at this step."""
        return sum(recorded <= step for recorded in self.recorded)

    def _finish(self, walk: Walk) -> None:
        assert walk.stop is not None
        # A replica that stopped early keeps its last row, so every column has T rows.
        rows = walk.rows + [walk.rows[-1]] * (len(self.recorded) - len(walk.rows))
        self.done.append((walk.params(), walk.memory(), torch.stack(rows)))
        self.stops.append(walk.stop)

    def _checkpoint(self, walk: Walk) -> Checkpoint:
        tensors = {f"now.{name}": value for name, value in walk.state().items()}
        if self.done:
            params = _stacked([params for params, _, _ in self.done])
            memory = _stacked([memory for _, memory, _ in self.done])
            tensors |= {f"params.{name}": value for name, value in params.items()}
            tensors |= {f"memory.{name}": value for name, value in memory.items()}
            tensors["table.rows"] = torch.stack([rows for _, _, rows in self.done])
        waiting: list[Stop | None] = [None] * (self.start.replicas - len(self.stops))
        return Checkpoint(walk.step, tensors, [*self.stops, *waiting])

    def _trace(self) -> Trace:
        table = torch.stack([rows for _, _, rows in self.done])
        columns = {name: table[..., i] for i, name in enumerate(COLUMNS)}
        memory = _stacked([memory for _, memory, _ in self.done])
        return Trace(self.recorded, columns, tuple(self.stops), memory)


def _stacked(parts: list[Params]) -> Params:
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
