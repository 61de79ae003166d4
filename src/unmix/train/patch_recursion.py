"""The recursion of the diagonal coefficients alone (Lemmas 5.1, 5.2, D.4, D.22), with constants.

    da = min(eps, eta~ sum_s s'(alpha A_s) A_s),   a = alpha - da      (eta~ = 0: standard training)
    db = min(eps, eta~ sum_s s'(beta B_s) B_s),    b = beta - db
    A <- A + (eta/k) g n_R s'(a A) a,              B <- B + (eta/k) g n_NR s'(b B) b
    g = (k-1)/(e^F + k-1),                         F = n_R sum_s s(a A_s) + n_NR sum_s s(b B_s)

An approximation of training on infinitely many points without noise: classes do not see each other
(F_j = 0 for j != y), C and D stay, and the attack moves no coordinate but u_y of robust and v_y of
non-robust patches. It is some thousand times cheaper than training, and never its substitute.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from unmix.nets.base import Params
from unmix.nets.patch_cnn import PatchNet
from unmix.train.base import Checkpoint, Hooks, Record, Start, Stop, Trace, Training


class PatchRecursion(Training):
    """A named approximation of `patch-descent` (step=0) and `patch-adversarial`."""

    kind: Literal["patch-recursion"] = "patch-recursion"
    eta: float = Field(0.1, gt=0, description="step size")
    steps: int = Field(1000, ge=0, description="number of steps T")
    step: float = Field(0.0, ge=0, description="eta~ as one point sees it; 0 trains without attack")
    eps: float = Field(1.2, gt=0, description="radius of the clip")
    record: Record = Record(schedule="linear", points=101)

    trains = (PatchNet,)

    def length(self) -> int:
        return self.steps

    def cost(self, net: Any, data: Any, points: int) -> int:
        return 20 * self.steps * int(net.neurons(data))

    def begin(self, start: Start) -> Recursion:
        return Recursion(start, self)


class Recursion:
    """A and B [R k m] of every filter, step by step."""

    def __init__(self, start: Start, train: PatchRecursion) -> None:
        self.train, self.data, self.net = train, start.data, start.net
        self.activation, self.w = start.net.activation(), start.params["w"]
        own = torch.arange(start.data.k)
        self.axes = (own, start.data.k + own)
        self.a, self.b = (self.w[:, own, :, axes].movedim(0, 1) for axes in self.axes)
        self.steps = train.record.steps(train.steps)
        self.rows: list[Tensor] = []
        self.first = 0
        low, high = zip(start.data.alpha, start.data.beta, strict=True)
        self.alpha, self.beta = ((x + y) / 2 for x, y in zip(low, high, strict=True))

    def run(self, hooks: Hooks) -> tuple[Params, Trace]:
        """Iterate to the end."""
        recorded = set(self.steps)
        for step in range(self.first, self.train.steps + 1):
            if hooks.wants_checkpoint():
                hooks.checkpoint(self._checkpoint(step))
            a, b = self.seen()
            f = self._output(a, b)
            if step in recorded:
                self.rows.append(self._row(f))
            hooks.progress(step)
            if step < self.train.steps:
                self._advance(a, b, f)
        return {"w": self._weights()}, self._trace()

    def resume(self, state: Checkpoint) -> None:
        """Go on from a checkpoint of the same training."""
        self.first, self.a, self.b = state.step, state.tensors["A"], state.tensors["B"]
        self.rows = list(state.tensors["rows"]) if "rows" in state.tensors else []

    def seen(self) -> tuple[Tensor, Tensor]:
        """The features' sizes after the attack, a and b [R k 1]."""
        if self.train.step == 0:
            shape = (*self.a.shape[:2], 1)
            return self.a.new_full(shape, self.alpha), self.b.new_full(shape, self.beta)
        return self._shrunk(self.alpha, self.a), self._shrunk(self.beta, self.b)

    def _shrunk(self, size: float, own: Float[Tensor, "R k m"]) -> Float[Tensor, "R k 1"]:
        pull = (self.activation.slope(size * own) * own).sum(-1, keepdim=True)
        return size - (self.train.step * pull).clamp(-self.train.eps, self.train.eps)

    def _output(self, a: Tensor, b: Tensor) -> Float[Tensor, "R k 1"]:
        """F_y of a point that was attacked."""
        robust = self.activation.value(a * self.a).sum(-1, keepdim=True)
        other = self.activation.value(b * self.b).sum(-1, keepdim=True)
        return self.data.robust * robust + (self.data.patches - self.data.robust) * other

    def _advance(self, a: Tensor, b: Tensor, f: Tensor) -> None:
        rivals = self.data.k - 1
        pace = self.train.eta / self.data.k * rivals / (f.exp() + rivals)
        others = self.data.patches - self.data.robust
        self.a = self.a + pace * self.data.robust * self.activation.slope(a * self.a) * a
        self.b = self.b + pace * others * self.activation.slope(b * self.b) * b

    def _row(self, f: Float[Tensor, "R k 1"]) -> Float[Tensor, "R columns"]:
        loss = torch.log1p((self.data.k - 1) * (-f).exp()).mean((1, 2))
        return torch.cat([loss.unsqueeze(1), self.a.amax(-1), self.b.amax(-1)], 1)

    def _weights(self) -> Float[Tensor, "R k m d"]:
        """The start with its diagonal coefficients replaced."""
        w = self.w.clone()
        for axes, values in zip(self.axes, (self.a, self.b), strict=True):
            w[:, self.axes[0], :, axes] = values.movedim(1, 0)
        return w

    def _checkpoint(self, step: int) -> Checkpoint:
        tensors = {"A": self.a, "B": self.b}
        if self.rows:
            tensors["rows"] = torch.stack(self.rows)
        return Checkpoint(step, tensors, [None] * len(self.w))

    def _trace(self) -> Trace:
        table, k = torch.stack(self.rows, 1), self.data.k
        names = ("loss", *(f"{name}{i + 1}" for name in "AB" for i in range(k)))
        columns = {name: table[..., i] for i, name in enumerate(names)}
        stops = (Stop("steps", self.train.steps),) * len(self.w)
        return Trace(self.steps, columns, stops)
