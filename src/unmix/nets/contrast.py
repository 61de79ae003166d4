"""Learners of low complexity, to stand beside the symmetric net (feature purification, 3, 5.2).

    code-linear       p(x) = <v, x>
    code-polynomial   p(x) = <a, x> + sum_i <u_i, x>^3,   i <= q: odd polynomials of degree 3
    code-tangent      p(x) = sum_i <v_i, x> E_rho (1[<w_i,x> + rho >= b] +- 1[-<w_i,x> + rho >= b])

with w_i ~ N(0, I) fixed in the last, the tangent kernel of the symmetric net (Def 5.5). The printed
minus makes x times the bracket even, so that p(x) = p(-x) while labels are odd; the gradient of the
net (Fact A.1) has the plus. Both are here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from unmix.data.base import Batch
from unmix.data.sparse_code import SparseCode
from unmix.data.sparse_rows import SparseRows
from unmix.nets.base import Network, Params
from unmix.streams import normals


class Contrast(Network):
    """A function of x and parameters; a member says which of them are learned."""

    takes = (SparseCode,)
    learned: ClassVar[tuple[str, ...]] = ("v",)

    @abstractmethod
    def value(self, params: Params, x: Float[Tensor, "R n d"]) -> Float[Tensor, "R n"]:
        """p(x)."""

    def classifier(self, data: SparseCode, params: Params) -> ContrastModel:
        return ContrastModel(self, params)


class CodeLinear(Contrast):
    """The linear learner, from v = 0."""

    kind: Literal["code-linear"] = "code-linear"

    def neurons(self, data: SparseCode) -> int:
        return 1

    def start(self, data: SparseCode, seeds: Sequence[int], batch: Batch) -> Params:
        return {"v": batch.x.new_zeros(len(seeds), data.d)}

    def value(self, params: Params, x: Float[Tensor, "R n d"]) -> Float[Tensor, "R n"]:
        return (x @ params["v"].unsqueeze(-1))[..., 0]


class CodePolynomial(Contrast):
    """A linear part and q cubes of linear functions, all learned."""

    kind: Literal["code-polynomial"] = "code-polynomial"
    q: int = Field(100, ge=1, description="number of cubes; enough of them give every odd cubic")
    scale: float = Field(0.1, gt=0, description="standard deviation of u at the start")

    learned = ("a", "u")

    def neurons(self, data: SparseCode) -> int:
        return self.q

    def start(self, data: SparseCode, seeds: Sequence[int], batch: Batch) -> Params:
        drawn = self.scale * normals(seeds, "init.w", (self.q, data.d), torch.float64)
        return {"a": batch.x.new_zeros(len(seeds), data.d), "u": drawn.to(batch.x.dtype)}

    def value(self, params: Params, x: Float[Tensor, "R n d"]) -> Float[Tensor, "R n"]:
        cubes = (x @ params["u"].transpose(1, 2)) ** 3
        return (x @ params["a"].unsqueeze(-1))[..., 0] + cubes.sum(-1)


class CodeTangent(Contrast):
    """The neural tangent kernel with m random neurons (Def 5.5); v is learned from 0."""

    kind: Literal["code-tangent"] = "code-tangent"
    m: int = Field(200, ge=1)
    b: float = Field(1.0, ge=0)
    sigma: float = Field(0.3, gt=0, description="sigma_rho")
    sign: Literal["plus", "minus"] = Field("plus", description="the gradient's, or as printed")

    def neurons(self, data: SparseCode) -> int:
        return self.m

    def start(self, data: SparseCode, seeds: Sequence[int], batch: Batch) -> Params:
        w = normals(seeds, "init.w", (self.m, data.d), torch.float64).to(batch.x.dtype)
        return {"v": torch.zeros_like(w), "w": w}

    def value(self, params: Params, x: Float[Tensor, "R n d"]) -> Float[Tensor, "R n"]:
        s = x @ params["w"].transpose(1, 2)
        up, down = (torch.special.ndtr((t - self.b) / self.sigma) for t in (s, -s))
        on = up + down if self.sign == "plus" else up - down
        # sum_i <v_i, x> H_i = <H v, x>: no [n m] product with v is formed.
        return ((on @ params["v"]) * x).sum(-1)


@dataclass(frozen=True)
class ContrastModel:
    """A learner with parameters."""

    net: Contrast
    params: Params

    def double(self) -> ContrastModel:
        return ContrastModel(self.net, {name: p.double() for name, p in self.params.items()})

    def decision(self, x: Float[Tensor, "R n d"]) -> Float[Tensor, "R n"]:
        return self.net.value(self.params, x)

    def predict(self, x: Float[Tensor, "R n d"]) -> Float[Tensor, "R n"]:
        p = self.decision(x)
        return torch.where(p >= 0, torch.ones_like(p), -torch.ones_like(p))

    def accuracy(self, batch: Batch) -> Float[Tensor, " R"]:
        return (self.predict(batch.x) == batch.y).double().mean(1)

    def outputs(self, x: Float[Tensor, "R n d"] | SparseRows) -> Float[Tensor, "R n"]:
        """What a perturbation of training asks for."""
        with torch.no_grad():
            return self.decision(x.dense() if isinstance(x, SparseRows) else x)

    def input_gradient(self, x: Float[Tensor, "R n d"] | SparseRows) -> Float[Tensor, "R n d"]:
        """dp/dx."""
        with torch.enable_grad():
            points = x.dense() if isinstance(x, SparseRows) else x
            at = points.detach().requires_grad_()
            (g,) = torch.autograd.grad(self.decision(at).sum(), at)
        return g

    def one(self, r: int) -> ContrastModel:
        """Replica r alone."""
        return ContrastModel(self.net, {n: p[r : r + 1] for n, p in self.params.items()})

    def target(self) -> ContrastTarget:
        """The first replica as attacks see it."""
        return ContrastTarget(self.one(0))


@dataclass(frozen=True)
class ContrastTarget:
    """One learner, its scores (-p/2, p/2) and their slopes by autograd."""

    model: ContrastModel

    @property
    def dtype(self) -> torch.dtype:
        return next(iter(self.model.params.values())).dtype

    def scores(self, x: Float[Tensor, "P d"]) -> Float[Tensor, "P 2"]:
        p = self.model.outputs(x.unsqueeze(0))[0]
        return torch.stack([-p / 2, p / 2], 1)

    def pull(
        self, x: Float[Tensor, "P d"], lowered: Callable[[Tensor], tuple[Tensor, Tensor]]
    ) -> tuple[Float[Tensor, "P 2"], Tensor, Float[Tensor, "P d"]]:
        """Scores, an objective of them, and its gradient in x."""
        scores = self.scores(x)
        objective, slopes = lowered(scores)
        along = (slopes[:, 1] - slopes[:, 0]) / 2
        gradient = self.model.input_gradient(x.unsqueeze(0))[0]
        return scores, objective, along.unsqueeze(1) * gradient

    def double(self) -> ContrastTarget:
        return ContrastTarget(self.model.double())
