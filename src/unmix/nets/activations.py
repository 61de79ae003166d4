"""Activations phi of the four papers: all convex, nondecreasing and zero far below 0.

Relu            relu(s)                                                  feature averaging
LeakyRelu       max(s, leak s)                                           (zero only for leak 0)
Power           relu(s)^p, p >= 1                                        pReLU (of a unit neuron)
SmoothedRelu    0 | s^q / (q rho^(q-1)) | s - (1 - 1/q) rho              patches
GaussianRelu    E relu(s + sigma g) = s Phi(s/sigma) + sigma phi(s/sigma)   purification
GaussianPower   E relu(s + sigma g)^p, p = 1, 2, ...                     pReLU, noise averaged out
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from unmix.errors import SpecError


@runtime_checkable
class Activation(Protocol):
    """A scalar function with its derivative and the largest slope it has."""

    @property
    def steepest(self) -> float:
        """sup phi', the Lipschitz constant; infinity where there is only a local one."""

    def value(self, z: Float[Tensor, "*s"]) -> Float[Tensor, "*s"]:
        """phi(z)."""

    def slope(self, z: Float[Tensor, "*s"]) -> Float[Tensor, "*s"]:
        """phi'(z), with the declared convention at a kink."""


@dataclass(frozen=True)
class Relu:
    """relu; its slope at 0 is 1 (feature averaging) or 0 (torch, pReLU)."""

    slope_at_zero: int = 1

    @property
    def steepest(self) -> float:
        return 1.0

    def value(self, z: Float[Tensor, "*s"]) -> Float[Tensor, "*s"]:
        return z.relu()

    def slope(self, z: Float[Tensor, "*s"]) -> Float[Tensor, "*s"]:
        return (z >= 0 if self.slope_at_zero == 1 else z > 0).to(z)


@dataclass(frozen=True)
class LeakyRelu:
    """max(s, leak s), 0 <= leak <= 1."""

    leak: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.leak <= 1:
            raise SpecError(f"leak: expected a number in [0, 1], got {self.leak}")

    @property
    def steepest(self) -> float:
        return 1.0

    def value(self, z: Float[Tensor, "*s"]) -> Float[Tensor, "*s"]:
        return torch.maximum(z, self.leak * z)

    def slope(self, z: Float[Tensor, "*s"]) -> Float[Tensor, "*s"]:
        return torch.where(z > 0, torch.ones_like(z), torch.full_like(z, self.leak))


@dataclass(frozen=True)
class Power:
    """relu(s)^p; p = 1 has slope 0 at 0."""

    p: float = 3.0

    def __post_init__(self) -> None:
        if not self.p >= 1:
            raise SpecError(f"p: expected a real number >= 1, got {self.p}")

    @property
    def steepest(self) -> float:
        return 1.0 if self.p == 1 else math.inf

    def value(self, z: Float[Tensor, "*s"]) -> Float[Tensor, "*s"]:
        return z.relu() if self.p == 1 else z.relu() ** self.p

    def slope(self, z: Float[Tensor, "*s"]) -> Float[Tensor, "*s"]:
        return (z > 0).to(z) if self.p == 1 else self.p * z.relu() ** (self.p - 1)


@dataclass(frozen=True)
class SmoothedRelu:
    """A polynomial foot of degree q up to rho, then a line of slope 1 (C^1 everywhere)."""

    q: float = 3.0
    rho: float = 1.0

    def __post_init__(self) -> None:
        if not (self.q > 1 and self.rho > 0):
            raise SpecError(f"expected q > 1 and rho > 0, got q={self.q}, rho={self.rho}")

    @property
    def steepest(self) -> float:
        return 1.0

    def value(self, z: Float[Tensor, "*s"]) -> Float[Tensor, "*s"]:
        foot = z.clamp(0, self.rho)
        # relu(z - rho), not relu(z) - foot: autograd's slope at z = 0 is then 0, as `slope` says.
        return foot * (foot / self.rho) ** (self.q - 1) / self.q + (z - self.rho).relu()

    def slope(self, z: Float[Tensor, "*s"]) -> Float[Tensor, "*s"]:
        return (z / self.rho).clamp(0, 1) ** (self.q - 1)


@dataclass(frozen=True)
class GaussianRelu:
    """relu of a pre-activation with Gaussian noise, in the mean; sigma = 0 is relu."""

    sigma: float = 0.1

    def __post_init__(self) -> None:
        if not self.sigma >= 0:
            raise SpecError(f"sigma: expected a number >= 0, got {self.sigma}")

    @property
    def steepest(self) -> float:
        return 1.0

    def value(self, z: Float[Tensor, "*s"]) -> Float[Tensor, "*s"]:
        if self.sigma == 0:
            return z.relu()
        t = z / self.sigma
        bell = torch.exp(-t * t / 2) * (self.sigma / math.sqrt(2 * math.pi))
        return z * torch.special.ndtr(t) + bell

    def slope(self, z: Float[Tensor, "*s"]) -> Float[Tensor, "*s"]:
        return (z >= 0).to(z) if self.sigma == 0 else torch.special.ndtr(z / self.sigma)


@dataclass(frozen=True)
class GaussianPower:
    """M_p(s) = E relu(s + sigma g)^p for a whole p, by parts from

    M_0 = Phi(s/sigma),   M_1 = s Phi + sigma phi,   M_q = s M_(q-1) + (q-1) sigma^2 M_(q-2).

    The derivative of M_p is p M_(p-1). sigma = 0 is Power(p).
    """

    p: float = 3.0
    sigma: float = 0.1

    def __post_init__(self) -> None:
        if not (self.p >= 1 and self.p == int(self.p)):
            raise SpecError(f"p: the recursion needs a whole number >= 1, got {self.p}")
        if not self.sigma >= 0:
            raise SpecError(f"sigma: expected a number >= 0, got {self.sigma}")

    @property
    def steepest(self) -> float:
        return 1.0 if self.p == 1 else math.inf

    def value(self, z: Float[Tensor, "*s"]) -> Float[Tensor, "*s"]:
        return self.moments(z)[1]

    def slope(self, z: Float[Tensor, "*s"]) -> Float[Tensor, "*s"]:
        return self.p * self.moments(z)[0]

    def moments(self, z: Float[Tensor, "*s"]) -> tuple[Tensor, Tensor]:
        """M_(p-1) and M_p."""
        if self.sigma == 0:
            sharp = Power(self.p)
            return sharp.slope(z) / self.p, sharp.value(z)
        t = z / self.sigma
        bell = torch.exp(-t * t / 2) * (self.sigma / math.sqrt(2 * math.pi))
        before = torch.special.ndtr(t)
        last = z * before + bell
        for q in range(2, int(self.p) + 1):
            before, last = last, z * last + (q - 1) * self.sigma**2 * before
        return before, last
