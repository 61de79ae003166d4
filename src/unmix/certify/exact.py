"""Exact radii of two-layer nets: a difference of convex functions, by branch and bound.

The oriented margin is m = sum_P a phi(z) - sum_Q a phi(z) + c with phi convex: only the neurons Q
that vote against the label make it non-convex, and only those are branched on (`search`). Each node
is bounded by tangents on P and chords on Q (`relaxation`). In l2 delta matters only through
W delta, and has the coordinates of the neurons' span; in linf it keeps those of the input. Of
several outputs, every rival is asked in turn, and one whose radius cannot be below the smallest so
far is left at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from unmix.certify.base import (
    BOUND,
    EXACT,
    TIMEOUT,
    UNSUPPORTED,
    Certificate,
    Certifier,
    Norm,
    Question,
    blank,
    dual,
    lengths,
)
from unmix.certify.curves import GAUSSIAN, Code
from unmix.certify.margins import Margin, margins
from unmix.certify.merging import merge
from unmix.certify.relaxation import CubeNet, Net
from unmix.certify.search import CUT, nearest_of_all

# Without any known success, nothing beyond this many times the farthest kink is asked.
FAR = 1000.0
# An upper end this short is a radius of 0: x lies on the decision surface.
NOTHING = 1e-12
# Numbers that open nodes may hold together, per array.
ROOM = 20_000_000


class Exact(Certifier):
    """Branch and bound until upper <= lower (1 + tol), or `nodes` relaxations a point and rival."""

    tol: float = Field(1e-4, gt=0, lt=1, description="relative gap at which a point is closed")
    nodes: int = Field(20_000, ge=1, description="relaxations, after which a point is a timeout")

    def bracket(self, question: Question, above: Float[Tensor, "R n"]) -> Certificate:
        lower = torch.full(question.shape, torch.inf, dtype=torch.float64)
        if question.reading == "difference":
            knows = "knows signs of one output and largest outputs; use softmax-exact"
            why = f"{self.kind} {knows}"
            return blank(question, torch.zeros_like(lower), UNSUPPORTED, self.norm, why)
        upper, witness = lower.clone(), torch.zeros_like(question.x)
        cut = torch.zeros(question.shape, dtype=torch.bool)
        for replica in range(len(question.x)):
            for margin in margins(question, replica):
                todo = margin.points & ~question.lost[replica]
                if not todo.any():
                    continue
                best = torch.minimum(upper[replica, todo], above[replica, todo])
                low, high, delta, stopped = self._against(question, margin, todo, best)
                lower[replica, todo] = torch.minimum(lower[replica, todo], low)
                better = high < upper[replica, todo]
                upper[replica, todo] = torch.minimum(upper[replica, todo], high)
                witness[replica, todo] = torch.where(better[:, None], delta, witness[replica, todo])
                cut[replica, todo] |= stopped
        lower = torch.minimum(lower, upper)
        closed = (lower >= upper * (1 - self.tol)) | ((lower == 0) & (upper < NOTHING))
        status = torch.where(closed, EXACT, torch.where(cut, TIMEOUT, BOUND))
        return Certificate(lower, upper, status, witness, norm=self.norm)

    def _against(
        self, question: Question, margin: Margin, todo: Tensor, best: Float[Tensor, " n"]
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Lower and upper ends, deltas and timeouts against one rival."""
        x = question.x[margin.replica, todo]
        net = Reduced.of(margin, Code.of(margin.activation), x, self.norm)
        if net.never:
            never = torch.full_like(best, torch.inf)
            return never, never, torch.zeros_like(x), torch.zeros_like(best, dtype=torch.bool)
        limit = torch.where(best.isfinite(), best, net.limits)
        room = min(self.nodes, ROOM // len(net.a))
        low, high, ended, _, delta = nearest_of_all(
            net.compiled, *net.points, limit.numpy(), self.tol, self.nodes, room
        )
        cut = torch.from_numpy(ended == CUT)
        return torch.from_numpy(low), torch.from_numpy(high), net.outward(delta), cut


class ExactL2(Exact):
    """Exact l2 radii."""

    kind: Literal["exact-l2"] = "exact-l2"


class ExactLinf(Exact):
    """Exact linf radii; the inputs have no box."""

    kind: Literal["exact-linf"] = "exact-linf"

    @property
    def norm(self) -> Norm:
        return "linf"


@dataclass(frozen=True)
class Reduced:
    """A margin as the compiled code takes it: own neurons first, and for l2 rows in the span's
    coordinates. `norms` and |x| (`far`) are of a dual pair of norms: |<w, x>| <= norms far."""

    w: Float[Tensor, "m d"]
    a: Float[Tensor, " m"]
    own: int
    z: Float[Tensor, "n m"]
    far: Float[Tensor, " n"]
    margin: Margin
    code: Code
    norm: Norm = "l2"

    @classmethod
    def of(cls, margin: Margin, code: Code, x: Float[Tensor, "n d"], norm: Norm = "l2") -> Reduced:
        w, b, a = merge(margin.w, margin.b, margin.a, code)
        order = torch.cat([(a > 0).nonzero(), (a < 0).nonzero()]).flatten()
        z = x @ w[order].T + b[order]
        own, far = int((a > 0).sum()), lengths(x, norm)
        return cls(w[order], a[order].abs(), own, z, far, margin, code, norm)

    @property
    def never(self) -> bool:
        """No neuron opposes, and what the others can add is of the right sign (for a point that is
        right as it is, nothing at all is enough)."""
        if len(self.a) == 0:
            return True
        c, strict = self.margin.c, self.margin.strict
        positive = self.code.flat or self.code.kind == GAUSSIAN or self.own == 0
        return self.own == len(self.a) and positive and (c > 0 or (c == 0 and strict))

    @cached_property
    def basis(self) -> Float[Tensor, "d r"]:
        return torch.linalg.qr(self.w.T).Q

    @cached_property
    def norms(self) -> Float[Tensor, " m"]:
        return dual(self.w, self.norm)

    @property
    def limits(self) -> Float[Tensor, " n"]:
        """How far to look where no success is known."""
        norms = self.norms
        kinks = (self.z.abs() / norms).amax(1) + abs(self.margin.c) / (self.a * norms).sum()
        return torch.where(kinks > 0, FAR * kinks, 1.0)

    @property
    def compiled(self) -> Net:
        """The net as the compiled code takes it."""
        cube = self.norm == "linf"
        rows = (self.w if cube else self.w @ self.basis).contiguous().numpy()
        how = self.norms.numpy(), cube, self.code.kind, self.code.p, self.code.q
        made = CubeNet if cube else Net
        return made(rows, self.a.numpy(), self.own, self.margin.c, self.margin.strict, *how)

    def outward(self, delta: np.ndarray) -> Float[Tensor, "n d"]:
        """Perturbations of the input, from the coordinates of the compiled code."""
        found = torch.from_numpy(delta)
        return found if self.norm == "linf" else found @ self.basis.T

    @property
    def points(self) -> tuple[np.ndarray, np.ndarray]:
        """Pre-activations, and |x|."""
        return self.z.numpy(), self.far.numpy()
