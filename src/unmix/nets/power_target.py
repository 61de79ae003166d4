"""A pReLU classifier of one replica as attacks ask for it: scores, and slopes pulled to the pixels.

With x^ = x_c/|x_c|, cos_j = relu(<x^, u_j>), q = |w| v and D = q (slopes of the scores), by hand:

    d/dx = |x_c|^(s-1) [ sum_j p cos_j^(p-1) D_j u_j + (s - p) (sum_j D_j cos_j^p) x^ ]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

Rows = Float[Tensor, "P d"]
Scores = Float[Tensor, "P C"]
Cosines = Float[Tensor, "P h"]
Lowered = Callable[[Tensor], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class PowerTarget:
    """Weights w [h d] and v [h C], biases [C] and centre [d]; degree is s."""

    w: Float[Tensor, "h d"]
    v: Float[Tensor, "h C"]
    b: Float[Tensor, " C"]
    centre: Float[Tensor, " d"]
    p: float
    degree: float

    @cached_property
    def u(self) -> Float[Tensor, "h d"]:
        """Unit weights; 0 for a neuron of length 0."""
        return self.w / self._norms

    @cached_property
    def q(self) -> Float[Tensor, "h C"]:
        """|w| v."""
        return self._norms * self.v

    @property
    def dtype(self) -> torch.dtype:
        return self.w.dtype

    def scores(self, x: Rows) -> Scores:
        direction, length = self._prepared(x)
        return self._scores(self._cosines(direction), length)

    def pull(self, x: Rows, lowered: Lowered) -> tuple[Scores, Tensor, Rows]:
        """Scores, the value of `lowered` and its gradient with respect to x."""
        direction, length = self._prepared(x)
        cosine = self._cosines(direction)
        scores = self._scores(cosine, length)
        value, slopes = lowered(scores)
        back = slopes @ self.q.T
        if self.p == 1:
            steep = back * (cosine > 0)
        else:
            steep = back.mul_(cosine ** (self.p - 1)).mul_(self.p)
        gradient = steep @ self.u
        if self.degree != self.p:
            # sum_j D_j cos_j^p, from what is there already.
            radial = (steep * cosine).sum(1, keepdim=True) * ((self.degree - self.p) / self.p)
            gradient.addcmul_(radial, direction)
        if self.degree != 1:
            gradient.mul_(length ** (self.degree - 1))
        return scores, value, gradient

    def double(self) -> PowerTarget:
        parts = (self.w.double(), self.v.double(), self.b.double(), self.centre.double())
        return PowerTarget(*parts, self.p, self.degree)

    @property
    def _norms(self) -> Float[Tensor, "h 1"]:
        return self.w.norm(dim=1, keepdim=True).clamp_min(torch.finfo(self.w.dtype).tiny)

    def _prepared(self, x: Rows) -> tuple[Rows, Float[Tensor, "P 1"]]:
        centred = x - self.centre
        length = centred.norm(dim=1, keepdim=True).clamp_min(torch.finfo(x.dtype).tiny)
        return centred.div_(length), length

    def _cosines(self, direction: Rows) -> Cosines:
        return (direction @ self.u.T).clamp_min_(0)

    def _scores(self, cosine: Cosines, length: Float[Tensor, "P 1"]) -> Scores:
        risen = cosine if self.p == 1 else cosine**self.p
        return (risen @ self.q).mul_(length**self.degree).add_(self.b)
