"""Neurons that say the same are one: parallel ones are added up.

If (w_j, b_j) = t (w, b) with t > 0, then phi(z_j) = t^p phi(z) for lines (p = 1) and powers. Rows
are taken for parallel only where they differ by PARALLEL of their length, which moves a margin by
less than the rounding that every bound allows for (ROUND in `relaxation`, ten times as much).
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from unmix.certify.curves import LINES, POWER, Code

PARALLEL = 1e-14


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
