"""The fastest dense product that this torch has.

torch's own matrix product goes to MKL, which keeps to AVX2 on processors of other makers; oneDNN,
which torch carries as well, chooses by what the processor can do. In float32 on such a machine it
is about twice as fast (docs/steps.md has the measurement). Results differ by rounding only.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

# Below this many multiplications a call costs more than its arithmetic.
SMALL = 100_000
_LINEAR = getattr(torch.ops.mkldnn, "_linear_pointwise", None)


def product(
    a: Float[Tensor, "R n d"], b: Float[Tensor, "R d h"], out: Float[Tensor, "R n h"]
) -> Float[Tensor, "R n h"]:
    """a b, in `out` or in a tensor of its own: use what comes back."""
    replicas, n, d = a.shape
    fits = a.dtype == torch.float32 and a.device.type == "cpu"
    if _LINEAR is None or not fits or replicas > 1 or n * d * b.shape[2] < SMALL:
        return torch.bmm(a, b, out=out)
    # A product with the transposed weights of a linear layer: b is handed over transposed.
    if a.stride(-1) != 1 and b.shape[2] < n:
        # The narrower factor is cheaper to turn.
        turned: Tensor = _LINEAR(b[0].T, a[0], None, "none", [], "")
        return turned.T.unsqueeze(0)
    z: Tensor = _LINEAR(a[0], b[0].T, None, "none", [], "")
    return z.unsqueeze(0)
