"""The fastest dense product that this torch has.

torch's own matrix product goes to MKL, which keeps to AVX2 on processors of other makers; oneDNN,
which torch carries as well, chooses by what the processor can do. In float32 on such a machine it
is about twice as fast (docs/performance.md has the measurement). Results differ by rounding only.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor

# Below this many multiplications a call costs more than its arithmetic.
SMALL = 100_000


def product(
    a: Float[Tensor, "R n d"], b: Float[Tensor, "R d h"], out: Float[Tensor, "R n h"]
) -> Float[Tensor, "R n h"]:
    """a b, in `out` or in a tensor of its own: use what comes back."""
    replicas, n, d = a.shape
    fits = a.dtype == torch.float32 and a.device.type == "cpu" and n * d * b.shape[2] >= SMALL
    if not (fits and _has_linear()):
        return torch.bmm(a, b, out=out)
    if replicas == 1:
        return _linear(a[0], b[0]).unsqueeze(0)
    for r in range(replicas):
        out[r] = _linear(a[r], b[r])
    return out


def _linear(a: Float[Tensor, "n d"], b: Float[Tensor, "d h"]) -> Float[Tensor, "n h"]:
    """The product as a linear layer without bias, whose weights are b transposed."""
    if a.stride(-1) != 1 and b.shape[1] < a.shape[0]:
        # The narrower factor is cheaper to turn.
        turned: Tensor = torch.ops.mkldnn._linear_pointwise(b.T, a, None, "none", [], "")
        return turned.T
    z: Tensor = torch.ops.mkldnn._linear_pointwise(a, b.T, None, "none", [], "")
    return z


@cache
def _has_linear() -> bool:
    """Does this torch carry oneDNN, and its linear layer in the form that is called here?"""
    with suppress(AttributeError, RuntimeError, TypeError):
        a, b = torch.rand(3, 4), torch.rand(4, 2)
        return bool(torch.allclose(_linear(a, b), a @ b))
    return False
