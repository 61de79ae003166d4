"""Training of the patch CNN, standard and adversarial (sections 2.4, 2.5).

What is recorded beside the loss, with max over the filters r of a class i and its features u, v:

    A1..Ak = max_r <w_ir, u_i>    B1..Bk = max_r <w_ir, v_i>      (the diagonal coefficients)
    C = max_{i,r,y!=i} <w_ir, u_y>    D = max_{i,r,y!=i} <w_ir, v_y>
    drift = mean |w_perp(t) - w_perp(0)|, the part orthogonal to all features (Lemmas D.2, D.16)

    doubt = mean of 1 - logit_y

`loss`, `accuracy`, `doubt` are those of the points that are trained on (X~), `clean_*` of X: an
adversarial loss far below the clean one shows that the net reads the label from the perturbation.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from jaxtyping import Float
from pydantic import Field, NonNegativeInt
from torch import Tensor
from torch.nn.functional import cross_entropy

from unmix.nets.base import Params
from unmix.nets.patch_cnn import PatchNet, margins
from unmix.train.base import Checkpoint, Hooks, Record, Start, Stop, Trace, Training
from unmix.train.engines.patch_ascent import Ascent, engine_for

# A weight of this size is not coming back.
BLOW_UP = 1e4
SNAPSHOT = "w."


class PatchDescent(Training):
    """Full-batch gradient descent on the mean cross-entropy: w <- w - eta grad L."""

    kind: Literal["patch-descent"] = "patch-descent"
    eta: float = Field(0.1, gt=0, description="step size")
    steps: int = Field(1000, ge=0, description="number of steps T")
    engine: Literal["gemm", "reference"] = "gemm"
    snapshots: tuple[NonNegativeInt, ...] = Field((), description="steps whose weights are kept")
    record: Record = Record(schedule="linear", points=101)

    trains = (PatchNet,)

    @property
    def ascent(self) -> Ascent | None:
        """The attack before each step, if there is one."""
        return None

    def length(self) -> int:
        return self.steps

    def cost(self, net: Any, data: Any, points: int) -> int:
        passes = 3 if self.ascent is None else 3 + 2 * self.ascent.steps
        return passes * self.steps * points * net.neurons(data) * int(data.size)

    def threads(self, net: Any, data: Any, points: int, pack: int, dtype: str) -> int:
        return 1

    def begin(self, start: Start) -> PatchTrainer:
        return PatchTrainer(start, self)


class PatchAdversarial(PatchDescent):
    """Before each step every point is attacked; the attack counts as a constant."""

    kind: Literal["patch-adversarial"] = "patch-adversarial"  # type: ignore[assignment]
    attack: Ascent = Ascent()

    @property
    def ascent(self) -> Ascent:
        return self.attack


class PatchTrainer:
    """One training of R replicas, step by step."""

    def __init__(self, start: Start, train: PatchDescent) -> None:
        net: PatchNet = start.net
        self.train, self.k, self.y = train, start.data.k, start.batch.y
        self.features = start.data.axes().to(start.params["w"]).flatten(0, 1)
        parts = (start.params, start.batch.x, start.batch.y, net.activation())
        self.engine = engine_for(train.engine, *parts, train.eta, train.ascent)
        self.start = _outside(start.params["w"], self.features)
        self.steps = train.record.steps(train.steps)
        self.rows: list[Tensor] = []
        self.kept: dict[str, Tensor] = {}
        self.stops: list[Stop | None] = [None] * start.replicas
        self.alive = torch.ones(start.replicas, dtype=torch.bool, device=self.y.device)
        self.first = 0

    def run(self, hooks: Hooks) -> tuple[Params, Trace]:
        """Train to the end; `hooks` may save checkpoints on the way."""
        recorded, kept = set(self.steps), set(self.train.snapshots)
        for step in range(self.first, self.train.steps + 1):
            if hooks.wants_checkpoint():
                hooks.checkpoint(self._checkpoint(step))
            if step in recorded:
                self.rows.append(self._row())
            if step in kept:
                self.kept[f"{SNAPSHOT}{step}"] = self.engine.params()["w"]
            hooks.progress(step)
            if step == self.train.steps or not self.alive.any():
                break
            self.engine.advance(self.alive)
            self._watch(step + 1)
        return self.engine.params(), self._trace()

    def resume(self, state: Checkpoint) -> None:
        """Go on from a checkpoint of the same training."""
        self.first, self.stops = state.step, list(state.stops)
        self.alive = torch.tensor([stop is None for stop in self.stops]).to(self.alive)
        self.engine.restore({"w": state.tensors["w"]})
        self.rows = list(state.tensors["rows"]) if "rows" in state.tensors else []
        self.kept = {n: t for n, t in state.tensors.items() if n.startswith(SNAPSHOT)}

    def _watch(self, step: int) -> None:
        """Take the last step back where weights blew up, and stop there."""
        largest = self.engine.w.abs().amax((1, 2, 3))
        blown = ~(largest < BLOW_UP) & self.alive
        if not blown.any():
            return
        self.engine.undo(blown)
        self.alive = self.alive & ~blown
        advice = f"lower train.eta (now {self.train.eta:g}), for example to {self.train.eta / 10:g}"
        for row in blown.nonzero().flatten().tolist():
            self.stops[row] = Stop("diverged", step, advice)

    def _row(self) -> Float[Tensor, "R columns"]:
        """The recorded columns at the current weights."""
        w = self.engine.w
        inner = w @ self.features.T  # [R k m 2k]
        u, v = inner.amax(2).unflatten(-1, (2, self.k)).unbind(2)
        clean = self.engine.outputs()
        seen = clean if self.train.ascent is None else self.engine.attacked_outputs()
        drift = (_outside(w, self.features) - self.start).norm(dim=-1).mean((1, 2))
        values = [_loss(seen, self.y), _loss(clean, self.y)]
        values += [_right(seen, self.y), _right(clean, self.y), _doubt(seen, self.y)]
        values += [_off(u), _off(v), drift]
        diagonal = [*u.diagonal(dim1=1, dim2=2).unbind(1), *v.diagonal(dim1=1, dim2=2).unbind(1)]
        return torch.stack([*values, *diagonal], 1)

    def _checkpoint(self, step: int) -> Checkpoint:
        tensors = {"w": self.engine.params()["w"], **self.kept}
        if self.rows:
            tensors["rows"] = torch.stack(self.rows)
        return Checkpoint(step, tensors, list(self.stops))

    def _trace(self) -> Trace:
        return Trace.of_rows(self.steps, columns_of(self.k), self.rows, self.stops, self.kept)


def columns_of(k: int) -> tuple[str, ...]:
    """Names of what is recorded for k classes."""
    fixed = ("loss", "clean_loss", "accuracy", "clean_accuracy", "doubt", "C", "D", "drift")
    return (*fixed, *(f"{name}{i + 1}" for name in "AB" for i in range(k)))


def _outside(w: Float[Tensor, "R k m d"], features: Float[Tensor, "f d"]) -> Tensor:
    """P_perp w: without its part along the (orthonormal) features."""
    return w - (w @ features.T) @ features


def _off(inner: Float[Tensor, "R k k"]) -> Float[Tensor, " R"]:
    """The largest entry off the diagonal."""
    own = torch.eye(inner.shape[-1], dtype=torch.bool, device=inner.device)
    return inner.masked_fill(own, -torch.inf).amax((1, 2))


def _loss(f: Float[Tensor, "R n k"], y: Tensor) -> Float[Tensor, " R"]:
    return cross_entropy(f.transpose(1, 2), y, reduction="none").mean(1)


def _doubt(f: Float[Tensor, "R n k"], y: Tensor) -> Float[Tensor, " R"]:
    """Mean of 1 - logit_y."""
    return 1 - f.softmax(-1).gather(-1, y.unsqueeze(-1)).mean((1, 2))


def _right(f: Float[Tensor, "R n k"], y: Tensor) -> Float[Tensor, " R"]:
    return (margins(f, y) > 0).to(f).mean(1)
