"""What every certificate shares: the question, the answer, and the checks between them.

For a point x with label y the robust radius is r(x) = inf { |delta| : sgn f(x + delta) != y }, with
sgn(0) = -1. A certificate brackets it: lower <= r(x) <= upper. The lower end is proved; the upper
end is a witness, replayed here on the untouched net in float64. A method writes one function,
`bracket`; the base class sets the radius of misclassified points to 0, throws away witnesses that
do not hold, and refuses an answer whose ends have crossed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from unmix.errors import CertificateError, Contradiction
from unmix.experiment import Run
from unmix.nets.base import sign
from unmix.nets.form import Form
from unmix.spec import Spec

Norm = Literal["l2", "linf"]
STATUSES = ("exact", "bound", "timeout", "unsupported")
EXACT, BOUND, TIMEOUT, UNSUPPORTED = range(len(STATUSES))
# Lower ends are rounded down by this share, more than float64 can lose in the sums behind them.
SLACK = 1e-9
# A witness that lies on the decision surface is pushed beyond it by the first share that works.
PUSHES = (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-5)


@dataclass(frozen=True)
class Question:
    """Two-layer nets in float64 with labelled points; `y` is +-1, or a class where C > 1 outputs
    have no signs (the label is then the first largest output)."""

    form: Form
    x: Float[Tensor, "R n d"]
    y: Tensor

    def __post_init__(self) -> None:
        tensors = (self.form.w, self.form.b, self.form.readout, self.x)
        if not all(t.dtype == torch.float64 for t in tensors):
            raise CertificateError("a certificate is computed in float64", "use Question.of(run)")
        if not all(torch.isfinite(t).all() for t in tensors[:3]):
            raise CertificateError("the net holds NaN or infinite weights", "see why it stopped")
        if not torch.isfinite(self.x).all():
            raise CertificateError("the points hold NaN or infinite values", "check the data")
        if self.x.ndim != 3 or self.x.shape[1] == 0 or self.x.shape[::2] != self.form.w.shape[::2]:
            came = f"x {tuple(self.x.shape)} for nets w {tuple(self.form.w.shape)}"
            raise CertificateError(f"expected points [R n d], n >= 1, got {came}")
        if self.y.shape != self.x.shape[:2]:
            raise CertificateError(f"expected labels [R n], got {tuple(self.y.shape)}")
        if not self._legal:
            raise CertificateError("labels must be -1 or +1, or the index of an output")

    @classmethod
    def of(cls, run: Run, points: int) -> Question:
        batch = run.fresh(points)
        return cls(run.model.double().form, batch.x.double(), batch.y.double())

    @property
    def shape(self) -> tuple[int, int]:
        return self.x.shape[0], self.x.shape[1]

    @property
    def reading(self) -> Literal["sign", "difference", "largest"]:
        """The sign of one output, the sign of LSE_+ - LSE_-, or the largest output."""
        if self.form.readout.shape[-1] == 1:
            return "sign"
        return "largest" if self.form.signs is None else "difference"

    @cached_property
    def z(self) -> Float[Tensor, "R n M"]:
        return self.form.preactivations(self.x)

    def wrong(self, x: Float[Tensor, "R n d"]) -> Bool[Tensor, "R n"]:
        """Is x, with the label of the question, misclassified?"""
        z = self.form.preactivations(x)
        if self.reading == "largest":
            return self.form.outputs(z).argmax(-1) != self.y
        return sign(self.form.decide(z)) != self.y

    @cached_property
    def lost(self) -> Bool[Tensor, "R n"]:
        """Points that are misclassified as they are."""
        return self.wrong(self.x)

    @property
    def _legal(self) -> bool:
        if self.reading == "largest":
            whole = self.y.long() == self.y
            return bool((whole & (self.y >= 0) & (self.y < self.form.readout.shape[-1])).all())
        return bool((self.y.abs() == 1).all())


@dataclass(frozen=True)
class Certificate:
    """lower <= r <= upper for every point; `witness` has length `upper` where that is finite."""

    lower: Float[Tensor, "R n"]
    upper: Float[Tensor, "R n"]
    status: Int[Tensor, "R n"]
    witness: Float[Tensor, "R n d"]
    unit: float = 1.0
    norm: Norm = "l2"
    method: str = ""
    why: str = ""

    def __post_init__(self) -> None:
        if not (self.lower <= self.upper).all():
            worst = int((self.lower - self.upper).nan_to_num(nan=torch.inf).argmax())
            ends = self.lower.flatten()[worst].item(), self.upper.flatten()[worst].item()
            message = f"{self.method}: lower {ends[0]} above upper {ends[1]} at point {worst}"
            raise CertificateError(message, "this is a bug: please report the net and the point")

    @property
    def closed(self) -> Bool[Tensor, "R n"]:
        """Points whose bracket is closed, to the tolerance of the method."""
        return self.status == EXACT

    @property
    def counts(self) -> dict[str, int]:
        """Points of each status."""
        return {name: int((self.status == code).sum()) for code, name in enumerate(STATUSES)}

    def certified_accuracy(self, radii: Sequence[float]) -> Float[Tensor, "R E"]:
        """Share of points that no perturbation up to each radius can change."""
        return self._above(self.lower, radii)

    def attacked_accuracy(self, radii: Sequence[float]) -> Float[Tensor, "R E"]:
        """Share of points whose witness is longer than each radius."""
        return self._above(self.upper, radii)

    def mean_radius(self) -> Float[Tensor, " R"]:
        """Mean certified radius over the points, in units of |mu|."""
        return self.lower.mean(1) / self.unit

    def __str__(self) -> str:
        parts = [f"{n} {name}" for name, n in self.counts.items() if n]
        low, high = (end.mean().item() / self.unit for end in (self.lower, self.upper))
        text = f"{self.method} ({self.norm}): {', '.join(parts)}; mean radius in [{low:.5g}, "
        return f"{text}{high:.5g}] |mu|" + (f"; {self.why}" if self.why else "")

    def _above(self, radius: Tensor, radii: Sequence[float]) -> Float[Tensor, "R E"]:
        if not len(radii) or not all(r >= 0 for r in radii):
            raise CertificateError("expected at least one radius, none negative or NaN")
        grid = torch.tensor(radii, dtype=radius.dtype)
        # A misclassified point is not robust at radius 0.
        held = (radius.unsqueeze(1) > grid[:, None]) & (radius.unsqueeze(1) > 0)
        return held.double().mean(-1)


class Certifier(Spec, ABC):
    """One way to bracket robust radii."""

    kind: str

    @property
    def norm(self) -> Norm:
        return "l2"

    @abstractmethod
    def bracket(self, question: Question, above: Float[Tensor, "R n"]) -> Certificate:
        """Ends, statuses and witnesses; `above` holds known upper bounds (infinity: none)."""

    def answer(self, question: Question, above: Tensor | None = None) -> Certificate:
        """The bracket of every point, checked against the net itself."""
        if above is None:
            above = torch.full(question.shape, torch.inf, dtype=torch.float64)
        if above.shape != question.shape or above.isnan().any() or (above < 0).any():
            raise CertificateError("known upper bounds must be [R n], not negative and not NaN")
        found = self.bracket(question, above)
        found = _clean(question, _replayed(question, replace(found, method=self.kind)))
        sandwich(found.lower, torch.where(question.lost, torch.inf, above))
        return found


def certificate(
    run: Run,
    method: Certifier | None = None,
    *,
    points: int | None = None,
    above: Float[Tensor, "R n"] | None = None,
    norm: Norm = "l2",
) -> Certificate:
    """Certify the first held-out points of each seed, by default as exactly as the net allows.

    A method has its norm; without one, `norm` says in which the radii are asked.
    """
    if points is not None and points < 1:
        raise CertificateError(f"expected at least one point to certify, got points={points}")
    question = Question.of(run, points or run.experiment.samples.test)
    if method is None:
        from unmix.certify.choice import best

        method = best(question, norm)
    return replace(method.answer(question, above), unit=run.data.unit)


def lengths(delta: Float[Tensor, "*s d"], norm: Norm) -> Float[Tensor, "*s"]:
    return delta.norm(dim=-1) if norm == "l2" else delta.abs().amax(-1)


def dual(w: Float[Tensor, "*s d"], norm: Norm) -> Float[Tensor, "*s"]:
    """max <w, delta> over |delta| <= 1: the l2 norm for l2, the l1 norm for linf."""
    return w.norm(dim=-1) if norm == "l2" else w.abs().sum(-1)


def blank(question: Question, lower: Tensor, status: int, norm: Norm, why: str = "") -> Certificate:
    """A certificate without witnesses."""
    upper = torch.full_like(lower, torch.inf)
    codes = torch.full(lower.shape, status)
    return Certificate(lower, upper, codes, torch.zeros_like(question.x), norm=norm, why=why)


def sandwich(lower: Float[Tensor, "R n"], smallest: Float[Tensor, "R n"], who: str = "") -> None:
    """The first law: no successful attack lies below a certificate."""
    points = min(lower.shape[1], smallest.shape[1])
    lower, smallest = lower[:, :points], smallest[:, :points].to(lower.dtype)
    broken = lower > smallest * (1 + SLACK)
    if broken.any():
        worst = int((lower - smallest)[broken].argmax())
        pair = lower[broken][worst].item(), smallest[broken][worst].item()
        raise Contradiction(
            f"{who or 'an attack'} found {pair[1]:.9g} below a certified radius of {pair[0]:.9g} "
            f"({int(broken.sum())} points)",
            "one of the two is wrong: please report the run",
        )


def _replayed(question: Question, found: Certificate) -> Certificate:
    """Upper ends are the lengths of witnesses that hold on the net; the others are infinite."""
    upper, witness = torch.full_like(found.upper, torch.inf), torch.zeros_like(found.witness)
    for push in PUSHES:
        moved = found.witness * (1 + push)
        good = question.wrong(question.x + moved) & found.upper.isfinite() & upper.isinf()
        upper = torch.where(good, lengths(moved, found.norm), upper)
        witness = torch.where(good.unsqueeze(-1), moved, witness)
    known = torch.where(upper.isfinite() | found.upper.isinf(), found.status, BOUND)
    status = torch.where(found.status == EXACT, known, found.status)
    # Both ends come from one optimum: their last bits may lie either way.
    same = (upper < found.lower) & (upper >= found.lower * (1 - SLACK))
    lower = torch.where(same, upper, found.lower)
    return replace(found, lower=lower, upper=upper, witness=witness, status=status)


def _clean(question: Question, found: Certificate) -> Certificate:
    """Radius 0, exactly, for what is misclassified as it is."""
    lost = question.lost
    return replace(
        found,
        lower=torch.where(lost, 0.0, found.lower),
        upper=torch.where(lost, 0.0, found.upper),
        status=torch.where(lost, EXACT, found.status),
        witness=torch.where(lost.unsqueeze(-1), 0.0, found.witness),
    )
