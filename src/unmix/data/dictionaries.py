"""Dictionaries M of sparse codes (feature purification, section 2), a matrix a seed.

    identity    M = I
    haar        uniform on the orthogonal group: Q of a Gaussian's QR, signs fixed
    transform   M = diag(s) C^T, C the orthonormal cosine transform (DCT-II) and s fair signs

transform has dense columns, as haar has, for d log d operations a point at any d; the signs take
away the constant column, which would be the same for all seeds. Two have D unit columns that
overlap:

    frame       D > d: d rows of a Haar matrix of size D, columns at unit length; overlaps of size
                sqrt((D - d)/(d D)), the least that so many columns can have
    gaussian    any D: normal columns at unit length; overlaps of size 1/sqrt(d)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from scipy.fft import idct
from torch import Tensor

from unmix.streams import normals, stream

Basis = Literal["identity", "haar", "transform", "frame", "gaussian"]
ORTHONORMAL: tuple[Basis, ...] = ("identity", "haar", "transform")


def matrices(basis: Basis, seeds: Sequence[int], d: int, D: int) -> Float[Tensor, "R d width"]:
    """M of each seed, in float64: square where it is orthonormal, else with D columns."""
    if basis == "frame":
        return _unit(_haar(seeds, D)[:, :d])
    if basis == "gaussian":
        return _unit(normals(seeds, "dictionary", (d, D), torch.float64))
    if basis == "identity":
        return torch.eye(d, dtype=torch.float64).expand(len(seeds), -1, -1)
    if basis == "transform":
        return torch.from_numpy(
            _signs(seeds, d)[:, :, None] * idct(np.eye(d), axis=0, norm="ortho")
        )
    return _haar(seeds, d)


def rotated(
    basis: Basis, seeds: Sequence[int], z: Float[Tensor, "R n d"]
) -> Float[Tensor, "R n d"]:
    """M z of points in float64, M orthonormal; no matrix is formed for `transform`."""
    if basis == "identity":
        return z
    d = z.shape[-1]
    if basis == "transform":
        return torch.from_numpy(_signs(seeds, d)[:, None, :] * idct(z.numpy(), norm="ortho"))
    return z @ matrices(basis, seeds, d, d).transpose(1, 2)


def _haar(seeds: Sequence[int], d: int) -> Float[Tensor, "R d d"]:
    q, r = np.linalg.qr(normals(seeds, "dictionary", (d, d), torch.float64).numpy())
    signs = np.sign(np.diagonal(r, axis1=-2, axis2=-1))
    return torch.from_numpy(q * signs[:, None, :])


def _unit(columns: Float[Tensor, "R d D"]) -> Float[Tensor, "R d D"]:
    return torch.nn.functional.normalize(columns, dim=1)


def _signs(seeds: Sequence[int], d: int) -> Float[np.ndarray, "R d"]:
    """s, fair signs."""
    drawn = np.stack([stream(seed, "dictionary").random(d) for seed in seeds])
    return np.where(drawn < 0.5, -1.0, 1.0)
