"""Neurons that say the same are one: parallel ones are added up.

If (w_j, b_j) = t (w, b) with t > 0, then phi(z_j) = t^p phi(z) for lines (p = 1) and powers. Rows
are taken for parallel only where they differ by PARALLEL of their length, which moves a margin by
less than the rounding that every bound allows for (ROUND in `relaxation`, ten times as much).
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from unmix.certify.base import Question
from unmix.certify.curves import LINES, POWER, Code

PARALLEL = 1e-14
# Shares of a witness of a simplified net that are tried on the net itself, then bisected.
FARTHER = (0.9, 1.0, 1 + 1e-6, 1 + 1e-3, 1.01, 1.05, 1.2, 1.5, 2.0)
HALVINGS = 40


def merge(
    w: Float[Tensor, "M d"], b: Float[Tensor, " M"], a: Float[Tensor, " M"], code: Code
) -> tuple[Float[Tensor, "m d"], Float[Tensor, " m"], Float[Tensor, " m"]]:
    """Add up neurons with parallel (w, b); those that cancel are left out."""
    if not len(a):
        return w, b, a
    rows = torch.cat([w, b[:, None]], 1)
    length = rows.norm(dim=1, keepdim=True)
    scaled = rows / length
    if code.kind not in (LINES, POWER):
        scaled, length = rows / length.max(), torch.ones_like(length)
    degree = code.p if code.kind == POWER else 1.0
    near = torch.cdist(scaled, scaled, compute_mode="donot_use_mm_for_euclid_dist") < PARALLEL
    first = near.double().argmax(1)
    heads, group = first.unique(return_inverse=True)
    share = (length / length[heads][group])[:, 0]
    total = torch.zeros(len(heads), dtype=a.dtype).index_add(0, group, a * share**degree)
    size = torch.zeros(len(heads), dtype=a.dtype).index_add(0, group, a.abs() * share**degree)
    keep = total.abs() > 1e-12 * size
    return w[heads[keep]], b[heads[keep]], total[keep]


def reached(witness: Float[Tensor, "R n d"]) -> Float[Tensor, "R n"]:
    """Lengths of witnesses; infinity where there is none."""
    length = witness.norm(dim=-1)
    return torch.where(length > 0, length, torch.inf)


def extended(question: Question, witness: Float[Tensor, "R n d"]) -> Float[Tensor, "R n d"]:
    """Witnesses of a simplified net along their rays to where the net itself is lost; 0 where it
    is not within FARTHER times their length."""
    low, high = (
        torch.zeros(question.shape, dtype=witness.dtype),
        torch.full(question.shape, torch.inf, dtype=witness.dtype),
    )
    for share in FARTHER:
        lost = question.wrong(question.x + share * witness) & high.isinf()
        high = torch.where(lost, share, high)
        low = torch.where(high.isinf(), share, low)
    for _ in range(HALVINGS):
        middle = (low + high.nan_to_num(posinf=0.0)) / 2
        lost = question.wrong(question.x + middle.unsqueeze(-1) * witness)
        low, high = (
            torch.where(lost, low, middle),
            torch.where(lost & high.isfinite(), middle, high),
        )
    return torch.where(high.isfinite(), high, 0.0).unsqueeze(-1) * witness
