"""One random stream per purpose and per seed.

NumPy's sequential generators are used on purpose: the first n draws do not depend on how many
follow, so one more test point never changes the others, and no device changes the numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor


def stream(seed: int, purpose: str) -> np.random.Generator:
    """An independent generator for one purpose ("train.noise") of one seed."""
    key = hashlib.sha256(f"unmix:{purpose}:{seed}".encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(key[:16], "little")))


def normals(
    seeds: Sequence[int], purpose: str, shape: tuple[int, ...], dtype: torch.dtype
) -> Float[Tensor, "R *shape"]:
    """Standard normals, one block a seed; drawn in float64, so both dtypes see the same numbers."""
    out = torch.empty((len(seeds), *shape), dtype=dtype)
    for row, seed in enumerate(seeds):
        out[row] = torch.from_numpy(stream(seed, purpose).standard_normal(shape))
    return out
