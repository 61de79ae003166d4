"""The Gram engine: exact gradient descent in coefficient space.

The weights stay in span(W0, X): w_j = s_j w0_j + C_j X and b_j = b0_j + C_j 1, so

    Z = s Z0 + C K,   K = X X^T (+ 1 1^T if the net has biases),   C <- (1 - shrink) C - eta dL/dZ,
    |w_j|^2 = s_j^2 |w0_j|^2 + <C_j, s_j Z0_j + Z_j>.

A step costs M n^2 instead of 2 M n d, whatever d is, and the data enter once, by blocks of columns.
C is the paper's decomposition: sigma_i = |xi_i|^2 C_i (feature averaging, Lemma 5.1).
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from unmix.errors import SpecError
from unmix.nets.base import Params
from unmix.train.engines.base import Problem, masked, over_sets, per_replica
from unmix.train.engines.product import gram, product


class Gram:
    """The same steps as `Reference`, to rounding."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.start = problem, problem.params
        self.sets, self.points, _ = problem.x.shape
        if "b" in self.start and problem.top.normed:
            hint = "train with train.engine=gemm"
            raise SpecError("coefficient space keeps no norms of neurons with biases", hint)
        self.kernel, self.z0 = self._products()
        # Without a second W on the way, which in many dimensions is the largest thing here.
        self.squares = torch.linalg.vector_norm(self.start["w"], dim=-1).square()
        self.room, self.work = torch.empty_like(self.z0), torch.empty_like(self.z0)
        self.rows: Int[Tensor, "S b"] | None = None
        still = {"c": torch.zeros_like(self.z0), "s": torch.ones_like(self.squares)}
        self.restore(still | problem.extras)

    def forward(self, rows: Int[Tensor, "S b"] | None = None) -> Float[Tensor, "R n C"]:
        """Outputs; a mini-batch needs the rows of K that belong to it only."""
        self.rows, self.fresh, top = rows, True, self.problem.top
        if rows is None or top.normed:
            self._preactivations()
        self.norms = self._norms()
        if rows is None:
            self.now, work = self.z_all, self.work
        else:
            self.now = self._at(rows)
            work = torch.empty_like(self.now)
        self.scratch = work
        self.out = top.forward(self.now, self.norms, self._extras(), work)
        return self.out.transpose(1, 2)

    def advance(self, alive: Bool[Tensor, " R"] | None = None) -> None:
        """One step from the last `forward`."""
        c, self.fresh = self.current["c"], False
        slopes = masked(self.problem.slopes(self.out, self.rows), alive)
        pull = self.problem.top.pull(slopes, self.now, self.norms, self._extras(), self.scratch)
        if pull.shrink is not None:
            keep = 1 - masked(pull.shrink, alive)
            c.mul_(keep.unsqueeze(-1))
            self.current["s"].mul_(keep)
        g = masked(pull.g, alive)
        if self.rows is None:
            c.sub_(g)
        else:
            rows = per_replica(self.rows, len(c))
            c.scatter_add_(2, rows.unsqueeze(1).expand_as(g), g.neg())
        for name, move in pull.moves.items():
            self.current[name].sub_(masked(move, alive))

    def z(self) -> Float[Tensor, "R n M"]:
        if not (self.fresh and self.rows is None):
            self._preactivations()
        return self.z_all.transpose(1, 2)

    def params(self) -> Params:
        c, w = self.current["c"], self.start["w"] * self.current["s"].unsqueeze(-1)
        for columns, block in self.problem.x.blocks():
            over_sets(w[:, :, columns], self.sets).baddbmm_(over_sets(c, self.sets), block)
        params = {"w": w} | {name: p.clone() for name, p in self._extras().items()}
        if "b" in self.start:
            params["b"] = self.start["b"] + c.sum(2)
        return {name: params[name] for name in self.start}

    def state(self) -> Params:
        return self.current

    def restore(self, state: Params) -> None:
        self.current = {name: p.clone() for name, p in state.items()}
        self.fresh = False

    def _products(self) -> tuple[Float[Tensor, "S n n"], Float[Tensor, "R M n"]]:
        """K and Z0, in one pass over the columns of X."""
        w, first = self.start["w"], True
        kernel = w.new_empty(self.sets, self.points, self.points)
        z0 = w.new_zeros(*w.shape[:2], self.points)
        for columns, block in self.problem.x.blocks():
            # The fastest product has no sum on top; one block is what there mostly is.
            kernel = gram(block, kernel) if first else kernel.baddbmm_(block, block.mT)
            first = False
            over_sets(z0, self.sets).baddbmm_(over_sets(w[:, :, columns], self.sets), block.mT)
        if "b" in self.start:
            kernel += 1
            z0 += self.start["b"].unsqueeze(-1)
        return kernel, z0

    def _preactivations(self) -> None:
        """Z of all points."""
        room, c = over_sets(self.room, self.sets), over_sets(self.current["c"], self.sets)
        # K is its own transpose, and faster to read as one.
        self.z_all = product(c, self.kernel.mT, room).reshape(self.z0.shape).add_(self._start())

    def _at(self, rows: Int[Tensor, "S b"]) -> Float[Tensor, "R M b"]:
        mine = per_replica(rows, len(self.z0)).unsqueeze(1).expand(-1, self.z0.shape[1], -1)
        if self.problem.top.normed:
            return self.z_all.gather(2, mine)
        z = self.z0.gather(2, mine)
        columns = torch.stack([k[r] for k, r in zip(self.kernel, rows, strict=True)]).mT
        over_sets(z, self.sets).baddbmm_(over_sets(self.current["c"], self.sets), columns)
        return z

    def _start(self) -> Float[Tensor, "R M n"]:
        """s Z0."""
        if not self.problem.top.normed:
            return self.z0
        return torch.mul(self.z0, self.current["s"].unsqueeze(-1), out=self.work)

    def _norms(self) -> Float[Tensor, "R M"]:
        """|w_j| from Z; a top that asks for none is given anything."""
        if not self.problem.top.normed:
            return self.squares
        c, s = self.current["c"], self.current["s"].unsqueeze(-1)
        across = torch.mul(self.z0, s, out=self.work).add_(self.z_all).mul_(c).sum(-1)
        return (self.squares * s[..., 0].square() + across).clamp_min(0).sqrt()

    def _extras(self) -> Params:
        return {name: self.current[name] for name in self.problem.top.extras}
