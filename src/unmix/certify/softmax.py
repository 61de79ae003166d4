"""Bounds for nets whose label is the sign of LSE_+ - LSE_-: two groups of softmax outputs."""

from __future__ import annotations

import math
from typing import Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from unmix.certify.base import BOUND, SLACK, UNSUPPORTED, Certificate, Certifier, Question, blank
from unmix.certify.curves import Code
from unmix.certify.exact import Reduced
from unmix.certify.margins import Margin
from unmix.certify.search import nearest_of_all
from unmix.nets.form import Form

# Relaxations of a single rival's search.
NODES, TOL = 200, 1e-3


class PairwiseLipschitz(Certifier):
    """|f(x)| / max_{i in J+, j in J-} sup |grad o_i - grad o_j|   (l2).

    The gradient of f is an average of such differences. With v = A w and 0 <= phi' <= sup phi',
    |sum_r theta_r v_r|^2 <= sum_rs max(<v_r, v_s>, 0) sup phi'^2 over all neurons of both outputs.
    """

    kind: Literal["pairwise-lipschitz"] = "pairwise-lipschitz"

    def bracket(self, question: Question, above: Float[Tensor, "R n"]) -> Certificate:
        if question.reading != "difference":
            why = "pairwise-lipschitz needs outputs of two signs; use exact-l2"
            return blank(question, torch.zeros_like(above), UNSUPPORTED, "l2", why)
        steepest = torch.stack([steepest_pair(question.form, r) for r in range(len(question.x))])
        margin = question.form.decide(question.z) * question.y
        lower = (margin / steepest[:, None]).clamp_min(0.0) * (1 - SLACK)
        return blank(question, lower, BOUND, "l2")


class SoftmaxDual(Certifier):
    """LSE_own from below, LSE_other from above by its largest output (l2).

    With theta in the simplex and H its entropy, LSE_own(o) >= <theta, o> + H(theta), a tangent; of
    the other side's C outputs the largest, j, has LSE_other <= o_j + log C. So a lost point has

        <theta, o_own> - o_j + H(theta) - log C <= 0      for some j,

    the margin of a two-layer net, bounded by `search`. theta follows the softmax at that net's own
    nearest point, where a tangent is best. What is lost, log C, matters little for large outputs.
    """

    kind: Literal["softmax-dual"] = "softmax-dual"
    rounds: int = Field(3, ge=1, description="tangents that are tried against each rival")

    def bracket(self, question: Question, above: Float[Tensor, "R n"]) -> Certificate:
        if question.reading != "difference":
            why = "softmax-dual needs outputs of two signs; use exact-l2"
            return blank(question, torch.zeros_like(above), UNSUPPORTED, "l2", why)
        lower = PairwiseLipschitz().bracket(question, above).lower
        for replica, point in (~question.lost).nonzero().tolist():
            limit = float(above[replica, point])
            low = self.bound(question, replica, point, limit) * (1 - SLACK)
            lower[replica, point] = lower[replica, point].clamp_min(low)
        return blank(question, lower, BOUND, "l2")

    def bound(self, question: Question, replica: int, point: int, limit: float) -> float:
        """The smallest bound over the rivals, each the best of its tangents."""
        signs, y = question.form.signs, question.y[replica, point]
        assert signs is not None
        found = limit
        for j in (signs != y).nonzero().flatten().tolist():
            x, best = question.x[replica, point], 0.0
            for _ in range(self.rounds):
                margin = tangent_margin(question, replica, point, x, j)
                low, delta = _distance(margin, question.x[replica, point][None], found)
                best, x = max(best, low), question.x[replica, point] + delta
                if best >= found * (1 - TOL):
                    break
            found = min(found, best)
        return found


def tangent_margin(
    question: Question, replica: int, point: int, at: Float[Tensor, " d"], rival: int
) -> Margin:
    """<theta, o_own> - o_rival + H(theta) - log C, theta = softmax(o_own) at `at`."""
    form, y = question.form, question.y[replica, point]
    assert form.signs is not None
    own = form.signs == y
    w, b, readout = form.w[replica], form.b[replica], form.readout[replica]
    outputs = form.activation.value(w @ at + b) @ readout
    theta = outputs[own].softmax(0)
    entropy = float(-torch.xlogy(theta, theta).sum())
    a = readout[:, own] @ theta - readout[:, rival]
    c = entropy - math.log(int((~own).sum()))
    hears = (w != 0).any(1)
    c += float((a * form.activation.value(b))[~hears].sum())
    speaks = hears & (a != 0)
    here = torch.arange(question.shape[1]) == point
    return Margin(w[speaks], b[speaks], a[speaks], c, bool(y < 0), form.activation, replica, here)


def _distance(
    margin: Margin, x: Float[Tensor, "1 d"], limit: float
) -> tuple[float, Float[Tensor, " d"]]:
    """Distance to where a margin is lost, from below, with the nearest such step that was found."""
    net = Reduced.of(margin, Code.of(margin.activation), x)
    if net.never:
        return math.inf, torch.zeros_like(x[0])
    limits = net.limits if math.isinf(limit) else torch.full_like(net.limits, limit)
    low, _, _, _, delta = nearest_of_all(
        net.compiled, *net.points, limits.numpy(), TOL, NODES, NODES
    )
    return float(low[0]), net.outward(delta)[0]


def steepest_pair(form: Form, replica: int) -> Float[Tensor, ""]:
    """max_{i, j} sqrt(sum_rs max(<v_r, v_s>, 0)) with v_r = (A_ri - A_rj) w_r, times sup phi'."""
    assert form.signs is not None
    w, readout = form.w[replica], form.readout[replica]
    gram, worst = w @ w.T, w.new_zeros(())
    for i in (form.signs > 0).nonzero().flatten().tolist():
        for j in (form.signs < 0).nonzero().flatten().tolist():
            weight = readout[:, i] - readout[:, j]
            on = weight != 0
            products = weight[on, None] * gram[on][:, on] * weight[on]
            worst = torch.maximum(worst, products.clamp_min(0).sum().sqrt())
    return worst * form.activation.steepest
