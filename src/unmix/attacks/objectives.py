"""What an attack lowers: a function of the scores with its slopes, by hand.

    margin  m = s_y - max_{j != y} s_j          no scale, no saturation: the default of every attack
    rival   m = s_y - s_r for a chosen class r  (targeted)
    ce      log softmax(s)_y                    vanishes in floating point where scores are large
    dlr     m / (s_(1) - s_(3))                 needs three classes; with two it is the margin

A point is fooled iff the label of the largest score is not its own; ties go to the lowest label.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

Scores = Float[Tensor, "P C"]
Column = Float[Tensor, " P"]
# Scores -> (value, d value / d scores).
Objective = Callable[[Tensor], tuple[Tensor, Tensor]]
Loss = Literal["margin", "ce", "dlr"]

# A margin of this share of the clean one is a tie.
TIE = 1e-9


def fooled(scores: Scores, y: Int[Tensor, " P"]) -> Bool[Tensor, " P"]:
    """Another label wins. Scores that are no numbers fool nobody."""
    if scores.shape[-1] == 2:
        # As rounding has it: a difference of equal numbers is 0, and 0 belongs to label 0.
        lead = scores[:, 1] - scores[:, 0]
        return torch.where(y == 1, lead <= 0, lead > 0) & torch.isfinite(lead)
    # A sum is a number if and only if all of it are.
    return (scores.argmax(-1) != y) & torch.isfinite(scores.sum(-1))


def gap(
    scores: Scores, y: Int[Tensor, " P"], rival: Int[Tensor, " P"] | None = None
) -> Float[Tensor, " P"]:
    """Own score minus that of the rival (None: of the best other)."""
    if scores.shape[-1] == 2 and rival is None:
        lead = scores[:, 1] - scores[:, 0]
        return torch.where(y == 1, lead, -lead)
    own, other = y.unsqueeze(-1), _other(scores, y, rival)
    return (scores.gather(-1, own) - scores.gather(-1, other)).squeeze(-1)


def margin(
    scores: Scores, y: Int[Tensor, " P"], rival: Int[Tensor, " P"] | None = None
) -> tuple[Column, Scores]:
    """The gap and its slopes."""
    own, other = y.unsqueeze(-1), _other(scores, y, rival)
    value = scores.gather(-1, own) - scores.gather(-1, other)
    slopes = torch.zeros_like(scores).scatter_(-1, own, 1.0).scatter_add_(-1, other, _minus(value))
    return value.squeeze(-1), slopes


def _other(
    scores: Scores, y: Int[Tensor, " P"], rival: Int[Tensor, " P"] | None
) -> Int[Tensor, "P 1"]:
    if rival is not None:
        return rival.unsqueeze(-1)
    own = y.unsqueeze(-1)
    return 1 - own if scores.shape[-1] == 2 else _without(scores, own).argmax(-1, keepdim=True)


def _without(scores: Scores, own: Int[Tensor, "P 1"]) -> Scores:
    return scores.scatter(-1, own, -torch.inf)


def cross_entropy(scores: Scores, y: Int[Tensor, " P"]) -> tuple[Column, Scores]:
    """Minus the cross-entropy."""
    log = scores.log_softmax(-1)
    own = one_hot(y, scores.shape[-1]).to(scores)
    return (log * own).sum(-1), own - log.exp()


def logit_ratio(scores: Scores, y: Int[Tensor, " P"]) -> tuple[Column, Scores]:
    """The difference-of-logits ratio of AutoAttack."""
    value, slopes = margin(scores, y)
    if scores.shape[-1] < 3:
        return value, slopes
    order = scores.argsort(-1, descending=True)
    first, third = order[:, :1], order[:, 2:3]
    spread = (scores.gather(-1, first) - scores.gather(-1, third)).clamp_min(1e-12)
    pull = torch.zeros_like(scores).scatter_(-1, first, 1.0).scatter_add_(-1, third, _minus(spread))
    ratio = value.unsqueeze(-1) / spread
    return ratio.squeeze(-1), (slopes - ratio * pull) / spread


def objective(
    loss: Loss, y: Int[Tensor, " P"], rival: Int[Tensor, " P"] | None = None
) -> Objective:
    """A loss on given labels; a rival makes the margin a targeted one."""
    if loss == "margin":
        return partial(margin, y=y, rival=rival)
    return partial(cross_entropy if loss == "ce" else logit_ratio, y=y)


def _minus(like: Tensor) -> Tensor:
    return torch.full_like(like, -1.0)
