"""Closed forms beside the pReLU paper's measurements: radii, probabilities, times and margins.

Radii and bounds speak of F and F^(p); with C = 1/2 in Lemma 3 (Gaussian tails) every bound of the
paper is a number. Times and margins are derived here, not in the paper, from the direction flow

    u' = (v/|w|) P_u sum_i g_i p relu(<x_i, u>)^(p-1) x_i,     q' = 2 |q| sum_i g_i relu(<x_i, u>)^p
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from scipy.optimize import brentq
from scipy.special import expi
from scipy.stats import norm
from torch import Tensor

from unmix.data.clusters import Clusters

# Lemma 3 for Gaussians: P(|<mu, eps>| > t) <= 2 exp(-D t^2/(2 alpha^2)).
C = 0.5


def without_power(opposite: int) -> float:
    """1/sqrt(1 + K_opposite), of F^(1) at a centre: subclass neurons alone do not help."""
    return 1 / math.sqrt(1 + opposite)


def exact_radius(
    x: Float[Tensor, "*n k"], y: Float[Tensor, "*n"], data: Clusters
) -> Float[Tensor, "*n"]:
    """r_F = min(A/sqrt(K_own), (A - B)/sqrt(K)); A, B sums of own and of opposite coordinates.

    F y > 0 iff A > 0 and A > B, two half-spaces; negative where x is misclassified.
    """
    own, other = _own_other(x, y, data)
    a, b = own.sum(-1), other.sum(-1)
    sizes = torch.where(y > 0, float(len(data.plus)), float(len(data.minus)))
    return torch.minimum(a / sizes.sqrt(), (a - b) / math.sqrt(data.k))


def certified_radius(
    x: Float[Tensor, "*n k"], y: Float[Tensor, "*n"], data: Clusters, p: float
) -> Float[Tensor, "*n"]:
    """r_{F^(p)} >= (|relu x_own|_p - |relu x_other|_p)/sqrt 2 for p >= 2.

    F^(p) y > 0 iff the first norm is larger. Both are 1-Lipschitz in l_p, so in l_2, and the two
    parts of a perturbation share its length.
    """
    own, other = _own_other(x, y, data)
    gap = torch.linalg.vector_norm(own.relu(), p, -1)
    return (gap - torch.linalg.vector_norm(other.relu(), p, -1)) / math.sqrt(2)


def clean_bound(data: Clusters, p: float | None) -> float:
    """Prop 1: P(F y > 0), P(F^(p) y > 0) are at least this (`p` = None means F)."""
    ratio = C * data.d / _alpha(data) ** 2
    if p is None:
        return 1 - 4 * math.exp(-ratio / (4 * data.k))
    return 1 - 2 * (data.k + 1) * math.exp(-ratio / data.k**2)


def broken_bound(data: Clusters, rho: float) -> float:
    """Thm 1, first part: P(F(x - y (1+rho) d_0/sqrt K) y > 0) is at most this."""
    return 2 * math.exp(-C * data.d * rho**2 / (data.k * _alpha(data) ** 2))


def broken_share(data: Clusters, rho: float) -> float:
    """What that probability is: Phi(-rho sqrt(D/K)/alpha), while the own relu stays active."""
    return float(norm.sf(rho * math.sqrt(data.d / data.k) / _alpha(data)))


def robust_bound(data: Clusters, delta: float) -> float:
    """Thm 1, second part: F^(p), p >= 2, is robust at (sqrt 2 - delta)/2 with at least this."""
    ratio = C * data.d * delta**2 / (2 * data.k**2 * _alpha(data) ** 2)
    return 1 - 2 * (data.k + 1) * math.exp(-ratio)


def kept_bound(data: Clusters, rho: float) -> float:
    """Thm 3, first part: F is robust at (1 - rho)/sqrt K with at least this."""
    return 1 - broken_bound(data, rho)


def lost_bound(data: Clusters, delta: float, union: bool = True) -> float:
    """Thm 3, second part: F^(p) is robust at (sqrt 2 + delta)/2 with at most this.

    4 K exp(...): the last step of the proof loses the K of a union bound, the text prints 4.
    """
    ratio = C * data.d * delta**2 / (8 * data.k**2 * _alpha(data) ** 2)
    return 4 * (data.k if union else 1) * math.exp(-ratio)


def escape_time(k: int, p: float, cosine: float, length: float) -> float:
    """Balanced start, p > 2, mean loss: K/(p (p-2) c0^(p-2)) + K ln(1/|w(0)|).

    A neuron at cosine c0 to one centre turns by c' = (p/K) c^(p-1) (1 - c^2), which takes the first
    time; then |w| grows like e^(t/K). c0 is the largest initial cosine, |w(0)| its neuron's length.
    """
    return k / (p * (p - 2) * cosine ** (p - 2)) + k * math.log(1 / length)


def margin(rate: float, time: float, start: float = 1.0) -> float:
    """m' = 2 rate m e^(-m) from m = start: Ei(m) - Ei(start) = 2 rate t.

    rate = pi_k for a subclass of frequency pi_k (p >= 3), sqrt(K_own)/K for a class (p = 1).
    """
    target = expi(start) + 2 * rate * time
    return float(brentq(lambda m: expi(m) - target, start, 700.0))


def margin_gap(data: Clusters) -> float:
    """p = 1: m_+ - m_- -> ln(K1/K2)/2, since rates sqrt(K1)/K and sqrt(K2)/K differ."""
    return 0.5 * math.log(len(data.plus) / len(data.minus))


def _own_other(
    x: Float[Tensor, "*n k"], y: Float[Tensor, "*n"], data: Clusters
) -> tuple[Tensor, Tensor]:
    """Coordinates along centres of the own and of the other label; those of the wrong label are
    0, which no sum and no norm of relus sees."""
    mine = y.unsqueeze(-1) == data.signs
    return torch.where(mine, x, 0.0), torch.where(mine, 0.0, x)


def _alpha(data: Clusters) -> float:
    """The paper's alpha: noise N(0, alpha^2/D I) around unit centres."""
    return data.sigma / data.alpha
