"""Exact l2 radii of softmax-difference nets: LSE_{J+} - LSE_{J-} has the sign of a sum.

    f > 0  iff  sum_{J+} e^(o_i) > sum_{J-} e^(o_j),      o_j = sum_r A_rj relu(z_r),  A >= 0

Where every output has one neuron this is the margin of a two-layer net with the convex activation
e^relu(s) - 1, and the branch and bound of `search` closes it: chords of exp on intervals of the
other side's outputs. Several neurons of an output are first taken for their sum, Z_j = sum_r A_rj
z_r: own outputs lie above relu(Z_i) by convexity, those of the other side below relu(Z_j) + err_j,

    err_j = 1/2 sum_r A_rj (|z_r - Z_j/A_j| + rho |w_r - W_j/A_j|),      A_j = sum_r A_rj,

within the ball of a known success rho (Jensen's inequality is off by most where Z_j = 0).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
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
from unmix.certify.curves import EXPONENTIAL
from unmix.certify.merging import extended, reached
from unmix.certify.relaxation import Net
from unmix.certify.search import CUT, nearest_of_all
from unmix.certify.softmax import PairwiseLipschitz
from unmix.nets.activations import Power, Relu

# Exponents up to here leave float64 digits to bound with; without a known success, outputs are
# followed that far.
GROWTH = 50.0


class SoftmaxExact(Certifier):
    """Branch and bound until upper <= lower (1 + tol), or `nodes` relaxations a point."""

    kind: Literal["softmax-exact"] = "softmax-exact"
    tol: float = Field(1e-3, gt=0, lt=1, description="relative gap at which a point is closed")
    nodes: int = Field(20_000, ge=1, description="relaxations, after which a point is a timeout")

    def bracket(self, question: Question, above: Float[Tensor, "R n"]) -> Certificate:
        if why := unknown(question):
            return blank(question, torch.zeros_like(above), UNSUPPORTED, "l2", why)
        sides = list(every_side(question))
        lower, witness, cut = self._searched(question, sides, above, None)
        if not all(side.single for side in sides):
            witness = extended(question, witness)
            ball = torch.minimum(above, reached(witness))
            lower, _, cut = self._searched(question, sides, above, ball)
        upper = reached(witness)
        lower = lower.maximum(PairwiseLipschitz().bracket(question, above).lower).minimum(upper)
        closed = lower >= upper * (1 - self.tol)
        status = torch.where(closed, EXACT, torch.where(cut, TIMEOUT, BOUND))
        return Certificate(lower, upper, status, witness)

    def _searched(
        self,
        question: Question,
        sides: list[Side],
        above: Float[Tensor, "R n"],
        ball: Float[Tensor, "R n"] | None,
    ) -> tuple[Float[Tensor, "R n"], Float[Tensor, "R n d"], Bool[Tensor, "R n"]]:
        """Lower ends, witnesses and timeouts of the nets of sums, with their errors within `ball`
        (none: without). Where no success is known the errors have no bound; the lower end is 0."""
        lower, witness = torch.zeros_like(above), torch.zeros_like(question.x)
        cut = torch.zeros(question.shape, dtype=torch.bool)
        for side in sides:
            r, here = side.replica, side.points
            limits = torch.minimum(above[r, here], side.limits)
            for i, point in enumerate(here.nonzero().flatten().tolist()):
                if ball is not None and not ball[r, point].isfinite():
                    continue
                net = side.net(i, None if ball is None else float(ball[r, point]))
                limit = limits[i : i + 1]
                if ball is not None:
                    limit = limit.minimum(ball[r, point])
                low, _, ended, _, delta = nearest_of_all(
                    net, *side.asked(i), limit.numpy(), self.tol, self.nodes, self.nodes
                )
                lower[r, point], cut[r, point] = float(low[0]), bool(ended[0] == CUT)
                witness[r, point] = torch.from_numpy(delta[0]) @ side.basis.T
        return lower, witness, cut


@dataclass(frozen=True)
class Side:
    """The points of one label in one replica, and one neuron an output: own outputs first."""

    replica: int
    points: Bool[Tensor, " N"]
    strict: bool
    own: int
    w: Float[Tensor, "C d"]
    z: Float[Tensor, "n C"]
    far: Float[Tensor, " n"]
    size: Float[Tensor, "n C"]
    growth: Float[Tensor, " C"]
    single: bool

    @classmethod
    def of(cls, question: Question, replica: int, label: int, points: Bool[Tensor, " N"]) -> Side:
        form, x = question.form, question.x[replica, points]
        assert form.signs is not None
        order = torch.cat([(form.signs == s).nonzero().flatten() for s in (label, -label)])
        w, a = form.w[replica], form.readout[replica][:, order]
        total = a.sum(0)
        mean = a / torch.where(total > 0, total, 1.0)
        z = question.z[replica, points]
        # |z_r - Z/A| and |w_r - W/A|, neurons of an output that are alone have neither.
        single = (a > 0).sum(0) <= 1
        off = (z[:, :, None] - (z @ mean)[:, None]).abs()
        apart = torch.cdist(w, mean.T @ w, compute_mode="donot_use_mm_for_euclid_dist")
        size = torch.where(single, 0.0, (off * a).sum(1) / 2)
        growth = torch.where(single, 0.0, (apart * a).sum(0) / 2)
        own = int((form.signs == label).sum())
        w, z, far = a.T @ w, z @ a, x.norm(dim=1)
        return cls(replica, points, label < 0, own, w, z, far, size, growth, bool(single.all()))

    @cached_property
    def hears(self) -> Bool[Tensor, " C"]:
        return (self.w != 0).any(1)

    @cached_property
    def basis(self) -> Float[Tensor, "d r"]:
        return torch.linalg.qr(self.w[self.hears].T).Q

    @property
    def limits(self) -> Float[Tensor, " n"]:
        """How far to look where no success is known: e^GROWTH leaves float64 its digits."""
        return (GROWTH - self.z.amax(1).clamp_min(0.0)) / self.w.norm(dim=1).max()

    def net(self, point: int, ball: float | None) -> Net:
        """sum_{J+} e^relu(Z) - sum_{J-} e^(err + relu(Z)), as compiled code takes it.

        e^relu(Z) = 1 + (e^relu(Z) - 1); outputs that do not depend on x are constants as well.
        """
        weight = torch.ones_like(self.growth)
        if ball is not None:
            weight[self.own :] = (self.size[point] + ball * self.growth)[self.own :].exp()
        still = torch.where(self.hears, 1.0, self.z[point].relu().exp()) * weight
        c = float(still[: self.own].sum() - still[self.own :].sum())
        w, weight = self.w[self.hears], weight[self.hears]
        own = int(self.hears[: self.own].sum())
        rows, norms = (w @ self.basis).numpy(), w.norm(dim=1).numpy()
        return Net(rows, weight.numpy(), own, c, self.strict, norms, False, EXPONENTIAL, 0.0, 1.0)

    def asked(self, point: int) -> tuple[np.ndarray, np.ndarray]:
        """Pre-activations [1 m] and |x| of a point."""
        return self.z[point : point + 1, self.hears].numpy(), self.far[point : point + 1].numpy()


def every_side(question: Question) -> Iterator[Side]:
    """Both labels of every replica, without the points that are misclassified as they are."""
    for replica in range(len(question.x)):
        for label in (1, -1):
            points = (question.y[replica] == label) & ~question.lost[replica]
            if points.any():
                yield Side.of(question, replica, label, points)


def unknown(question: Question) -> str:
    """Why the method does not know a net; empty if it does."""
    form = question.form
    if question.reading != "difference":
        return "softmax-exact needs outputs of two signs; use exact-l2"
    if not (isinstance(form.activation, Relu) or form.activation == Power(1.0)):
        return "softmax-exact needs outputs that are sums of ReLUs; use softmax-dual"
    if (form.readout < 0).any():
        return "softmax-exact needs a second layer without negative weights; use softmax-dual"
    if form.outputs(question.z).max() > GROWTH / 2:
        return f"softmax-exact needs outputs below {GROWTH / 2:g}; use softmax-dual"
    if not (form.readout.mT @ form.w).flatten(1).any(1).all():
        return "softmax-exact needs a net that depends on its input; use softmax-dual"
    return ""
