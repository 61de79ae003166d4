"""Training steps of the symmetric two-layer net (feature purification, sections 3 and 4).

    f(x) = sum_i relu(<w_i, x> - b + rho_i) - relu(-<w_i, x> - b + rho_i),   rho_i ~ N(0, sigma^2)

one bias b a replica, the same rho_i in both branches. In the mean over rho, with u = s - b,

    f(x) = sum_i R(s_i) - R(-s_i),    R(s) = u Phi(u/sigma) + sigma phi(u/sigma),
    df/ds_i = G_i = Phi((s_i - b)/sigma) + Phi((-s_i - b)/sigma)

and for sigma = 0, the hard net, G_i = 1[|s_i| >= b]. A step is

    w_i <- w_i - eta (-mean y sigmoid(-y f) G_i x + lambda (1 + |w_i|) w_i),    then b grows.

lambda sum |w|^2/2 + |w|^3/3 is the regulariser, with the l2 norm as in the paper's own gradient
(section 4, footnote 6). The text prints |w|_3^3/3, which is `cubic = "l3"`: its gradient is
lambda (1 + |w_ij|) w_ij in the coordinates of the input, and another one in another basis.

With rho given [R n m], a step is that of Alg. 1 to the letter. This class and plain autograd
(`symmetric_reference`) have in common

    step(x, y, eta, rho=None)     x [R n d] or SparseRows, y [R n]; the points may be new each time
    outputs(x, rho=None)          f [R n]            input_gradient(x)   df/dx [R n d] (FGM)
    params()                      {"w" [R m d], "b" [R]}                 state(), restore(state)
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from unmix.data.sparse_rows import SparseRows
from unmix.nets.base import Params
from unmix.perturbations.base import Points
from unmix.spec import Spec
from unmix.train.engines.active import Active
from unmix.train.engines.active_cpu import ActiveCpu
from unmix.train.engines.product import product

# With more entries on than this share, a dense product beats one that follows the entries.
DENSE = 0.05
# Entries whose activations are computed at a time.
PART = 2**15


Cubic = Literal["l2", "l3"]


class Schedule(Spec):
    """How the bias grows and the noise follows it, and the regulariser's weight."""

    growth: float = Field(0.08, ge=0, description="c_b: b <- b + eta c_b / d after each step")
    b_max: float | None = Field(None, gt=0, description="b stops here; none: it never does")
    smoothing: float = Field(0.15, ge=0, description="sigma_rho / b while b grows")
    smoothing_after: float = Field(0.10, ge=0, description="sigma_rho / b once b stands still")
    decay: float = Field(0.0, ge=0, description="lambda")
    cubic: Cubic = Field("l2", description="norm of the cubic term: of the gradient, or as printed")

    def grown(self, b: Float[Tensor, " R"], eta: float, d: int) -> Float[Tensor, " R"]:
        """b after a step; a bias above b_max stays where it is."""
        return torch.maximum(b, (b + eta * self.growth / d).clamp_max(self._end))

    def sigma(self, b: float) -> float:
        """sigma_rho."""
        grows = self.growth > 0 and b < self._end
        return b * (self.smoothing if grows else self.smoothing_after)

    @property
    def _end(self) -> float:
        return math.inf if self.b_max is None else self.b_max


class SymmetricGemm:
    """The same steps by hand, on the entries that are on.

    A branch with u < -reach sigma counts as zero; what that leaves out of R is below
    sigma phi(reach) / reach^2. With b > reach sigma the second branch is such everywhere, and only
    the entries with |s| > b - reach sigma are looked at, some per cent of all. `reach = 9` is exact
    to the last digit of float64. `dictionary` is the basis in which `w` is given (None: that of the
    input).
    """

    def __init__(
        self,
        params: Params,
        schedule: Schedule,
        reach: float = 5.0,
        dictionary: Float[Tensor, "R d d"] | None = None,
    ) -> None:
        self.schedule, self.w, self.b = schedule, params["w"], params["b"]
        self.reach, self.dictionary = reach, dictionary
        self.restore(params)
        self.kernels = ActiveCpu() if self.w.device.type == "cpu" else Active()

    @classmethod
    def still(cls, params: Params, reach: float = 5.0) -> SymmetricGemm:
        """A trained net, for its outputs and gradients: `params` has `sigma`, too."""
        sigma, b = (float(params[name][0]) for name in ("sigma", "b"))
        return cls(params, Schedule(growth=0.0, smoothing_after=sigma / b), reach)

    def step(
        self, x: Points, y: Float[Tensor, "R n"], eta: float, rho: Tensor | None = None
    ) -> None:
        """One step of gradient descent on the mean logistic loss and the regulariser."""
        for r in range(len(self.w)):
            w, points = self.w[r], _replica(x, r)
            point, neuron, value, slope = self._entries(points, r, rho)
            f = self.kernels.sums(y.shape[1], point, value)
            pull = torch.sigmoid(-y[r] * f).mul_(y[r]).mul_(eta / len(f))
            self._shrink(w, r, eta * self.schedule.decay)
            self._add(w, points, point, neuron, self.kernels.weigh(slope, pull, point))
        self.b = self.schedule.grown(self.b, eta, self.w.shape[-1])

    def outputs(self, x: Points, rho: Tensor | None = None) -> Float[Tensor, "R n"]:
        rows = []
        for r in range(len(self.w)):
            points = _replica(x, r)
            point, _, value, _ = self._entries(points, r, rho)
            rows.append(self.kernels.sums(_count(points), point, value))
        return torch.stack(rows)

    def input_gradient(self, x: Points) -> Float[Tensor, "R n d"]:
        """sum_i G_i w_i."""
        rows = []
        for r, w in enumerate(self.w):
            points = _replica(x, r)
            point, neuron, _, slope = self._entries(points, r, None)
            g = w.new_zeros(_count(points), w.shape[1])
            if len(point) > DENSE * len(g) * len(w):
                g = _spread(point, neuron, slope, len(g), len(w)) @ w
            else:
                self.kernels.dense_scatter(g, w, point, neuron, slope)
            rows.append(g)
        return torch.stack(rows)

    def one(self, r: int) -> SymmetricGemm:
        """Replica r alone."""
        if len(self.w) == 1:
            return self
        matrix = None if self.dictionary is None else self.dictionary[[r]]
        params = {"w": self.w[[r]], "b": self.b[[r]]}
        return SymmetricGemm(params, self.schedule, self.reach, matrix)

    def activity(self, x: Points) -> Float[Tensor, "R m"]:
        """Share of the points with |<w_i, x>| >= b, for each neuron."""
        rows = []
        for r, w in enumerate(self.w):
            points = _replica(x, r)
            _, neuron, _, slope = self._entries(points, r, None)
            on = torch.bincount(neuron[slope >= 0.5], minlength=len(w))
            rows.append(on.to(w) / _count(points))
        return torch.stack(rows)

    def response(self, x: Points, weight: Float[Tensor, "R n"]) -> Float[Tensor, "R m d"]:
        """mean over the points of weight G_i(x) x, for each neuron."""
        total = torch.zeros_like(self.w)
        for r in range(len(self.w)):
            points = _replica(x, r)
            point, neuron, _, slope = self._entries(points, r, None)
            share = weight[r] / _count(points)
            self._add(total[r], points, point, neuron, slope.mul_(share[point]))
        return total

    def params(self) -> Params:
        return {"w": self.w.clone(), "b": self.b}

    def state(self) -> Params:
        """What must be saved to go on later, bit for bit."""
        return self.params()

    def restore(self, state: Params) -> None:
        self.w = state["w"].detach().clone(memory_format=torch.contiguous_format)
        self.b = state["b"].detach().double().clone()

    def _shrink(self, w: Float[Tensor, "m d"], r: int, amount: float) -> None:
        """w -= amount (gradient of Reg)."""
        if self.schedule.cubic == "l2":
            shrink = torch.linalg.vector_norm(w, dim=1, keepdim=True).add_(1)
            w.mul_(shrink.mul_(-amount).add_(1))
        elif self.dictionary is None:
            w.mul_(w.abs().add_(1).mul_(-amount).add_(1))
        else:
            m = self.dictionary[r]
            v = w @ m.T
            w.mul_(1 - amount).sub_((v.abs() * v) @ m, alpha=amount)

    def _entries(
        self, x: Float[Tensor, "n d"] | SparseRows, r: int, rho: Tensor | None
    ) -> tuple[Int[Tensor, " A"], Int[Tensor, " A"], Float[Tensor, " A"], Float[Tensor, " A"]]:
        """Point, neuron, R(s) - R(-s) and G of the entries that are on."""
        b, w = float(self.b[r]), self.w[r]
        sigma = self.schedule.sigma(b)
        # Of given noise only what lies within this of b can switch an entry on.
        edge = b - self.reach * sigma if rho is None else b - float(rho[r].amax())
        if isinstance(x, SparseRows):
            point, neuron, s = self.kernels.sparse_select(x, w, edge)
        else:
            s = product(x[None], w.T[None], x.new_empty(1, len(x), len(w)))[0]
            point, neuron, s = self.kernels.dense_select(s, edge)
        if rho is not None:
            value, slope = _drawn(s, b - rho[r, point, neuron])
        elif sigma == 0:
            value, slope = s - b * s.sign(), torch.ones_like(s)
        else:
            value, slope = _smoothed(s, b, sigma, self.reach)
        return point, neuron, value, slope

    def _add(
        self,
        w: Float[Tensor, "m d"],
        x: Float[Tensor, "n d"] | SparseRows,
        point: Tensor,
        neuron: Tensor,
        value: Tensor,
    ) -> None:
        """w_i += sum of value x over the entries."""
        if isinstance(x, SparseRows):
            self.kernels.sparse_scatter(w, x, point, neuron, value)
        elif len(point) > DENSE * len(x) * len(w):
            w += _spread(neuron, point, value, len(w), len(x)) @ x
        else:
            self.kernels.dense_scatter(w, x, neuron, point, value)


def regulariser(w: Float[Tensor, "R m d"], cubic: Cubic) -> Float[Tensor, "R m"]:
    """Reg(w_i) = |w_i|^2/2 + |w_i|_q^3/3 of weights in input space, q = 2 or 3."""
    squares = (w * w).sum(-1)
    cubes = squares**1.5 if cubic == "l2" else w.abs().pow(3).sum(-1)
    return squares / 2 + cubes / 3


def _smoothed(s: Tensor, b: float, sigma: float, reach: float) -> tuple[Tensor, Tensor]:
    """R(s) - R(-s) and G, in parts that stay in the second-level cache."""
    value, slope = torch.empty_like(s), torch.empty_like(s)
    for part, v, g in zip(*(whole.split(PART) for whole in (s, value, slope)), strict=True):
        size = part.abs()
        _branch(size - b, sigma, v, g)
        # The second branch only where it is in reach.
        if b < reach * sigma:
            other, steep = torch.empty_like(v), torch.empty_like(g)
            _branch(-size - b, sigma, other, steep)
            v.sub_(other)
            g.add_(steep)
        v.copysign_(part)
    return value, slope


def _branch(u: Tensor, sigma: float, value: Tensor, slope: Tensor) -> None:
    """u Phi(u/sigma) + sigma phi(u/sigma) and Phi(u/sigma)."""
    torch.special.ndtr(u / sigma, out=slope)
    bell = (u * u).mul_(-0.5 / sigma**2).exp_().mul_(sigma / math.sqrt(2 * math.pi))
    torch.mul(u, slope, out=value).add_(bell)


def _drawn(s: Tensor, shift: Tensor) -> tuple[Tensor, Tensor]:
    """relu(s - shift) - relu(-s - shift) and its slope."""
    up, down = s - shift, -s - shift
    return up.relu() - down.relu(), (up >= 0).to(s) + (down >= 0).to(s)


def _spread(row: Tensor, column: Tensor, value: Tensor, rows: int, columns: int) -> Tensor:
    """The entries as a dense matrix."""
    out = value.new_zeros(rows, columns)
    out[row, column] = value
    return out


def _replica(x: Points, r: int) -> Float[Tensor, "n d"] | SparseRows:
    return x.one(r) if isinstance(x, SparseRows) else x[r]


def _count(x: Float[Tensor, "n d"] | SparseRows) -> int:
    return x.points if isinstance(x, SparseRows) else len(x)
