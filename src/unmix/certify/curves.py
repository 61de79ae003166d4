"""The activations inside compiled code: phi, phi', by a code and two numbers.

0  max(s, p s)                     2  0 | s^p / (p q^(p-1)) | s - (1 - 1/p) q
1  relu(s)^p                       3  s Phi(s/p) + p phi(s/p)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from unmix.errors import CertificateError
from unmix.nets.activations import (
    Activation,
    GaussianRelu,
    LeakyRelu,
    Power,
    Relu,
    SmoothedRelu,
)
from unmix.train.engines.compiled import compiled

LINES, POWER, SMOOTHED, GAUSSIAN, EXPONENTIAL = range(5)


@dataclass(frozen=True)
class Code:
    """An activation as compiled code knows it."""

    kind: int
    p: float
    q: float = 1.0

    @classmethod
    def of(cls, activation: Activation) -> Code:
        match activation:
            case Relu() | Power(p=1):
                return cls(LINES, 0.0)
            case LeakyRelu(leak=leak):
                return cls(LINES, float(leak))
            case Power(p=p):
                return cls(POWER, float(p))
            case SmoothedRelu(q=q, rho=rho):
                return cls(SMOOTHED, float(q), float(rho))
            case GaussianRelu(sigma=sigma):
                return cls(GAUSSIAN, float(sigma)) if sigma > 0 else cls(LINES, 0.0)
        raise CertificateError(
            f"no certificate knows the activation {type(activation).__name__}",
            "have: relu, leaky relu, powers, smoothed relu, relu with Gaussian noise",
        )

    @property
    def flat(self) -> bool:
        """0 on the whole left half line?"""
        return self.kind in (POWER, SMOOTHED) or (self.kind == LINES and self.p == 0)


@compiled
def value(kind, p, q, s):  # type: ignore[no-untyped-def]
    if kind == LINES:
        return max(s, p * s)
    if kind == GAUSSIAN:
        t = s / p
        bell = math.exp(-t * t / 2) * p / math.sqrt(2 * math.pi)
        return s * 0.5 * math.erfc(-t / math.sqrt(2.0)) + bell
    if s <= 0:
        return 0.0
    if kind == EXPONENTIAL:
        return math.expm1(s)
    if kind == POWER:
        return s**p
    foot = min(s, q)
    return foot * (foot / q) ** (p - 1) / p + max(s - q, 0.0)


@compiled
def slope(kind, p, q, s):  # type: ignore[no-untyped-def]
    if kind == LINES:
        return 1.0 if s > 0 else p
    if kind == GAUSSIAN:
        return 0.5 * math.erfc(-s / (p * math.sqrt(2.0)))
    if s <= 0:
        return 0.0
    if kind == EXPONENTIAL:
        return math.exp(s)
    if kind == POWER:
        return p * s ** (p - 1)
    return min(s / q, 1.0) ** (p - 1)
