"""Wide nets, merged and pruned: radii of a small net that lies below them within the ball.

Neurons of one sign whose directions are near are taken for their mean, z~ = sum_r a_r z_r / A. As
phi is convex, own neurons then only lose, sum_r a_r phi(z_r) >= A phi(z~), and opponents are worth
at most as much as two means that lie D apart on either side (the widest spread of the same mean):

    sum_r a_r phi(z_r) <= A/2 (phi(z~ + D) + phi(z~ - D)),    D = max_r |z_r - z~| + rho |w_r - w~|

within the ball of a known success rho. Where the two differ from A phi(z~) by little, that is taken
off the margin instead. Own neurons that hardly speak are dropped (phi >= 0); opponents that hardly
speak count with a phi(z_r + rho |w_r|) at once, taken off as well. So the search's lower end holds
for the net itself; the upper end is a witness of the small net, followed to where the net itself is
lost, and replayed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor

from unmix.certify.base import (
    BOUND,
    EXACT,
    TIMEOUT,
    UNSUPPORTED,
    Certificate,
    Certifier,
    Question,
    blank,
)
from unmix.certify.bounds import Interval
from unmix.certify.curves import LINES, POWER, SMOOTHED, Code
from unmix.certify.exact import Reduced
from unmix.certify.margins import Margin, margins
from unmix.certify.merging import extended, reached
from unmix.certify.search import CUT, nearest_of_all

# Distances of rows within which neurons are merged: narrower ones are tried while a point is open,
# and while the small net has at most MOST neurons.
ANGLES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 1e-3)
MOST = 100
# For a first witness only: nothing is proved of this net.
ROUGH_ANGLE, ROUGH_SHARE, ROUGH_NODES = 0.2, 1e-3, 1000


class MergedL2(Certifier):
    """Branch and bound of the merged net; a point is closed where upper <= lower (1 + tol)."""

    kind: Literal["merged-l2"] = "merged-l2"
    tol: float = Field(1e-2, gt=0, lt=1, description="relative gap at which a point is closed")
    budget: float = Field(1e-3, gt=0, lt=1, description="share of the margin that pruning may cost")
    nodes: int = Field(20_000, ge=1, description="relaxations, after which a point is a timeout")

    def bracket(self, question: Question, above: Float[Tensor, "R n"]) -> Certificate:
        if question.reading == "difference":
            why = "merged-l2 knows signs of one output and largest outputs; use softmax-exact"
            return blank(question, torch.zeros_like(above), UNSUPPORTED, "l2", why)
        lower = Interval().bracket(question, above).lower
        witness = extended(question, self._rough(question, above))
        upper = reached(witness)
        # Any ball proves as much as its own radius.
        ball = torch.minimum(above, torch.where(upper.isfinite(), upper, 10 * lower))
        cut = torch.zeros(question.shape, dtype=torch.bool)
        for angle in ANGLES:
            todo = ~question.lost & (lower < ball * (1 - self.tol)) & ball.isfinite()
            low, cut, merges = self._lower(question, angle, ball, todo)
            lower = torch.where(todo, lower.maximum(low), lower)
            if not (todo & merges).any():
                break
        lower = lower.minimum(upper)
        closed = lower >= upper * (1 - self.tol)
        status = torch.where(closed, EXACT, torch.where(cut, TIMEOUT, BOUND))
        return Certificate(lower, upper, status, witness)

    def _rough(self, question: Question, above: Float[Tensor, "R n"]) -> Float[Tensor, "R n d"]:
        """The nearest lost points of the loud neurons' means."""
        best, witness = torch.full_like(above, torch.inf), torch.zeros_like(question.x)
        for r in range(len(question.x)):
            for margin in margins(question, r):
                unit = rescaled(margin)
                loud = unit.a.abs() >= ROUGH_SHARE * unit.a.abs().max()
                small = means(only(unit, loud), ROUGH_ANGLE)[0]
                for point in (margin.points & ~question.lost[r]).nonzero().flatten().tolist():
                    x = question.x[r, point][None]
                    _, high, delta, _ = self._one(small, x, float(above[r, point]), ROUGH_NODES)
                    if high < best[r, point]:
                        best[r, point], witness[r, point] = high, delta
        return witness

    def _lower(
        self, question: Question, angle: float, ball: Tensor, todo: Bool[Tensor, "R n"]
    ) -> tuple[Float[Tensor, "R n"], Bool[Tensor, "R n"], Bool[Tensor, "R n"]]:
        """Lower ends and timeouts, and whose small net could be finer."""
        lower, cut = torch.full_like(ball, torch.inf), torch.zeros_like(todo)
        finer = torch.ones_like(todo)
        for r in range(len(question.x)):
            for margin in margins(question, r):
                here = margin.points & todo[r]
                if not here.any():
                    continue
                x, rho = question.x[r, here], ball[r, here]
                crowd = Crowd.of(rescaled(margin), x, rho, self.budget, angle)
                for i, point in enumerate(here.nonzero().flatten().tolist()):
                    small = crowd.small(x[i], float(rho[i]), i)
                    low, _, _, stopped = self._one(small, x[i : i + 1], float(rho[i]), self.nodes)
                    lower[r, point] = lower[r, point].clamp_max(low)
                    cut[r, point] |= stopped
                finer[r, here] &= crowd.merges and len(crowd.means.a) < MOST // 2
        return lower, cut, finer

    def _one(
        self, margin: Margin, x: Float[Tensor, "1 d"], limit: float, nodes: int
    ) -> tuple[float, float, Tensor, bool]:
        """Ends, delta and timeout of one point."""
        net = Reduced.of(margin, Code.of(margin.activation), x)
        if net.never:
            return float("inf"), float("inf"), torch.zeros_like(x[0]), False
        limits = net.limits.clamp_max(limit)
        low, high, ended, _, delta = nearest_of_all(
            net.compiled, *net.points, limits.numpy(), self.tol / 4, nodes, nodes
        )
        return float(low[0]), float(high[0]), net.outward(delta)[0], bool(ended[0] == CUT)


@dataclass(frozen=True)
class Crowd:
    """A margin without its quiet neurons, their groups and means; `error` is what the pruned
    opponents may add, and `budget` what merging may cost, a point."""

    margin: Margin
    means: Margin
    group: Int[Tensor, " m"]
    error: Float[Tensor, " n"]
    budget: Float[Tensor, " n"]

    @classmethod
    def of(
        cls,
        margin: Margin,
        x: Float[Tensor, "n d"],
        ball: Float[Tensor, " n"],
        budget: float,
        angle: float,
    ) -> Crowd:
        share = budget * margin.value(x @ margin.w.T + margin.b)
        loud, error = pruned(margin, x, ball, share)
        kept = only(margin, loud)
        return cls(kept, *means(kept, angle), error * (1 + 1e-9), share)

    @property
    def merges(self) -> bool:
        return len(self.means.a) < len(self.margin.a)

    def small(self, x: Float[Tensor, " d"], rho: float, point: int) -> Margin:
        """Own means, and opponents' means: twice, D to either side, where that is worth it."""
        m, near, group = self.margin, self.means, self.group
        z = near.w @ x + near.b
        off = (m.w @ x + m.b - z[group]).abs() + rho * (m.w - near.w[group]).norm(dim=1)
        members = group[None] == torch.arange(len(near.a))[:, None]
        wide = torch.where(members, off * (1 + 1e-9), 0.0).amax(1)
        wide = torch.where((members.sum(1) == 1) | (near.a > 0), 0.0, wide)
        lost = -near.a * gap(Code.of(m.activation), z, rho * near.w.norm(dim=1), wide)
        order = lost.argsort()
        two = torch.zeros_like(wide, dtype=torch.bool)
        two[order] = lost[order].cumsum(0) > self.budget[point]
        wide, error = wide * two, self.error[point] + lost[~two].sum() * (1 + 1e-9)
        b = torch.cat([near.b + wide, (near.b - wide)[two]])
        a = torch.cat([torch.where(two, near.a / 2, near.a), near.a[two] / 2])
        c = near.c - float(error)
        return replace(near, w=torch.cat([near.w, near.w[two]]), b=b, a=a, c=c)


def gap(
    code: Code, z: Float[Tensor, " m"], reach: Float[Tensor, " m"], wide: Float[Tensor, " m"]
) -> Float[Tensor, " m"]:
    """sup of (phi(s + D) + phi(s - D))/2 - phi(s) over |s - z| <= reach, or more."""
    if code.kind == LINES:
        kinked = (z.abs() - reach < wide).double()
        return kinked * wide * (1 - code.p) / 2
    if code.kind == POWER:
        # phi'' grows for p >= 2; below, it has no bound, but phi' changes by little.
        top = (z + reach + wide).clamp_min(0.0)
        curved = code.p * (code.p - 1) * top ** max(code.p - 2, 0.0) * wide**2 / 2
        return curved if code.p >= 2 else code.p * top ** (code.p - 1) * wide
    steepest = (code.p - 1) / code.q if code.kind == SMOOTHED else 0.4 / code.p
    return wide**2 * steepest / 2 if code.kind != SMOOTHED or code.p >= 2 else wide


def rescaled(margin: Margin) -> Margin:
    """Rows (w, b) of length 1 where phi is homogeneous."""
    code = Code.of(margin.activation)
    if code.kind not in (LINES, POWER):
        return margin
    length = torch.cat([margin.w, margin.b[:, None]], 1).norm(dim=1)
    a = margin.a * length ** (code.p if code.kind == POWER else 1.0)
    return replace(margin, w=margin.w / length[:, None], b=margin.b / length, a=a)


def pruned(
    margin: Margin, x: Float[Tensor, "n d"], ball: Float[Tensor, " n"], budget: Float[Tensor, " n"]
) -> tuple[Bool[Tensor, " M"], Float[Tensor, " n"]]:
    """Who stays, as the quietest of each side go while their sum is within half of `budget`; and
    what the opponents that went can add."""
    z = x @ margin.w.T + margin.b
    most = margin.activation.value(z + ball[:, None] * margin.w.norm(dim=1)) * margin.a.abs()
    loud, error = torch.ones(len(margin.a), dtype=torch.bool), torch.zeros_like(ball)
    code = Code.of(margin.activation)
    if code.kind == LINES and code.p > 0:
        # A leaky neuron may take away as much as it gives.
        return loud, error
    for against in (False, True):
        here = ((margin.a < 0) == against).nonzero().flatten()
        share = (most[:, here] / budget[:, None]).amax(0)
        order = share.argsort()
        gone = here[order[share[order].cumsum(0) <= 0.5]]
        loud[gone] = False
        if against:
            error = most[:, gone].sum(1)
    return loud, error


def only(margin: Margin, who: Bool[Tensor, " M"]) -> Margin:
    return replace(margin, w=margin.w[who], b=margin.b[who], a=margin.a[who])


def means(margin: Margin, angle: float) -> tuple[Margin, Int[Tensor, " m"]]:
    """Neurons of one sign within `angle` of a louder one, as one; and who went into which."""
    rows = torch.cat([margin.w, margin.b[:, None]], 1)
    near = torch.cdist(rows, rows) < angle * rows.norm(dim=1, keepdim=True)
    near &= margin.a.sign()[:, None] == margin.a.sign()
    group, heads = torch.full((len(margin.a),), -1), 0
    for j in margin.a.abs().argsort(descending=True).tolist():
        if group[j] < 0:
            group[near[j] & (group < 0)] = heads
            group[j] = heads
            heads += 1
    total = torch.zeros(heads, dtype=rows.dtype).index_add(0, group, margin.a)
    sums = torch.zeros(heads, rows.shape[1], dtype=rows.dtype)
    centre = sums.index_add(0, group, margin.a[:, None] * rows) / total[:, None]
    return replace(margin, w=centre[:, :-1], b=centre[:, -1], a=total), group
