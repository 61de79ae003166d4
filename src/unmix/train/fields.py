"""The vector field of gradient flow on a pReLU net, in directions and angles.

    f_i = sum_j q_j phi(<x_i, u_j>),             g_i = -share_i dl/df_i
    G_j = sum_i g_i phi(<x_i, u_j>),             H_j = sum_i g_i phi'(<x_i, u_j>) x_i
    a_j' = s_j G_j,                              u_j' = (v_j/|w_j|) (H_j - <H_j, u_j> u_j)

with phi(z) = relu(z)^p on points. Averaging Gaussian noise of size s out of x leaves the same
formulas on the centres, with phi(z) = M_p(z) = E relu(z + s g)^p: the part of H along u that this
drops (Stein's identity) is projected away.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from unmix.nets.activations import GaussianPower
from unmix.train.angles import Angles
from unmix.train.engines.product import product
from unmix.train.losses import BinaryLoss, derivatives, losses


@dataclass(frozen=True)
class State:
    """Directions in the run's type, angles in float64."""

    u: Float[Tensor, "h d"]
    a: Float[Tensor, " h"]


@dataclass(frozen=True)
class Motion:
    """u', a' and the outputs f on the way."""

    u: Float[Tensor, "h d"]
    a: Float[Tensor, " h"]
    f: Float[Tensor, " n"]

    @property
    def fastest(self) -> float:
        """The largest rate of any neuron."""
        turning = float(self.u.norm(dim=-1).max())
        return max(turning, float(self.a.abs().max()))


@dataclass(frozen=True)
class Field(ABC):
    """Points with labels and weights (`share`, in float64, sums to 1).

    `pace` is 1 for the mean loss and n for the sum.
    """

    x: Float[Tensor, "n d"]
    y: Float[Tensor, " n"]
    share: Float[Tensor, " n"]
    pace: float
    p: float
    loss: BinaryLoss
    angles: Angles

    @abstractmethod
    def both(self, z: Float[Tensor, "n h"]) -> tuple[Tensor, Tensor]:
        """phi(z) and phi'(z)/p; z may be overwritten."""

    def take(self, kept: Int[Tensor, " m"]) -> Field:
        """The field of some neurons alone."""
        return replace(self, angles=self.angles.take(kept))

    def outputs(self, state: State) -> Float[Tensor, " n"]:
        value, _ = self.both(_times(self.x, state.u.T))
        return value @ self.angles.q(state.a).to(value)

    def motion(self, state: State) -> Motion:
        value, inner = self.both(_times(self.x, state.u.T))
        f = value @ self.angles.q(state.a).to(value)
        g = -derivatives(f[None, :, None], self.y[None], self.loss)[0, :, 0]
        g = g * self.share.to(g)
        rate = (g @ value).double() * self.pace
        pull = _times((g.unsqueeze(-1) * inner).T, self.x)
        across = torch.addcmul(pull, (pull * state.u).sum(-1, keepdim=True), state.u, value=-1)
        ratio = (self.angles.ratio(state.a) * (self.pace * self.p)).to(across)
        return Motion(across.mul_(ratio.unsqueeze(-1)), self.angles.side * rate, f)

    def mean_loss(self, f: Float[Tensor, " n"]) -> float:
        each = losses(f.double()[None, :, None], self.y.double()[None], self.loss)[0]
        return float((each * self.share).sum())


class PointField(Field):
    """phi(z) = relu(z)^p: the flow of these very points."""

    def both(self, z: Float[Tensor, "n h"]) -> tuple[Tensor, Tensor]:
        c = z.relu_()
        if self.p == 1:
            return c, (c > 0).to(c)
        inner = c if self.p == 2 else c * c if self.p == 3 else c ** (self.p - 1)
        return inner * c, inner


@dataclass(frozen=True)
class SmoothField(Field):
    """phi(z) = M_p(z): the points are centres, with Gaussian noise of size `noise` averaged out."""

    noise: float = 0.0

    def both(self, z: Float[Tensor, "n h"]) -> tuple[Tensor, Tensor]:
        before, last = GaussianPower(self.p, self.noise).moments(z)
        return last, before


def _times(a: Float[Tensor, "n d"], b: Float[Tensor, "d m"]) -> Float[Tensor, "n m"]:
    return product(a[None], b[None], a.new_empty(1, len(a), b.shape[1]))[0]
