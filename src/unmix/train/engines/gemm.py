"""The GEMM engine: gradients by hand, two matrix products a step, no autograd graph.

    Z = W X^T + b,     g = eta dL/dZ,     W <- (1 - shrink) W - g X,     b <- b - g 1

Neurons before points, [R M n]: with few neurons and many points, W X^T runs at twice the speed of
X W^T. Everything is written into buffers made once; parameters move in place.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from unmix.nets.base import Params
from unmix.train.engines.base import Problem, masked, over_sets
from unmix.train.engines.product import product


class Gemm:
    """The same steps as `Reference`, to rounding."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.x = problem, problem.x.whole()
        self.sets, self.points = self.x.shape[:2]
        self.buffers: dict[int, tuple[Tensor, Tensor]] = {}
        self.move = torch.empty_like(problem.params["w"])
        self.rows: Int[Tensor, "S b"] | None = None
        self.restore(problem.params)

    def forward(self, rows: Int[Tensor, "S b"] | None = None) -> Float[Tensor, "R n C"]:
        """Outputs; the points of a mini-batch are gathered first."""
        self.fresh = True
        self.rows, self.seen = rows, self.x if rows is None else _gathered(self.x, rows)
        room, self.work = self._buffers(self.seen.shape[1])
        self.now = self._multiply(self.seen, room)
        self.norms = self._norms()
        top = self.problem.top
        self.out = top.forward(self.now, self.norms, self._extras(), self.work)
        return self.out.transpose(1, 2)

    def advance(self, alive: Bool[Tensor, " R"] | None = None) -> None:
        """One step from the last `forward`."""
        w, self.fresh = self.current["w"], False
        slopes = masked(self.problem.slopes(self.out, self.rows), alive)
        pull = self.problem.top.pull(slopes, self.now, self.norms, self._extras(), self.work)
        g = masked(pull.g, alive)
        if pull.shrink is not None:
            w.mul_((1 - masked(pull.shrink, alive)).unsqueeze(-1))
        move = product(over_sets(g, self.sets), self.seen, over_sets(self.move, self.sets))
        over_sets(w, self.sets).sub_(move)
        if "b" in self.current:
            self.current["b"].sub_(g.sum(2))
        for name, move in pull.moves.items():
            self.current[name].sub_(masked(move, alive))

    def z(self) -> Float[Tensor, "R n M"]:
        if self.fresh and self.rows is None:
            return self.now.transpose(1, 2)
        w = self.current["w"]
        return self._multiply(self.x, w.new_empty(*w.shape[:2], self.points)).transpose(1, 2)

    def params(self) -> Params:
        return {name: p.clone() for name, p in self.current.items()}

    def state(self) -> Params:
        return self.current

    def restore(self, state: Params) -> None:
        self.current = {name: p.clone() for name, p in state.items()}
        self.fresh = False

    def _multiply(self, x: Float[Tensor, "S n d"], out: Tensor) -> Float[Tensor, "R M n"]:
        """W X^T + b, perhaps in `out`."""
        w = self.current["w"]
        z = product(over_sets(w, self.sets), x.mT, over_sets(out, self.sets))
        z = z.reshape(*w.shape[:2], x.shape[1])
        return z.add_(self.current["b"].unsqueeze(-1)) if "b" in self.current else z

    def _norms(self) -> Float[Tensor, "R M"]:
        w = self.current["w"]
        return torch.linalg.vector_norm(w, dim=-1) if self.problem.top.normed else w[..., 0]

    def _extras(self) -> Params:
        return {name: self.current[name] for name in self.problem.top.extras}

    def _buffers(self, points: int) -> tuple[Tensor, Tensor]:
        if points not in self.buffers:
            w = self.current["w"]
            shape = (*w.shape[:2], points)
            self.buffers[points] = (w.new_empty(shape), w.new_empty(shape))
        return self.buffers[points]


def _gathered(x: Float[Tensor, "S n d"], rows: Int[Tensor, "S b"]) -> Float[Tensor, "S b d"]:
    if len(x) == 1:
        return x[:, rows[0]]
    return torch.stack([points[mine] for points, mine in zip(x, rows, strict=True)])
