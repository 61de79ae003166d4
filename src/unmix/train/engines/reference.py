"""The reference engine: plain autograd, one line a formula. Slow and obviously right."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from unmix.nets.base import Params
from unmix.train.engines.base import Problem, masked, per_replica


class Reference:
    """Gradient descent by automatic differentiation."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        x = problem.x.whole()
        self.x = x.repeat_interleave(problem.params["w"].shape[0] // x.shape[0], 0)
        self.restore(problem.params)

    def forward(self, rows: Int[Tensor, "S b"] | None = None) -> Float[Tensor, "R n C"]:
        p, x, targets = self.current, self.x, self.problem.targets
        if rows is not None:
            mine = per_replica(rows, len(x))
            x = x.gather(1, mine.unsqueeze(-1).expand(-1, -1, x.shape[2]))
            targets = targets.gather(1, mine)
        z = p["w"] @ x.transpose(1, 2)
        z = z + p["b"].unsqueeze(-1) if "b" in p else z
        extras = {name: p[name] for name in self.problem.top.extras}
        norms = p["w"].norm(dim=-1)
        outputs = self.problem.top.outputs(z, norms, extras).transpose(1, 2)
        self.objective = self.problem.loss.reduced(outputs, targets).sum()
        return outputs.detach()

    def advance(self, alive: Bool[Tensor, " R"] | None = None) -> None:
        """theta <- theta - eta grad L, for the replicas that are still alive."""
        grads = torch.autograd.grad(self.objective, list(self.current.values()))
        moved = {}
        for (name, p), grad in zip(self.current.items(), grads, strict=True):
            column = [-1] + [1] * (p.ndim - 1)
            step = self.problem.eta.reshape(column) * grad
            moved[name] = p - masked(step, alive)
        self.restore(moved)

    def z(self) -> Float[Tensor, "R n M"]:
        z = self.x @ self.current["w"].transpose(1, 2)
        return (z + self.current["b"].unsqueeze(1) if "b" in self.current else z).detach()

    def params(self) -> Params:
        return {name: p.detach().clone() for name, p in self.current.items()}

    def state(self) -> Params:
        return self.params()

    def restore(self, state: Params) -> None:
        self.current = {name: p.detach().clone().requires_grad_() for name, p in state.items()}
