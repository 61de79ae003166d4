"""The normal form of every two-layer net: what attacks and certificates look at.

    z = W x + b  [M],     outputs = phi(z) A  [C],     f = outputs                (C = 1)
                                                       f = LSE_{J+} - LSE_{J-}    (C > 1)

The predicted label is +1 iff f > 0 (sgn(0) = -1 in the feature-averaging paper). For C > 1 the sign
of f is that of the difference of softmax probabilities, which saturates and must not be attacked.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from unmix.errors import DataError
from unmix.nets.activations import Activation


@dataclass(frozen=True)
class Form:
    """R two-layer nets with one activation; `signs` are the labels of the outputs, if C > 1."""

    w: Float[Tensor, "R M d"]
    b: Float[Tensor, "R M"]
    readout: Float[Tensor, "R M C"]
    activation: Activation
    signs: Float[Tensor, " C"] | None = None

    def preactivations(self, x: Float[Tensor, "R n d"]) -> Float[Tensor, "R n M"]:
        return torch.baddbmm(self.b.unsqueeze(1), x, self.w.transpose(1, 2))

    def outputs(self, z: Float[Tensor, "R *p M"]) -> Float[Tensor, "R *p C"]:
        return self.activation.value(z) @ self._readout(z)

    def decide(self, z: Float[Tensor, "R *p M"]) -> Float[Tensor, "R *p"]:
        """f as a function of the pre-activations, in log form for softmax nets."""
        outputs = self.outputs(z)
        if self.signs is None:
            return outputs[..., 0]
        plus, minus = outputs[..., self.signs > 0], outputs[..., self.signs < 0]
        return plus.logsumexp(-1) - minus.logsumexp(-1)

    def slope(self, z: Float[Tensor, "R *p M"]) -> Float[Tensor, "R *p M"]:
        """df/dz, by hand: phi'(z) A, or phi'(z) A (softmax_{J+} - softmax_{J-})."""
        steep = self.activation.slope(z)
        if self.signs is None:
            return steep * self._readout(z)[..., 0].unsqueeze(-2)
        outputs = self.outputs(z)
        pull = torch.zeros_like(outputs)
        for side in (1, -1):
            pull[..., self.signs == side] = side * outputs[..., self.signs == side].softmax(-1)
        return steep * (pull @ self._readout(z).transpose(-1, -2))

    def decision(self, x: Float[Tensor, "R n d"]) -> Float[Tensor, "R n"]:
        return self.decide(self.preactivations(x))

    @cached_property
    def votes(self) -> Float[Tensor, "R M"]:
        """Label that each neuron votes for (0 for a silent one)."""
        weight = self.readout.sum(-1) if self.signs is None else self.readout @ self.signs
        return weight.sign()

    def own(self, targets: Tensor) -> Bool[Tensor, "R n M"]:
        """Does neuron r vote for point i's own label (binary) or class?"""
        if self.readout.shape[-1] == 1:
            return self.readout[..., 0].sign().unsqueeze(1) == targets.unsqueeze(-1)
        votes = (self.readout > 0).transpose(1, 2)
        return votes.gather(1, targets.unsqueeze(-1).expand(-1, -1, votes.shape[2]))

    @cached_property
    def lipschitz(self) -> Float[Tensor, " R"]:
        """Bounds |f(x) - f(x')| / |x - x'|: sum_j |A_j| |w_j| sup phi', or the largest a side."""
        steepest = self.activation.steepest
        lengths = self.w.norm(dim=-1).unsqueeze(1)
        per_output = (lengths @ self.readout.abs()).squeeze(1)
        # inf x 0 is no number: silent neurons stay silent.
        per_output = torch.where(per_output > 0, per_output * steepest, per_output)
        if self.signs is None:
            return per_output[:, 0]
        return per_output[:, self.signs > 0].amax(1) + per_output[:, self.signs < 0].amax(1)

    def _readout(self, z: Float[Tensor, "R *p M"]) -> Tensor:
        """A with as many point axes as z has, less one (matmul brings its own).

        A second layer that all replicas share is one matrix, whatever the axes of z stand for.
        """
        replicas, neurons, classes = self.readout.shape
        if replicas == 1 or self.readout.stride(0) == 0:
            return self.readout[0]
        if z.ndim < 3:
            came = f"expected pre-activations [R points M] of {replicas} nets, got {tuple(z.shape)}"
            raise DataError(came, "keep the replica axis in front")
        return self.readout.reshape(replicas, *[1] * (z.ndim - 3), neurons, classes)
