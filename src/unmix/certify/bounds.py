"""Lower bounds of the robust radius without a search: Lipschitz, interval and root bounds.

A bound that holds only within a ball of radius rho proves min(rho, bound(rho)); the best such
radius is self-consistent, rho = bound(rho), and is found by bisection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from unmix.certify.base import (
    BOUND,
    SLACK,
    UNSUPPORTED,
    Certificate,
    Certifier,
    Norm,
    Question,
    blank,
    dual,
)
from unmix.certify.curves import Code
from unmix.certify.exact import Reduced
from unmix.certify.margins import Margin, margins
from unmix.certify.search import roots

HALVINGS = 50


class PerMargin(Certifier):
    """A bound that is taken for each margin by itself; the smallest holds."""

    def bracket(self, question: Question, above: Float[Tensor, "R n"]) -> Certificate:
        lower = torch.full(question.shape, torch.inf, dtype=torch.float64)
        if question.reading == "difference":
            why = f"{self.kind} bounds signs of one output and largest outputs; use softmax"
            return blank(question, torch.zeros_like(lower), UNSUPPORTED, self.norm, why)
        for replica in range(len(question.x)):
            for margin in margins(question, replica):
                x = question.x[replica, margin.points]
                low = self.bound(margin, x).clamp_min(0.0) * (1 - SLACK)
                lower[replica, margin.points] = lower[replica, margin.points].minimum(low)
        return blank(question, lower, BOUND, self.norm)

    def bound(self, margin: Margin, x: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        raise NotImplementedError


class Lipschitz(PerMargin):
    """m(x) / sum_j |a_j| |w_j| sup phi': no perturbation can move the margin faster."""

    kind: Literal["lipschitz"] = "lipschitz"
    threat: Norm = "l2"

    @property
    def norm(self) -> Norm:
        return self.threat

    def bound(self, margin: Margin, x: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        m = margin.value(x @ margin.w.T + margin.b)
        steepest = (margin.a.abs() * dual(margin.w, self.threat)).sum() * margin.activation.steepest
        return torch.where(m > 0, m / steepest, 0.0) if steepest > 0 else _alone(m, margin)


class Interval(PerMargin):
    """The local bound: every pre-activation as bad as the ball allows (for one hidden layer, IBP).

    m(x + delta) >= sum_{a > 0} a phi(z - rho |w|) - sum_{a < 0} |a| phi(z + rho |w|) + c
    """

    kind: Literal["interval"] = "interval"
    threat: Norm = "l2"

    @property
    def norm(self) -> Norm:
        return self.threat

    def bound(self, margin: Margin, x: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        z, reach = x @ margin.w.T + margin.b, dual(margin.w, self.threat) * margin.a.sign()
        return largest(lambda rho: margin.value(z - rho.unsqueeze(-1) * reach) > 0, len(x))


class Root(PerMargin):
    """The relaxation at the root of the branch and bound, at its self-consistent radius.

    With `rounds` = 0 the tangents stay as they are at x: a CROWN-type bound.
    """

    kind: Literal["root"] = "root"
    threat: Norm = "l2"
    rounds: int = Field(30, ge=0, description="rounds of coordinate ascent a radius")

    @property
    def norm(self) -> Norm:
        return self.threat

    def bound(self, margin: Margin, x: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        net = Reduced.of(margin, Code.of(margin.activation), x, self.threat)
        if net.never:
            return torch.full((len(x),), torch.inf, dtype=x.dtype)
        return torch.from_numpy(roots(net.compiled, *net.points, net.limits.numpy(), self.rounds))


def largest(holds: Callable[[Tensor], Tensor], points: int) -> Float[Tensor, " points"]:
    """Largest rho at which a property holds that, once lost, does not come back; by bisection."""
    low = torch.zeros(points, dtype=torch.float64)
    high = torch.ones_like(low)
    for _ in range(HALVINGS):
        held = holds(high)
        low, high = torch.where(held, high, low), torch.where(held, 2 * high, high)
    endless = holds(high)
    for _ in range(2 * HALVINGS):
        middle = (low + high) / 2
        held = holds(middle)
        low, high = torch.where(held, middle, low), torch.where(held, high, middle)
    return torch.where(endless, torch.inf, low)


def _alone(m: Tensor, margin: Margin) -> Tensor:
    """A constant margin: right for ever, or wrong at once."""
    right = m >= 0 if margin.strict else m > 0
    return torch.where(right, torch.inf, 0.0).to(m)
