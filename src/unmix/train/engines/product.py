"""The fastest dense product that this machine has.

torch's own matrix product goes to MKL, which keeps to AVX2 on processors of other makers. oneDNN,
which torch carries as well, chooses by what the processor can do, but has no float64; and what is
compiled here (`narrow`) is best for a matrix that meets few neurons (docs/performance.md has the
measurement). Results differ by rounding only.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor

from unmix.train.engines.narrow import NEURONS, POINTS, dots, mixtures, squares

# With fewer multiplications a call costs more than its arithmetic; with shorter sums and rows, the
# beginning and the end of a vector loop do.
SMALL, SHORT = 100_000, 64
# So many neurons are few: the large matrix is read at the speed of memory, or nearly.
FEW = 16


def product(
    a: Float[Tensor, "R n d"], b: Float[Tensor, "R d h"], out: Float[Tensor, "R n h"]
) -> Float[Tensor, "R n h"]:
    """a b, in `out` or in a tensor of its own: use what comes back."""
    (replicas, n, d), h = a.shape, b.shape[2]
    if a.device.type != "cpu" or n * d * h < SMALL or min(d, h) < SHORT:
        return torch.bmm(a, b, out=out)
    if a.is_contiguous() and out.is_contiguous() and _compiled(a, b, out):
        return out
    if a.dtype != torch.float32 or not _has_linear():
        return torch.bmm(a, b, out=out)
    if replicas == 1:
        return _linear(a[0], b[0]).unsqueeze(0)
    for r in range(replicas):
        out[r] = _linear(a[r], b[r])
    return out


def gram(x: Float[Tensor, "R n d"], out: Float[Tensor, "R n n"]) -> Float[Tensor, "R n n"]:
    """x x^T, in `out` or in a tensor of its own: use what comes back."""
    _, n, d = x.shape
    fits = n * n * d >= SMALL and n >= max(SHORT, NEURONS)
    dense = x.device.type == "cpu" and x.is_contiguous() and out.is_contiguous()
    if fits and dense and _one_double(x):
        squares(x.numpy(), out.numpy())
        return out
    return product(x, x.mT, out)


def _one_double(a: Tensor) -> bool:
    """In float64 on one thread what is compiled here wins at any size."""
    return a.dtype == torch.float64 and torch.get_num_threads() == 1


def _compiled(a: Tensor, b: Tensor, out: Tensor) -> bool:
    """Done, if it is faster so: for few neurons, and in float64 on one thread for any number."""
    few, double = a.shape[1] <= FEW, a.dtype == torch.float64
    if few and double and b.is_contiguous():
        mixtures(a.numpy(), b.numpy(), out.numpy())
        return True
    fits = a.shape[1] >= NEURONS and b.shape[2] >= POINTS and b.mT.is_contiguous()
    if fits and (few or _one_double(a)):
        dots(a.numpy(), b.mT.numpy(), out.numpy())
        return True
    return False


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
