"""Broken models that look robust: what every audit must see through, or at least flag."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def points(n: int = 60, d: int = 16, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Two clusters of unit noise around +-3 e, e = (1, ..., 1)/sqrt d, labels 0 and 1."""
    made = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % 2
    e = torch.ones(d) / d**0.5
    x = torch.randn(n, d, generator=made) + 3 * (2 * y - 1).unsqueeze(1) * e
    return x, y


class Honest(nn.Module):
    """Scores (-f, f) with f = <x, e>; the radius of a point is |<x, e>|."""

    def __init__(self, d: int = 16) -> None:
        super().__init__()
        self.register_buffer("e", torch.ones(d) / d**0.5)

    def logits(self, x: Tensor) -> Tensor:
        f = x @ self.e
        return torch.stack([-f, f], 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.logits(x)


class Masked(Honest):
    """Scores so large that the cross-entropy has no gradient left."""

    def forward(self, x: Tensor) -> Tensor:
        return 1e4 * self.logits(x)


class Clamped(Honest):
    """Inputs are clamped: beyond the clamp there is no gradient."""

    def forward(self, x: Tensor) -> Tensor:
        return self.logits(x.clamp(-0.02, 0.02))


class Quantised(Honest):
    """Inputs are rounded to whole numbers: the gradient is 0 almost everywhere."""

    def forward(self, x: Tensor) -> Tensor:
        return self.logits(x.round())


class Saturating(Honest):
    """Probabilities of a steep softmax: 0 and 1 in floating point, and flat."""

    def forward(self, x: Tensor) -> Tensor:
        return (100 * self.logits(x)).softmax(1)


class Straight(Honest):
    """A forward pass with another model's gradient."""

    def forward(self, x: Tensor) -> Tensor:
        other = x.flip(1) * torch.linspace(-1, 1, x.shape[1]).to(x)
        fake = torch.stack([-other.sum(1), other.sum(1)], 1)
        return fake + (self.logits(x) - fake).detach()


class Random(Honest):
    """Noise on the scores."""

    def forward(self, x: Tensor) -> Tensor:
        return self.logits(x + 0.5 * torch.randn_like(x))


BROKEN = {
    "scale": Masked,
    "clamped": Clamped,
    "quantised": Quantised,
    "saturating": Saturating,
    "straight-through": Straight,
    "random": Random,
}
