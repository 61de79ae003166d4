"""Which certificate a net gets where none is named, and plans that name one."""

from __future__ import annotations

from dataclasses import dataclass

from unmix.certify import closed, softmax_exact
from unmix.certify.base import Certificate, Certifier, Norm, Question, certificate
from unmix.certify.bounds import Root
from unmix.certify.closed import ClosedForm
from unmix.certify.exact import ExactL2, ExactLinf
from unmix.certify.merged import MergedL2
from unmix.certify.softmax import SoftmaxDual
from unmix.certify.softmax_exact import SoftmaxExact
from unmix.experiment import Run

# Neurons up to which exact linf radii take seconds, not minutes.
SMALL = 64
# Beyond this many neurons a net is merged first.
WIDE = 100


@dataclass(frozen=True)
class CertifyPlan:
    """A method (none: the best for the net) on the first `points` held-out points (none: all)."""

    method: Certifier | None = None
    points: int | None = None

    def certify(self, run: Run) -> Certificate:
        """Carry it out."""
        return certificate(run, self.method or best(Question.of(run, 1)), points=self.points)


def best(question: Question, norm: Norm = "l2") -> Certifier:
    """The exact radius where there is a method for it, else the best bound."""
    if norm == "linf":
        small = question.form.w.shape[1] <= SMALL
        return ExactLinf() if small else Root(threat="linf")
    if question.reading == "difference":
        return SoftmaxDual() if softmax_exact.unknown(question) else SoftmaxExact()
    if closed.exactly(question):
        return ClosedForm()
    return MergedL2() if question.form.w.shape[1] > WIDE else ExactL2()
