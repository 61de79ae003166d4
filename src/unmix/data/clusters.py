"""Multi-cluster data (feature averaging, Def 3.1; the same class as in the pReLU paper).

    j ~ weights on [k],   y = +1 iff j in J+,   x = s (alpha mu_j + sigma xi),   xi ~ N(0, I_d)

with |mu_j| = sqrt(d). `scale = "sqrt-d"` has s = 1; `scale = "unit"` has s = 1/sqrt(d), which is
the pReLU paper's normalisation: unit centres and noise N(0, sigma^2/d I).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor

from unmix.data.base import Batch, Distribution
from unmix.errors import SpecError
from unmix.streams import normals, stream


class Clusters(Distribution):
    """k clusters in R^d with a partition (J+, J-) of the clusters into two labels."""

    kind: Literal["clusters"] = "clusters"
    k: int = Field(10, ge=2, description="number of clusters")
    d: int = Field(3072, ge=2, description="input dimension")
    alpha: float = Field(1.0, gt=0, description="signal scale")
    sigma: float = Field(1.0, ge=0, description="noise scale; SNR = alpha / sigma")
    positive: tuple[int, ...] | None = Field(None, description="J+; default: the first half")
    negative: tuple[int, ...] | None = Field(None, description="J-; default: the rest")
    cosine: float = Field(0.0, lt=1, description="common cosine between any two centres")
    sizes: Literal["sampled", "balanced"] = "sampled"
    weights: tuple[float, ...] | None = Field(None, description="cluster probabilities")
    scale: Literal["sqrt-d", "unit"] = "sqrt-d"

    @model_validator(mode="after")
    def _possible(self) -> Clusters:
        if self.k > self.d:
            raise ValueError(
                f"k={self.k} orthogonal centres do not fit into d={self.d}: need k <= d"
            )
        if self.cosine <= -1 / (self.k - 1):
            raise ValueError(f"cosine must exceed -1/(k-1) = {-1 / (self.k - 1):.4g}")
        self._check_partition()
        if self.weights is not None and (len(self.weights) != self.k or min(self.weights) <= 0):
            raise ValueError(f"weights must be k={self.k} positive numbers")
        return self

    def _check_partition(self) -> None:
        plus, minus = set(self.plus), set(self.minus)
        if not plus or not minus:
            raise ValueError("empty partition: each of positive and negative needs a cluster")
        if both := plus & minus:
            raise ValueError(f"overlapping partition: {sorted(both)} in positive and negative")
        once = len(self.plus) + len(self.minus) == len(plus | minus)
        if not once or plus | minus != set(range(self.k)):
            raise ValueError(
                f"the partition must hold each of 0..{self.k - 1} once and nothing else"
            )

    @property
    def plus(self) -> tuple[int, ...]:
        """J+."""
        if self.positive is not None:
            return self.positive
        if self.negative is not None:
            return tuple(j for j in range(self.k) if j not in self.negative)
        return tuple(range(self.k // 2))

    @property
    def minus(self) -> tuple[int, ...]:
        """J-."""
        if self.negative is not None:
            return self.negative
        return tuple(j for j in range(self.k) if j not in self.plus)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.d,)

    @property
    def told(self) -> str:
        return f"k={self.k} d={self.d}"

    @property
    def unit(self) -> float:
        """Length of a centre: sqrt(d), or 1 in the pReLU normalisation. Radii are quoted in it."""
        return math.sqrt(self.d) * self._shrink

    @property
    def balance(self) -> float:
        """c = max(|J+|/|J-|, |J-|/|J+|) (Assumption 3.3)."""
        ratio = len(self.plus) / len(self.minus)
        return max(ratio, 1 / ratio)

    @property
    def best_radius(self) -> float:
        """Half the distance between opposite centres: no classifier can do better there."""
        return self.alpha * self.unit * math.sqrt((1 - self.cosine) / 2)

    @cached_property
    def signs(self) -> Float[Tensor, " k"]:
        """Label of each cluster."""
        signs = torch.full((self.k,), -1.0, dtype=torch.float64)
        signs[list(self.plus)] = 1.0
        return signs

    def centres(
        self, seeds: Sequence[int], dtype: torch.dtype = torch.float64
    ) -> Float[Tensor, "R k d"]:
        """mu_1..mu_k: rows of |mu| chol(G) Q with G = (1-rho) I + rho 11^T, Q orthonormal."""
        gram = (1 - self.cosine) * np.eye(self.k) + self.cosine
        mix = np.linalg.cholesky(gram) * self.unit
        rows = []
        for seed in seeds:
            q, r = np.linalg.qr(stream(seed, "centres").standard_normal((self.d, self.k)))
            # Fixing the signs makes Q a function of the draw alone, not of the LAPACK build.
            rows.append(torch.from_numpy(mix @ (q * np.sign(np.diag(r))).T))
        return torch.stack(rows).to(dtype)

    def features(
        self, seeds: Sequence[int], dtype: torch.dtype = torch.float64
    ) -> Float[Tensor, "R k d"]:
        """The centres."""
        return self.centres(seeds, dtype)

    def sample(
        self, seeds: Sequence[int], n: int, purpose: str, dtype: torch.dtype = torch.float64
    ) -> Batch:
        """n points a seed; `purpose` ("train", "test") names the streams they are drawn from."""
        cluster = torch.stack([self._indices(seed, n, purpose) for seed in seeds])
        x = normals(seeds, f"{purpose}.noise", (n, self.d), dtype).mul_(self.sigma * self._shrink)
        mu = self.centres(seeds, dtype)
        for row in range(len(seeds)):
            x[row].add_(mu[row, cluster[row]], alpha=self.alpha)
        return Batch(x, self.signs.to(dtype)[cluster], cluster)

    def noise(self, batch: Batch, seeds: Sequence[int]) -> Float[Tensor, "R n d"]:
        """s sigma xi_i = x_i - alpha mu_c(i), in the units of x."""
        mu = self.centres(seeds, batch.x.dtype).to(batch.x.device)
        own = torch.stack([m[c] for m, c in zip(mu, batch.cluster, strict=True)])
        return batch.x - self.alpha * own

    def groups(self, labels: int) -> Int[Tensor, " k"]:
        """Super-label of each cluster: each side split into equal runs, `labels` runs in all."""
        parts = [round(labels * len(side) / self.k) for side in (self.plus, self.minus)]
        if sum(parts) != labels or not min(parts) >= 1 or labels > self.k:
            raise SpecError(
                f"{labels} labels cannot be shared fairly by the two sides of {self.k} clusters"
            )
        group = torch.empty(self.k, dtype=torch.int64)
        runs = [
            run
            for side, p in zip((self.plus, self.minus), parts, strict=True)
            for run in np.array_split(np.array(side), p)
        ]
        for index, run in enumerate(runs):
            group[run] = index
        return group

    @property
    def _shrink(self) -> float:
        return 1.0 if self.scale == "sqrt-d" else 1 / math.sqrt(self.d)

    def _indices(self, seed: int, n: int, purpose: str) -> Int[Tensor, " n"]:
        weights = np.array(self.weights if self.weights is not None else [1.0] * self.k)
        weights = weights / weights.sum()
        if self.sizes == "sampled":
            return torch.from_numpy(stream(seed, f"{purpose}.cluster").choice(self.k, n, p=weights))
        return torch.from_numpy(_in_turn(weights, n))


def _in_turn(weights: np.ndarray, n: int) -> np.ndarray:
    """Point i goes to the cluster that is due first among those with less than (i+1) w points.

    Every cluster then holds n w points to less than one, for every n, and one more point does not
    change the others.
    """
    counts = np.zeros(len(weights), dtype=np.int64)
    turns = np.empty(n, dtype=np.int64)
    for i in range(n):
        ready = counts < (i + 1) * weights - 1e-9
        turns[i] = np.where(ready, (counts + 1) / weights, np.inf).argmin()
        counts[turns[i]] += 1
    return turns
