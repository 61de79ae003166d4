"""What must not fall below 0: the oriented margin of a point, as one-output nets.

    m(x) = sum_j a_j phi(<w_j, x> + b_j) + c,    misclassified iff m <= 0 (or m < 0, where strict)

For the label y and one output, a = y A; since sgn(0) = -1, a point of label -1 is lost only where
m < 0. Of several outputs the first largest is the label, so class y has a margin A_y - A_j against
every rival j (strict for j > y), and is lost where any of them is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from unmix.certify.base import Question
from unmix.nets.activations import Activation


@dataclass(frozen=True)
class Margin:
    """The margin of some points of one replica against one rival."""

    w: Float[Tensor, "M d"]
    b: Float[Tensor, " M"]
    a: Float[Tensor, " M"]
    c: float
    strict: bool
    activation: Activation
    replica: int
    points: Bool[Tensor, " n"]

    def value(self, z: Float[Tensor, "*s M"]) -> Float[Tensor, "*s"]:
        """m as a function of the pre-activations."""
        return self.activation.value(z) @ self.a + self.c


def margins(question: Question, replica: int) -> Iterator[Margin]:
    """All margins that some point of a replica has; neurons without input are in the constant."""
    form = question.form
    w, b, readout = form.w[replica], form.b[replica], form.readout[replica]
    hears = (w != 0).any(1)
    at_rest = form.activation.value(b)
    for a, strict, points in _oriented(question, replica, readout):
        speaks = hears & (a != 0)
        c = float((a * at_rest)[~hears].sum())
        yield Margin(w[speaks], b[speaks], a[speaks], c, strict, form.activation, replica, points)


def _oriented(
    question: Question, replica: int, readout: Float[Tensor, "M C"]
) -> Iterator[tuple[Tensor, bool, Tensor]]:
    """(a, strict, points that have this margin)."""
    y = question.y[replica]
    if question.reading == "sign":
        for label in (1, -1):
            if (y == label).any():
                yield label * readout[:, 0], label < 0, y == label
        return
    for own in y.unique().long().tolist():
        for rival in range(readout.shape[1]):
            if rival != own:
                yield readout[:, own] - readout[:, rival], rival > own, y == own
