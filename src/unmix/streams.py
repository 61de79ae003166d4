"""One random stream per purpose and per seed.

NumPy's sequential generators are used on purpose: the first n draws do not depend on how many
follow, so one more test point never changes the others, and no device changes the numbers.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor


def stream(seed: int, purpose: str) -> np.random.Generator:
    """An independent generator for one purpose ("train.noise") of one seed."""
    key = hashlib.sha256(f"unmix:{purpose}:{seed}".encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(key[:16], "little")))


# Draws of at most so many bytes are kept, and so many of them: experiments of one paper share their
# points, and drawing them again would cost as much as training on them.
KEPT_BYTES, KEPT = 2**27, 3


def normals(
    seeds: Sequence[int], purpose: str, shape: tuple[int, ...], dtype: torch.dtype
) -> Float[Tensor, "R *shape"]:
    """Standard normals, one block a seed; drawn in float64, so both dtypes see the same numbers."""
    size = len(seeds) * math.prod(shape) * dtype.itemsize
    if size > KEPT_BYTES:
        return _drawn(tuple(seeds), purpose, shape, dtype)
    return _kept(tuple(seeds), purpose, shape, dtype).clone()


def _drawn(
    seeds: tuple[int, ...], purpose: str, shape: tuple[int, ...], dtype: torch.dtype
) -> Tensor:
    out = torch.empty((len(seeds), *shape), dtype=dtype)
    for row, seed in enumerate(seeds):
        out[row] = torch.from_numpy(stream(seed, purpose).standard_normal(shape))
    return out


_kept = lru_cache(KEPT)(_drawn)
