"""What an attack asks of a classifier, and the classifiers that answer.

A target maps points [P d] to scores [P C], one a label, and pulls slopes of the scores back to the
input. A net with one output f has the scores (-f/2, f/2); so does a fine-grained net, with its f in
log form. Two-layer nets are differentiated by hand here, all others by autograd (`foreign`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from unmix.attacks.objectives import Objective, Scores
from unmix.nets.form import Form

Rows = Float[Tensor, "P D"]

# A product with few rows is faster than one with as few columns.
SKINNY = 32


@runtime_checkable
class Target(Protocol):
    """A classifier of one replica; labels are 0..C-1 and ties go to the lowest."""

    @property
    def dtype(self) -> torch.dtype:
        """The precision in which it computes."""

    def scores(self, x: Rows) -> Scores:
        """Scores of points, one row a point, on whatever scale."""

    def pull(self, x: Rows, lowered: Objective) -> tuple[Scores, Tensor, Rows]:
        """Scores, the objective's values [P] and their gradient with respect to x."""

    def double(self) -> Target:
        """The same classifier in float64, sharing nothing that could be changed."""


@dataclass(frozen=True)
class FormTarget:
    """A two-layer net, differentiated by hand."""

    w: Float[Tensor, "M d"]
    b: Float[Tensor, " M"]
    head: Head

    @classmethod
    def of(cls, form: Form, replica: int = 0) -> FormTarget:
        readout = form.readout[min(replica, len(form.readout) - 1)]
        head = Head(readout.detach(), form.activation, form.signs)
        return cls(form.w[replica].detach(), form.b[replica].detach(), head)

    @property
    def dtype(self) -> torch.dtype:
        return self.w.dtype

    def preactivations(self, x: Rows) -> Float[Tensor, "P M"]:
        if len(self.w) > SKINNY:
            return torch.addmm(self.b, x, self.w.T)
        return torch.addmm(self.b.unsqueeze(1), self.w, x.T).T.contiguous()

    def scores(self, x: Rows) -> Scores:
        return self.head.scores(self.preactivations(x))

    def pull(self, x: Rows, lowered: Objective) -> tuple[Scores, Tensor, Rows]:
        scores, value, slope = self.head.pull(self.preactivations(x), lowered)
        return scores, value, slope @ self.w

    @property
    def lipschitz(self) -> float:
        """Bounds |m(x) - m(x')| / |x - x'| of a margin m; infinity where only local bounds are."""
        head = self.head
        each = self.w.norm(dim=1) @ head.readout.abs()
        steepest = torch.where(each > 0, each * head.activation.steepest, each)
        if head.signs is None:
            return float(steepest[0] if len(steepest) == 1 else steepest.topk(2).values.sum())
        return float(steepest[head.signs > 0].amax() + steepest[head.signs < 0].amax())

    def double(self) -> FormTarget:
        return FormTarget(self.w.double(), self.b.double(), self.head.double())


@dataclass(frozen=True)
class Head:
    """What stands above the pre-activations: phi, the readout, and how outputs become scores.

    One output is binary; several are compared (`signs` None) or summed up by the sign of their
    label, f = LSE_+ - LSE_-.
    """

    readout: Float[Tensor, "M C"]
    activation: Any
    signs: Float[Tensor, " C"] | None = None
    bias: Float[Tensor, " C"] | None = None

    def scores(self, z: Rows) -> Scores:
        return self._scores(self._outputs(z))

    def pull(self, z: Rows, lowered: Objective) -> tuple[Scores, Tensor, Rows]:
        """Scores, the objective and its slopes d/dz."""
        outputs = self._outputs(z)
        scores = self._scores(outputs)
        value, slopes = lowered(scores)
        return scores, value, self.activation.slope(z) * self._back(outputs, slopes)

    @property
    def votes(self) -> Float[Tensor, "M L"]:
        """What a unit of each neuron adds to the score of each label."""
        if self.signs is not None:
            sides = [self.readout[:, self.signs == s].sum(1) for s in (-1, 1)]
            return torch.stack(sides, 1)
        return self.readout * halves(self.readout) if self.readout.shape[1] == 1 else self.readout

    def double(self) -> Head:
        bias = None if self.bias is None else self.bias.double()
        return replace(self, readout=self.readout.double(), bias=bias)

    def _outputs(self, z: Rows) -> Float[Tensor, "P O"]:
        outputs = self.activation.value(z) @ self.readout
        return outputs if self.bias is None else outputs + self.bias

    def _scores(self, outputs: Float[Tensor, "P O"]) -> Scores:
        if self.signs is not None:
            plus, minus = outputs[:, self.signs > 0], outputs[:, self.signs < 0]
            f = (plus.logsumexp(-1) - minus.logsumexp(-1)).unsqueeze(-1)
        elif outputs.shape[1] == 1:
            f = outputs
        else:
            return outputs
        return f * halves(f)

    def _back(self, outputs: Float[Tensor, "P O"], slopes: Scores) -> Rows:
        """Slopes of scores as slopes of phi(z)."""
        if self.signs is None and outputs.shape[1] > 1:
            return slopes @ self.readout.T
        df = (slopes @ halves(slopes)).unsqueeze(-1)
        if self.signs is None:
            return df * self.readout[:, 0]
        pull = torch.zeros_like(outputs)
        for side in (1, -1):
            pull[:, self.signs == side] = side * outputs[:, self.signs == side].softmax(-1)
        return (df * pull) @ self.readout.T


def labels(y: Tensor) -> Int[Tensor, " n"]:
    """Classes as they are, and labels -1, +1 as 0, 1."""
    return (y > 0).long() if y.is_floating_point() else y.long()


def halves(like: Tensor) -> Float[Tensor, " 2"]:
    """f -> (-f/2, f/2): exact in floating point, and the margin is |f|."""
    return torch.tensor([-0.5, 0.5], dtype=like.dtype, device=like.device)
