"""Sparse coding (feature purification, section 2 and Assumption 2.1).

    x = M z + xi,   y = sign(<w*, z>), sign(0) = +1,   z_j independent and symmetric:

    |z_j| = 1 with probability p1/d,   1/sqrt(k) with probability p2 k/d,   0 otherwise

so E z_j^2 = (p1 + p2)/d and kappa = E|z|_0 = p1 + p2 k. The noise is xi = xi' + M xi'' with
xi' ~ N(0, sigma_x^2/d I) and spikes xi''_j = +-k^-0.501 of probability sigma_s^2 k^1.002 / d.

Where M is unitary, M^T x = z + N(0, sigma_x^2/d I) + xi'': everything but an l_inf ball may be
computed there ("z-space"). Noise is drawn in z-space, so a seed's points in the basis M are those
of the basis I, rotated. Columns that overlap (`frame`, `gaussian`) have no such space: there
<M_j, x> = z_j + sum_i <M_j, M_i> z_i + ..., and everything happens in R^d.

With D < d features M has D orthonormal columns. It is kept with d - D more, which complete it to a
basis of R^d: z and w* are 0 there, and only xi' reaches them. Rates are then over D, not d.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from pydantic import Field, model_validator
from torch import Tensor

from unmix.data.base import Batch, Distribution
from unmix.data.dictionaries import ORTHONORMAL, Basis, matrices, rotated
from unmix.data.sparse_rows import SparseRows
from unmix.errors import SpecError
from unmix.streams import normals, stream

# Rejection sampling gives up when fewer points than one in this many have the margin.
PATIENCE = 1000
SPIKE = 0.501


@dataclass(frozen=True)
class Coded(Batch):
    """Points x = M z + xi with their codes z and labels y in {-1, +1}; `cluster` is 0."""

    z: SparseRows


class SparseCode(Distribution):
    """The concrete sampler of Assumption 2.1 with two free constants p1, p2."""

    kind: Literal["sparse-code"] = "sparse-code"
    d: int = Field(100, ge=2, description="dimension")
    D: int | None = Field(
        None, ge=2, description="number of features; none: D = d. Orthonormal ones are d at most"
    )
    k: float = Field(10.0, ge=1, description="sparsity: small entries of z are 1/sqrt(k)")
    p1: float = Field(0.7, ge=0, description="E number of entries with |z_j| = 1")
    p2: float = Field(0.5, ge=0, description="E number of entries 1/sqrt(k), over k")
    w_low: float = Field(0.7, gt=0, description="|w*_j| is uniform in [w_low, w_high]")
    w_high: float = Field(1.3, gt=0)
    w_seed: int | None = Field(None, description="one w* for all seeds; default: each its own")
    basis: Basis = Field("identity", description="the dictionary M")
    sigma_x: float = Field(0.0, ge=0, description="Gaussian noise, |xi'| ~ sigma_x")
    sigma_s: float = Field(0.0, ge=0, description="spike noise in the basis M")
    margin: float = Field(0.0, ge=0, description="keep points with |<w*, z>| >= margin only")

    @model_validator(mode="after")
    def _possible(self) -> SparseCode:
        if self.count > self.d and self.orthonormal:
            came = f"D={self.D} exceeds d={self.d}"
            hint = "basis=frame or gaussian takes them"
            raise ValueError(f"{came}: more features than dimensions are never orthonormal; {hint}")
        if self.count <= self.d and self.basis == "frame":
            came = f"D={self.count} is not above d={self.d}"
            raise ValueError(f"{came}: a frame has more columns than rows; try basis=haar")
        if not 0 < self.kappa < self.count:
            most = f"d={self.d}" if self.D is None else f"D={self.D}"
            raise ValueError(f"p1 + p2 k = {self.kappa:.4g} must lie between 0 and {most}")
        if self.w_low > self.w_high:
            raise ValueError(f"w_low={self.w_low} exceeds w_high={self.w_high}")
        if self.spikes > self.count:
            raise ValueError(f"sigma_s={self.sigma_s} asks for {self.spikes:.4g} > D spikes")
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.d,)

    @property
    def told(self) -> str:
        return f"k={self.k:g} d={self.d}" + (f" D={self.D}" if self.D else "")

    @property
    def count(self) -> int:
        """D."""
        return self.d if self.D is None else self.D

    @property
    def orthonormal(self) -> bool:
        """Is z-space input space, rotated?"""
        return self.basis in ORTHONORMAL

    @property
    def width(self) -> int:
        """Length of a code: z is 0 beyond D, where orthonormal columns complete the basis."""
        return self.d if self.orthonormal else self.count

    @property
    def sparse(self) -> bool:
        """Are points as sparse as their codes, in z-space?"""
        return self.orthonormal and not self.sigma_x and not self.sigma_s

    @property
    def kappa(self) -> float:
        """E|z|_0."""
        return self.p1 + self.p2 * self.k

    @property
    def spikes(self) -> float:
        """E|xi''|_0."""
        return self.sigma_s**2 * self.k ** (2 * SPIKE)

    def label_vector(
        self, seeds: Sequence[int], dtype: torch.dtype = torch.float64
    ) -> Float[Tensor, "R width"]:
        """w*: fair signs times uniform sizes, which keeps <w*, z> off a lattice (no ties at 0).

        Beyond the D features it is 0.
        """
        rows = []
        for seed in seeds:
            u = stream(seed if self.w_seed is None else self.w_seed, "labels").random(
                (self.width, 2)
            )
            size = self.w_low + (self.w_high - self.w_low) * u[:, 0]
            size[self.count :] = 0
            rows.append(torch.from_numpy(np.where(u[:, 1] < 0.5, -size, size)))
        return torch.stack(rows).to(dtype)

    def dictionary(
        self, seeds: Sequence[int], dtype: torch.dtype = torch.float64
    ) -> Float[Tensor, "R d width"]:
        """M; its first D columns are the features."""
        return matrices(self.basis, seeds, self.d, self.count).to(dtype)

    def ahead(
        self, seeds: Sequence[int], dtype: torch.dtype = torch.float64
    ) -> Float[Tensor, "R d"]:
        """M w*, the direction along which all features grow towards their labels."""
        return (self.dictionary(seeds) @ self.label_vector(seeds).unsqueeze(-1))[..., 0].to(dtype)

    def overlap(self, seeds: Sequence[int]) -> Float[Tensor, " R"]:
        """max |<M_i, M_j>| over pairs of features."""
        m = self.features(seeds)
        return (m @ m.transpose(1, 2)).triu(1).abs().amax((1, 2))

    def features(
        self, seeds: Sequence[int], dtype: torch.dtype = torch.float64
    ) -> Float[Tensor, "R k d"]:
        """The columns M_j."""
        return self.dictionary(seeds, dtype).transpose(1, 2)[:, : self.count]

    def codes(
        self, seeds: Sequence[int], n: int, purpose: str, dtype: torch.dtype = torch.float64
    ) -> tuple[SparseRows, Float[Tensor, "R n"]]:
        """n codes a seed with their labels: all that noiseless training in z-space needs."""
        weights = self.label_vector(seeds).numpy()
        drawn = [self._codes(s, w, n, purpose) for s, w in zip(seeds, weights, strict=True)]
        counts, index, value, labels = (np.concatenate(part) for part in zip(*drawn, strict=True))
        offsets = np.concatenate([[0], np.cumsum(counts)])
        at, where, what, y = (torch.from_numpy(a) for a in (offsets, index, value, labels))
        z = SparseRows(at, where, what.to(dtype), len(seeds), self.width)
        return z, y.reshape(len(seeds), n).to(dtype)

    def sample(
        self, seeds: Sequence[int], n: int, purpose: str, dtype: torch.dtype = torch.float64
    ) -> Coded:
        """n points a seed; `purpose` ("train", "test") names the streams they are drawn from."""
        z, y = self.codes(seeds, n, purpose)
        x = z.dense()
        if self.sigma_s:
            x += self._spikes(seeds, n, purpose)
        if not self.orthonormal:
            x = x @ self.dictionary(seeds).transpose(1, 2)
        if self.sigma_x:
            size = self.sigma_x / math.sqrt(self.d)
            x += size * normals(seeds, f"{purpose}.noise", (n, self.d), torch.float64)
        if self.orthonormal:
            x = rotated(self.basis, seeds, x)
        whence = torch.zeros(y.shape, dtype=torch.long)
        return Coded(x.to(dtype), y.to(dtype), whence, z.to(dtype))

    def _codes(
        self, seed: int, w: np.ndarray, n: int, purpose: str
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Counts [n], indices, values and labels [n] of one seed's points with the margin."""
        tries = n if self.margin == 0 else 2 * n
        while True:
            row, index = _bernoulli(stream(seed, f"{purpose}.support"), self.kappa / self.count,
                                    tries, self.count)  # fmt: skip
            u = stream(seed, f"{purpose}.values").random(len(row))
            size = np.where(u % 0.5 * 2 * self.kappa < self.p1, 1.0, 1 / math.sqrt(self.k))
            value = np.where(u < 0.5, -size, size)
            score = np.bincount(row, value * w[index], minlength=tries)
            kept = np.flatnonzero(np.abs(score) >= self.margin)[:n]
            if len(kept) == n:
                break
            if tries > PATIENCE * n:
                hint = f"its standard deviation is about {math.sqrt(self.p1 + self.p2):.3g}"
                raise SpecError(f"almost no point has |<w*, z>| >= margin={self.margin}", hint)
            tries *= 2
        new = np.full(tries, -1)
        new[kept] = np.arange(n)
        mine = new[row] >= 0
        counts = np.bincount(new[row[mine]], minlength=n)
        return counts, index[mine], value[mine], np.where(score[kept] >= 0, 1.0, -1.0)

    def _spikes(self, seeds: Sequence[int], n: int, purpose: str) -> Float[Tensor, "R n width"]:
        """xi''."""
        out = torch.zeros(len(seeds), n, self.width, dtype=torch.float64)
        for r, seed in enumerate(seeds):
            places = stream(seed, f"{purpose}.spikes")
            row, index = _bernoulli(places, self.spikes / self.count, n, self.count)
            signs = stream(seed, f"{purpose}.spike-signs").random(len(row))
            value = np.where(signs < 0.5, -1.0, 1.0) * self.k**-SPIKE
            out[r, torch.from_numpy(row), torch.from_numpy(index)] = torch.from_numpy(value)
        return out


def _bernoulli(
    source: np.random.Generator, p: float, n: int, d: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the successes among n d independent trials, in order.

    Gaps between successes are geometric, so the cost is that of the successes, and the first rows
    do not depend on how many follow.
    """
    places, last = [np.empty(0, dtype=np.int64)], -1
    while last < n * d:
        gaps = source.geometric(p, max(16, int(p * n * d)))
        places.append(last + np.cumsum(gaps))
        last = int(places[-1][-1])
    flat = np.concatenate(places)
    return np.divmod(flat[flat < n * d], d)
