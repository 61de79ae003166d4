"""Gradients of a pReLU net with several outputs by hand, on points that are prepared once.

With unit points x^, lengths l^s, N = |w|, c = relu(<x^, w>)/N, Phi = N c^p l^s (see
`nets.prelu_classes`) and g = dL/d outputs, D = l^s g V^T, S = (c^p)^T (l^s g):

    dL/dV = N S,   dL/db = sum_i g_i,
    dL/dw_j = sum_i p c_ij^(p-1) D_ij x^_i - (p-1) <V_j, S_j> u_j
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from unmix.nets.base import Params
from unmix.nets.prelu_classes import PowerClassifier
from unmix.nets.tops import power

# Rows of points whose features are held at once.
BLOCK = 5000


@dataclass(frozen=True)
class Points:
    """Prepared points of one data set: directions, |x_c|^s and classes."""

    direction: Float[Tensor, "n d"]
    weight: Float[Tensor, " n"]
    y: Int[Tensor, " n"]

    @classmethod
    def of(cls, net: PowerClassifier, x: Float[Tensor, "1 n d"], y: Int[Tensor, " n"]) -> Points:
        """As a single net sees them."""
        direction, length = net.prepare(x)
        return cls(direction[0], length[0] ** net.degree, y)

    def __len__(self) -> int:
        return len(self.y)


class Steps:
    """Losses, gradients and features of one replica; buffers are made once."""

    def __init__(self, p: float, params: Params, points: Points, size: int) -> None:
        self.p, self.params, self.points = p, params, points
        w = params["w"]
        self.x, self.c = w.new_empty(size, w.shape[1]), w.new_empty(size, w.shape[0])

    def gradient(self, rows: Int[Tensor, " n"]) -> tuple[Tensor, Params]:
        """Mean loss on some points before the step, and dL/d parameters."""
        n = len(rows)
        v, points = self.params["v"], self.points
        x = torch.index_select(points.direction, 0, rows, out=self.x[:n])
        weight, y = points.weight[rows].unsqueeze(1), points.y[rows]
        c, norms = self._cosines(x, self.c[:n])
        steep = None if self.p == 1 else power(c, self.p - 1)
        risen = c if steep is None else steep * c
        outputs = (risen @ (norms.unsqueeze(1) * v)).mul_(weight).add_(self.params["b"])
        logp = outputs.log_softmax(1)
        loss = -logp.gather(1, y.unsqueeze(1)).mean()
        g = logp.exp_()
        g.scatter_add_(1, y.unsqueeze(1), g.new_full((n, 1), -1.0)).div_(n)
        moves = {"b": g.sum(0)}
        g.mul_(weight)
        seen = risen.t() @ g
        moves["v"] = norms.unsqueeze(1) * seen
        pull = g @ v.t()
        if steep is None:
            # c is the activation itself here, so c > 0 is where the neuron is on.
            moves["w"] = pull.mul_(c > 0).t() @ x
            return loss, moves
        moves["w"] = pull.mul_(steep).mul_(self.p).t() @ x
        shrink = (self.p - 1) * (v * seen).sum(1) / norms
        moves["w"].addcmul_(self.params["w"], shrink.unsqueeze(1), value=-1)
        return loss, moves

    def look(self, points: Points) -> tuple[float, float, Float[Tensor, "h h"]]:
        """Mean loss, accuracy and Phi^T Phi over many points."""
        h = self.params["w"].shape[0]
        loss = right = 0.0
        gram = self.params["w"].new_zeros(h, h)
        for first in range(0, len(points), BLOCK):
            rows = slice(first, first + BLOCK)
            phi, y = self._features(points, rows), points.y[rows]
            outputs = phi @ self.params["v"] + self.params["b"]
            loss += float(torch.nn.functional.cross_entropy(outputs, y, reduction="sum"))
            right += float((outputs.argmax(1) == y).sum())
            gram.addmm_(phi.t(), phi)
        return loss / len(points), right / len(points), gram

    def _features(self, points: Points, rows: slice) -> Float[Tensor, "n h"]:
        x = points.direction[rows]
        c, norms = self._cosines(x, x.new_empty(len(x), self.params["w"].shape[0]))
        phi = c if self.p == 1 else power(c, self.p)
        return phi.mul_(norms).mul_(points.weight[rows].unsqueeze(1))

    def _cosines(self, x: Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
        """c and N; for p = 1 c is left undivided, and N is 1."""
        w = self.params["w"]
        c = torch.mm(x, w.t(), out=out).clamp_min_(0)
        if self.p == 1:
            return c, w.new_ones(len(w))
        norms = torch.linalg.vector_norm(w, dim=1).clamp_min_(torch.finfo(w.dtype).tiny)
        return c.div_(norms), norms


class PlainSteps(Steps):
    """The same by the definition and automatic differentiation."""

    def gradient(self, rows: Int[Tensor, " n"]) -> tuple[Tensor, Params]:
        leaves = {
            name: self.params[name].detach().clone().requires_grad_() for name in ("w", "v", "b")
        }
        points = self.points
        norms = leaves["w"].norm(dim=1).clamp_min(torch.finfo(leaves["w"].dtype).tiny)
        a = (points.direction[rows] @ leaves["w"].t()).relu()
        phi = norms * (a / norms) ** self.p * points.weight[rows].unsqueeze(1)
        outputs = phi @ leaves["v"] + leaves["b"]
        loss = torch.nn.functional.cross_entropy(outputs, points.y[rows])
        grads = torch.autograd.grad(loss, list(leaves.values()))
        return loss.detach(), dict(zip(leaves, grads, strict=True))


ENGINES: dict[str, type[Steps]] = {"hand": Steps, "reference": PlainSteps}


def stable_rank(gram: Float[Tensor, "h h"]) -> float:
    """|A|_F^2 / |A|^2 of a matrix A, from A^T A."""
    if not gram.isfinite().all():
        return math.nan
    trace = gram.diagonal().double().sum()
    largest = torch.linalg.eigvalsh(gram.double())[-1]
    return float(trace / largest) if largest > 0 else 0.0
