"""What stands above the pre-activations of a two-layer net, for training: values and pull-backs.

A top sees Z = W X^T + b as [R M n] (neurons before points: the layout in which every product of an
engine is contiguous) and the norms N = |w_j| [R M]. `outputs` is the definition, written plainly
for automatic differentiation; `forward` and `pull` give the same by hand into one work buffer, with

    dL/dw_j = sum_i g_ij x_i + shrink_j w_j

for the given slopes dL/d outputs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

Extras = dict[str, Tensor]

# relu'(0) = 1 means z >= 0, which is z > -(the smallest number): one comparison for both.
_BELOW_ZERO = {torch.float64: -5e-324, torch.float32: -1.5e-45}


@dataclass(frozen=True)
class Pull:
    """g = dL/dZ; the multiple of w_j in its own gradient; gradients of the other parameters."""

    g: Float[Tensor, "R M n"]
    shrink: Float[Tensor, "R M"] | None = None
    moves: Extras = field(default_factory=dict)


class Top(ABC):
    """outputs = top(Z). `extras` names its own trained parameters, `normed` its need of N."""

    extras: tuple[str, ...] = ()
    normed: bool = False

    @abstractmethod
    def outputs(
        self, z: Float[Tensor, "R M n"], norms: Float[Tensor, "R M"], extras: Extras
    ) -> Float[Tensor, "R C n"]:
        """The definition, differentiable."""

    @abstractmethod
    def forward(
        self,
        z: Float[Tensor, "R M n"],
        norms: Float[Tensor, "R M"],
        extras: Extras,
        work: Float[Tensor, "R M n"],
    ) -> Float[Tensor, "R C n"]:
        """The same values without a graph; `work` keeps what `pull` needs."""

    @abstractmethod
    def pull(
        self,
        slopes: Float[Tensor, "R C n"],
        z: Float[Tensor, "R M n"],
        norms: Float[Tensor, "R M"],
        extras: Extras,
        work: Float[Tensor, "R M n"],
    ) -> Pull:
        """By hand, after `forward` on the same z; its g may be `work`."""


@dataclass(frozen=True)
class ReluTop(Top):
    """A^T relu(Z) with a frozen A: the nets of feature averaging."""

    readout: Float[Tensor, "M C"]
    slope_at_zero: int = 1

    def outputs(
        self, z: Float[Tensor, "R M n"], norms: Float[Tensor, "R M"], extras: Extras
    ) -> Float[Tensor, "R C n"]:
        # Written so that a NaN stays one: it must not pass for a silent neuron.
        off = z < 0 if self.slope_at_zero == 1 else z <= 0
        return self.readout.T @ torch.where(off, torch.zeros_like(z), z)

    def forward(
        self,
        z: Float[Tensor, "R M n"],
        norms: Float[Tensor, "R M"],
        extras: Extras,
        work: Float[Tensor, "R M n"],
    ) -> Float[Tensor, "R C n"]:
        return self.readout.T @ torch.clamp_min(z, 0, out=work)

    def pull(
        self,
        slopes: Float[Tensor, "R C n"],
        z: Float[Tensor, "R M n"],
        norms: Float[Tensor, "R M"],
        extras: Extras,
        work: Float[Tensor, "R M n"],
    ) -> Pull:
        """g = (A l') 1[Z >= 0]."""
        if self.readout.shape[1] == 1:
            torch.mul(self.readout, slopes, out=work)
        else:
            torch.matmul(self.readout, slopes, out=work)
        edge = _BELOW_ZERO[z.dtype] if self.slope_at_zero == 1 else 0.0
        torch.ops.aten.threshold_backward.grad_input(work, z, edge, grad_input=work)
        return Pull(work)


@dataclass(frozen=True)
class PowerTop(Top):
    """sum_j v_j relu(z_j)^p / |w_j|^(p-1) with a trained v (pReLU, section 2).

    With c = relu(z) / N (never z^p and N^(p-1) apart: they underflow) it is sum_j v_j N_j c_j^p and

        dL/dz = p v c^(p-1) l',   dL/dv = N S,   shrink = -(p-1) v S / N,   S_j = sum_i l'_i c_ij^p.
    """

    p: float
    extras = ("v",)

    @property
    def normed(self) -> bool:  # type: ignore[override]
        return self.p != 1

    def outputs(
        self, z: Float[Tensor, "R M n"], norms: Float[Tensor, "R M"], extras: Extras
    ) -> Float[Tensor, "R C n"]:
        a = z.relu()
        if self.p != 1:
            a = a * (a / _safe(norms).unsqueeze(-1)) ** (self.p - 1)
        return extras["v"].unsqueeze(1) @ a

    def forward(
        self,
        z: Float[Tensor, "R M n"],
        norms: Float[Tensor, "R M"],
        extras: Extras,
        work: Float[Tensor, "R M n"],
    ) -> Float[Tensor, "R C n"]:
        torch.clamp_min(z, 0, out=work)
        if self.p == 1:
            return extras["v"].unsqueeze(1) @ work
        work.div_(_safe(norms).unsqueeze(-1))
        return (extras["v"] * norms).unsqueeze(1) @ power(work, self.p)

    def pull(
        self,
        slopes: Float[Tensor, "R C n"],
        z: Float[Tensor, "R M n"],
        norms: Float[Tensor, "R M"],
        extras: Extras,
        work: Float[Tensor, "R M n"],
    ) -> Pull:
        v = extras["v"]
        column = slopes.transpose(1, 2)
        if self.p == 1:
            moves = {"v": (work @ column)[..., 0]}
            torch.mul(v.unsqueeze(-1), slopes, out=work)
            torch.ops.aten.threshold_backward.grad_input(work, z, 0.0, grad_input=work)
            return Pull(work, None, moves)
        steep = power(work, self.p - 1)
        total = (torch.mul(steep, work, out=work) @ column)[..., 0]
        torch.mul(steep, slopes, out=work).mul_((self.p * v).unsqueeze(-1))
        shrink = -(self.p - 1) * v * total / _safe(norms)
        return Pull(work, shrink, {"v": norms * total})


def _safe(norms: Tensor) -> Tensor:
    """A neuron of norm 0 has relu(z) = 0 and must give 0, not 0/0."""
    return norms.clamp_min(torch.finfo(norms.dtype).tiny)


def power(c: Tensor, p: float) -> Tensor:
    """c^p into new memory; small whole powers by products, which are several times faster."""
    if p not in (1.0, 2.0, 3.0, 4.0):
        return c**p
    out = c.clone()
    for _ in range(int(p) - 1):
        out.mul_(c)
    return out
