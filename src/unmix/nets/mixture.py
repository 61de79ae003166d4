"""Neurons as a few pure features plus a dense mixture (feature purification, Thm 5.2, eq 6.1).

In the coordinates of the features, u_i = M^T w_i, with j the largest,

    N_i = {j' : |u_ij'| >= 0.35 |u_ij|},      u_i = sum_{N_i} alpha_ij' w*_j' e_j' + rest
    nu_i = <u_i, w*>_{off j} / (|w*|^2_{off j} |u_ij|),     dense_i = |nu_i u_ij w*_{off j}| / |w_i|

so that w_i = |u_ij| (+-M_j + nu_i sum_{j' != j} w*_j' M_j') + what neither explains. The threshold
of N_i is ours: the paper says only that N_i is the set of the large coordinates. "Off j" is what
is orthogonal to M_j, so that a pure neuron has no mixture, whether or not features overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from unmix.data.sparse_code import SparseCode

LARGE = 0.35
# A neuron lives if it is on for this share of the points.
ALIVE = 0.005
TINY = 1e-30


@dataclass(frozen=True)
class Mixture:
    """Neurons w in the coordinates u = M^T w of D features, and the labels' vector w*.

    Features that are no orthonormal basis come with the neurons w themselves, which are not as long
    as u, and with their effects on M w*, <M_j, M w*>; else these are u and w*.
    """

    u: Float[Tensor, "R m D"]
    label_vector: Float[Tensor, "R D"]
    w: Float[Tensor, "R m d"] | None = None
    effects: Float[Tensor, "R D"] | None = None

    @cached_property
    def top(self) -> Int[Tensor, "R m"]:
        """j, the largest coordinate."""
        return self.u.abs().argmax(-1)

    @cached_property
    def peak(self) -> Float[Tensor, "R m"]:
        """u_ij, with its sign."""
        return self.u.gather(-1, self.top.unsqueeze(-1))[..., 0]

    @cached_property
    def length(self) -> Float[Tensor, "R m"]:
        return torch.linalg.vector_norm(self.neurons, dim=-1)

    @property
    def neurons(self) -> Tensor:
        """w."""
        return self.u if self.w is None else self.w

    @cached_property
    def purity(self) -> Float[Tensor, "R m"]:
        """|u_ij| / |w_i|."""
        return self.peak.abs() / self.length.clamp_min(TINY)

    @cached_property
    def large(self) -> Bool[Tensor, "R m D"]:
        """N_i."""
        return self.u.abs() >= LARGE * self.peak.abs().unsqueeze(-1)

    @cached_property
    def alone(self) -> Bool[Tensor, "R m"]:
        """|N_i| = 1."""
        return self.large.sum(-1) == 1

    @cached_property
    def right_sign(self) -> Bool[Tensor, "R m"]:
        """sign(u_ij) = sign(w*_j)."""
        return self.peak * self._own > 0

    @cached_property
    def nu(self) -> Float[Tensor, "R m"]:
        """Size of the dense mixture over that of the top coordinate."""
        return self._along / self.rest.clamp_min(TINY) / self.peak.abs().clamp_min(TINY)

    @cached_property
    def dense(self) -> Float[Tensor, "R m"]:
        """Share of the norm that the dense mixture has."""
        return self._along.abs() / self.rest.sqrt() / self.length.clamp_min(TINY)

    @cached_property
    def residue(self) -> Float[Tensor, "R m"]:
        """Share of the norm that neither the top nor the mixture has."""
        return (1 - self.purity**2 - self.dense**2).clamp_min(0).sqrt()

    @cached_property
    def beta(self) -> Float[Tensor, "R m D"]:
        """beta_ij = u_ij / w*_j off N_i, and 0 on it."""
        return (self.u / self.label_vector.unsqueeze(1)).masked_fill(self.large, 0)

    @cached_property
    def _own(self) -> Float[Tensor, "R m"]:
        """w*_j."""
        return self.label_vector.gather(1, self.top)

    @cached_property
    def _effect(self) -> Float[Tensor, "R m"]:
        """<M_j, M w*>."""
        return self._effects.gather(1, self.top)

    @property
    def _effects(self) -> Float[Tensor, "R D"]:
        return self.label_vector if self.effects is None else self.effects

    @cached_property
    def _along(self) -> Float[Tensor, "R m"]:
        """<w_i, M w*> off the top feature."""
        return self.along(self.u, self.peak)

    def along(self, u: Float[Tensor, "R m D"], own: Float[Tensor, "R m"]) -> Float[Tensor, "R m"]:
        """<v, M w*> off the top features, of any v with coordinates u and `own` at the tops."""
        return (u @ self.label_vector.unsqueeze(-1))[..., 0] - own * self._effect

    @cached_property
    def rest(self) -> Float[Tensor, "R m"]:
        """|M w*|^2 off the top feature."""
        whole = (self.label_vector * self._effects).sum(-1, keepdim=True)
        return whole - self._effect.square()


@dataclass(frozen=True)
class Reading:
    """How weights are read where they learn: in the basis of orthonormal features, or in R^d.

    `ahead` is M w* there, `columns` the features of R^d (None: the first D axes).
    """

    label_vector: Float[Tensor, "R D"]
    ahead: Float[Tensor, "R d"]
    columns: Float[Tensor, "R d D"] | None

    @classmethod
    def of(cls, data: SparseCode, seeds: Sequence[int], like: Tensor) -> Reading:
        w = data.label_vector(seeds).to(like)
        if data.orthonormal:
            return cls(w[:, : data.count], w, None)
        return cls(w, data.ahead(seeds).to(like), data.dictionary(seeds).to(like))

    def coordinates(self, w: Float[Tensor, "R n d"]) -> Float[Tensor, "R n D"]:
        """<w_i, M_j>."""
        count = self.label_vector.shape[1]
        return w[..., :count] if self.columns is None else w @ self.columns

    def __call__(self, w: Float[Tensor, "R m d"]) -> Mixture:
        """What neurons are made of."""
        effects = self.coordinates(self.ahead.unsqueeze(1))[:, 0]
        return Mixture(self.coordinates(w), self.label_vector, w, effects)


@dataclass(frozen=True)
class Split:
    """|w' - w|^2 of each neuron, by where it lies: own top, along M w* off it, the rest."""

    own: Float[Tensor, "R m"]
    along: Float[Tensor, "R m"]
    rest: Float[Tensor, "R m"]

    @classmethod
    def of(cls, before: Mixture, after: Mixture) -> Split:
        """Of the change from one to the other, in the coordinates of the first's tops."""
        change, top = after.u - before.u, before.top.unsqueeze(-1)
        own = change.gather(-1, top)[..., 0]
        dense = before.along(change, own).square() / before.rest
        whole = (after.neurons - before.neurons).square().sum(-1)
        return cls(own.square(), dense, (whole - own.square() - dense).clamp_min(0))


def cosine(one: Float[Tensor, "*s d"], other: Float[Tensor, "*s d"]) -> Float[Tensor, "*s"]:
    """theta(z, z') = |<z, z'>| / (|z| |z'|); 0 where one of them is 0."""
    sizes = torch.linalg.vector_norm(one, dim=-1) * torch.linalg.vector_norm(other, dim=-1)
    return (one * other).sum(-1).abs() / sizes.clamp_min(TINY)


def mean_over(values: Tensor, chosen: Bool[Tensor, "R m"]) -> Float[Tensor, " R"]:
    """Mean over the chosen neurons of each replica; 0 where there are none."""
    weight = chosen.to(values)
    return (values * weight).sum(1) / weight.sum(1).clamp_min(1)
