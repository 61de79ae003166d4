"""Coordinates of a pReLU neuron in which gradient flow keeps its invariant exactly.

Along the flow delta = v^2 - |w|^2 does not change, so a neuron is its direction u = w/|w| and one
hyperbolic angle a (pReLU, appendix D, unfolded):

    delta < 0:   |w| = sqrt(-delta) cosh a,   v = sqrt(-delta) sinh a,     a' = G
    delta > 0:   |w| = sqrt(delta) sinh a,    v = s sqrt(delta) cosh a,    a' = s G
    delta = 0:   |w| = e^a,                   v = s e^a,                   a' = s G

with v' = |w| G and u' = (v/|w|) (H - <H, u> u). Whatever the step, delta stays what it was, a start
of 1e-9 is no smaller than one of 1, and the growth of a quiet neuron is linear in a.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from unmix.nets.prelu import unit

# log |w| of a neuron that is not there: its exponential is 0.
NOTHING = -750.0


@dataclass(frozen=True)
class Angles:
    """The invariants of h neurons, in float64: `delta`, and `side` = s (1 for delta < 0)."""

    delta: Float[Tensor, " h"]
    side: Float[Tensor, " h"]

    @classmethod
    def of(
        cls, w: Float[Tensor, "h d"], v: Float[Tensor, " h"]
    ) -> tuple[Angles, Float[Tensor, "h d"], Float[Tensor, " h"]]:
        """The invariants, u (in the type of w) and a (in float64) of given weights."""
        exact, v64 = w.double(), v.double()
        length = exact.norm(dim=-1)
        delta = (v64.abs() - length) * (v64.abs() + length)
        # A start that was balanced before it was rounded to the run's type is balanced.
        rounding = 8 * torch.finfo(w.dtype).eps * (v64.square() + length.square())
        delta = torch.where(delta.abs() <= rounding, 0.0, delta)
        root = delta.abs().sqrt()
        inside, outside = torch.asinh(v64 / root), torch.asinh(length / root)
        a = torch.where(delta < 0, inside, outside)
        a = torch.where(delta == 0, length.log().clamp_min(NOTHING), a)
        side = torch.where(delta < 0, 1.0, v64.sign())
        return cls(delta, side), unit(exact).to(w.dtype), a

    def take(self, kept: Int[Tensor, " m"]) -> Angles:
        """The invariants of some neurons."""
        return Angles(self.delta[kept], self.side[kept])

    def length(self, a: Float[Tensor, " h"]) -> Float[Tensor, " h"]:
        """|w|."""
        return self._by_case(a.cosh(), a.sinh(), a.exp())

    def v(self, a: Float[Tensor, " h"]) -> Float[Tensor, " h"]:
        return self.side * self._by_case(a.sinh(), a.cosh(), a.exp())

    def q(self, a: Float[Tensor, " h"]) -> Float[Tensor, " h"]:
        """The contribution v |w|."""
        half = self.delta.abs() / 2 * (2 * a).sinh()
        return self.side * torch.where(self.delta == 0, (2 * a).exp(), half)

    def ratio(self, a: Float[Tensor, " h"]) -> Float[Tensor, " h"]:
        """v/|w|; 0 for w = 0, which does not move."""
        t = a.tanh()
        outside = torch.where(t != 0, 1 / t, 0.0)
        return self.side * torch.where(
            self.delta < 0, t, torch.where(self.delta > 0, outside, torch.ones_like(t))
        )

    def crossed(self, a: Float[Tensor, " h"]) -> Tensor:
        """Which neurons went through w = 0: there u turns into -u and a into -a."""
        return (self.delta > 0) & (a < 0)

    def _by_case(self, below: Tensor, above: Tensor, balanced: Tensor) -> Tensor:
        scaled = self.delta.abs().sqrt() * torch.where(self.delta < 0, below, above)
        return torch.where(self.delta == 0, balanced, scaled)
