"""Closed forms: nets of two neurons exactly, powers p >= 2 by the norm that they are.

Two ReLUs without a constant, m = a1 relu(z1) - a2 relu(z2), e.g. f_FA (feature averaging, Def 4.1)
and F (pReLU, section 3). For y = +1 the point is lost where z1 <= 0 or a1 z1 <= a2 z2, a union of
half-spaces, so r is the smaller of two distances: min(A/sqrt(K_own), (A - B)/sqrt(K)) for F. For
y = -1 it is lost where z2 > 0 and a1 z1 < a2 z2, and r is the distance to that wedge.

Powers without a constant: m > 0 iff |relu S_P z|_p > |relu S_Q z|_p with rows s_j = a_j^(1/p) w_j.
Both norms are 1-Lipschitz in l_2 for p >= 2; |S_P delta| + |S_Q delta| <= sqrt 2 |S| |delta|. So

    r >= (|relu own|_p - |relu other|_p) / (sqrt 2 |S|),

and |S| = 1 for F^(p), whose rows are orthonormal.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from unmix.certify.base import (
    BOUND,
    EXACT,
    SLACK,
    UNSUPPORTED,
    Certificate,
    Certifier,
    Question,
    blank,
)
from unmix.certify.curves import LINES, POWER, Code
from unmix.certify.margins import Margin, margins
from unmix.certify.merging import merge
from unmix.errors import CertificateError

# Shares of the terms' size by which float64 may be off.
ROUND = 1e-13


class ClosedForm(Certifier):
    """Exact for two ReLUs a margin, a lower bound for powers of at least 2."""

    kind: Literal["closed-form"] = "closed-form"

    def bracket(self, question: Question, above: Float[Tensor, "R n"]) -> Certificate:
        lower = torch.full(question.shape, torch.inf, dtype=torch.float64)
        upper, witness = lower.clone(), torch.zeros_like(question.x)
        status = torch.full(question.shape, EXACT)
        if question.reading == "difference":
            why = "closed-form knows signs of one output and largest outputs; use softmax-exact"
            return blank(question, torch.zeros_like(lower), UNSUPPORTED, "l2", why)
        for replica in range(len(question.x)):
            for margin in margins(question, replica):
                here = margin.points & ~question.lost[replica]
                if not here.any():
                    continue
                small = _merged(margin)
                x = question.x[replica, here]
                if two_relus(small):
                    low, step = _pair(small, x)
                    high = step.norm(dim=1)
                elif powers(small):
                    low, step = _norms(small, x), torch.zeros_like(x)
                    high, status[replica, here] = torch.full_like(low, torch.inf), BOUND
                else:
                    why = "closed-form needs two ReLUs or powers of at least 2, without a constant"
                    return blank(question, torch.zeros_like(lower), UNSUPPORTED, "l2", why)
                lower[replica, here] = lower[replica, here].minimum(low * (1 - SLACK))
                nearer = high < upper[replica, here]
                witness[replica, here] = torch.where(nearer[:, None], step, witness[replica, here])
                upper[replica, here] = upper[replica, here].minimum(high)
        status = torch.where(lower.isfinite(), status, BOUND)
        return Certificate(lower.minimum(upper), upper, status, witness)


def exactly(question: Question) -> bool:
    """Is every margin one of two ReLUs?"""
    if question.reading == "difference":
        return False
    try:
        return all(
            two_relus(_merged(m)) for r in range(len(question.x)) for m in margins(question, r)
        )
    except CertificateError:
        return False


def two_relus(margin: Margin) -> bool:
    code = Code.of(margin.activation)
    few = int((margin.a > 0).sum()) <= 1 and int((margin.a < 0).sum()) <= 1
    return few and code.kind == LINES and code.p == 0 and margin.c == 0


def powers(margin: Margin) -> bool:
    code = Code.of(margin.activation)
    return code.kind == POWER and code.p >= 2 and margin.c == 0


def _merged(margin: Margin) -> Margin:
    w, b, a = merge(margin.w, margin.b, margin.a, Code.of(margin.activation))
    return Margin(
        w, b, a, margin.c, margin.strict, margin.activation, margin.replica, margin.points
    )


def _norms(margin: Margin, x: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
    p = Code.of(margin.activation).p
    root = margin.a.abs() ** (1 / p)
    s = root * (x @ margin.w.T + margin.b).relu()
    own, other = (
        torch.linalg.vector_norm(s[:, side], p, -1) for side in (margin.a > 0, margin.a < 0)
    )
    size = torch.linalg.matrix_norm(root[:, None] * margin.w, 2)
    grain = ROUND * (root * (x.norm(dim=1)[:, None] * margin.w.norm(dim=1) + margin.b.abs())).sum(1)
    return (own - other - grain).clamp_min(0.0) / (math.sqrt(2) * size * (1 + ROUND))


def _pair(margin: Margin, x: Float[Tensor, "n d"]) -> tuple[Tensor, Tensor]:
    """Radii and steps: over to either plane, or into the wedge between both."""
    own, other = _neuron(margin, x, 1.0), _neuron(margin, x, -1.0)
    turn = own[0] - other[0], own[1] - other[1], own[2] + other[2]
    one, both = _onto(own), _onto(turn)
    if not margin.strict:
        least = both[0] < one[0]
        return torch.minimum(one[0], both[0]), torch.where(least[:, None], both[1], one[1])
    # Lost where the opponent is on and the turn is over; {other > 0} is {-other < 0}.
    on = _onto((-other[0], -other[1], other[2]))
    met = other[1] + both[1] @ other[0] >= 0
    enough = turn[1] + on[1] @ turn[0] <= 0
    corner = _corner(other, turn)
    low = torch.where(met, both[0], torch.where(enough, on[0], corner[0]))
    step = torch.where(enough[:, None], on[1], corner[1])
    return low, torch.where(met[:, None], both[1], step)


def _neuron(margin: Margin, x: Tensor, side: float) -> tuple[Tensor, Tensor, Tensor]:
    """a w, a z and the size of its sums for the neuron of this side; zeros where there is none."""
    who = margin.a * side > 0
    a = margin.a[who].abs()
    w, z = (a[:, None] * margin.w[who]).sum(0), ((x @ margin.w[who].T + margin.b[who]) * a).sum(1)
    return w, z, z.abs() + 2 * x.norm(dim=1) * w.norm()


def _onto(plane: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Distance, rounded down, to where <w, x> has fallen to 0, and the step there."""
    w, z, size = plane
    length = w.norm()
    if length == 0:
        never = torch.where(z > 0, torch.inf, 0.0)
        return never, torch.zeros(len(z), len(w), dtype=w.dtype)
    low = (z - ROUND * size).clamp_min(0.0) / length
    return low, -z.clamp_min(0.0)[:, None] * w / length**2


def _corner(other: tuple[Tensor, ...], turn: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    """The step to where both planes meet; as a distance, that of the farther plane holds for sure
    where they are nearly parallel."""
    rows = torch.stack([other[0], turn[0]])
    step = -torch.stack([other[1], turn[1]], 1) @ torch.linalg.pinv(rows).T
    size = (other[2] + turn[2])[:, None] * ROUND * torch.linalg.pinv(rows).norm()
    return (step.norm(dim=1) - size[:, 0]).clamp_min(0.0), step
