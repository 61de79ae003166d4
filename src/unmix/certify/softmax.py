"""Nets whose label is the sign of LSE_+ - LSE_-: two groups of softmax outputs."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from unmix.certify.base import BOUND, SLACK, UNSUPPORTED, Certificate, Certifier, Question, blank
from unmix.nets.form import Form


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
