"""The symmetric net's steps by autograd on its formula: what the engine is tested beside."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from unmix.nets.activations import GaussianRelu
from unmix.nets.base import Params
from unmix.perturbations.base import Points, dense
from unmix.train.engines.symmetric import Schedule, regulariser
from unmix.train.losses import losses


class SymmetricReference:
    """Plain autograd on the two-sided formula. Slow and obviously right."""

    def __init__(self, params: Params, schedule: Schedule) -> None:
        self.schedule, self.w, self.b = schedule, params["w"], params["b"]
        self.restore(params)

    def step(
        self, x: Points, y: Float[Tensor, "R n"], eta: float, rho: Tensor | None = None
    ) -> None:
        """One step of gradient descent on the mean logistic loss and the regulariser."""
        w = self.w.clone().requires_grad_()
        outputs = self._outputs(dense(x), w, rho).unsqueeze(-1)
        loss = losses(outputs, y).mean(1).sum()
        penalty = self.schedule.decay * regulariser(w, self.schedule.cubic).sum()
        (g,) = torch.autograd.grad(loss + penalty, w)
        self.w = self.w - eta * g
        self.b = self.schedule.grown(self.b, eta, w.shape[-1])

    def outputs(self, x: Points, rho: Tensor | None = None) -> Float[Tensor, "R n"]:
        return self._outputs(dense(x), self.w, rho)

    def input_gradient(self, x: Points) -> Float[Tensor, "R n d"]:
        at = dense(x).clone().requires_grad_()
        (g,) = torch.autograd.grad(self._outputs(at, self.w, None).sum(), at)
        return g

    def params(self) -> Params:
        return {"w": self.w, "b": self.b}

    def state(self) -> Params:
        return self.params()

    def restore(self, state: Params) -> None:
        self.w, self.b = state["w"].detach().clone(), state["b"].detach().double().clone()

    def _outputs(self, x: Tensor, w: Tensor, rho: Tensor | None) -> Float[Tensor, "R n"]:
        s = x @ w.transpose(1, 2)
        if rho is not None:
            shift = self.b.to(s)[:, None, None] - rho
            up, down = s - shift, -s - shift
            zero = torch.zeros_like(s)
            # Slope 1 at 0, which torch's relu would not give.
            return (torch.where(up >= 0, up, zero) - torch.where(down >= 0, down, zero)).sum(-1)
        pairs = zip(s, self.b.tolist(), strict=True)
        return torch.stack([self._smoothed(row, b).sum(-1) for row, b in pairs])

    def _smoothed(self, s: Float[Tensor, "n m"], b: float) -> Float[Tensor, "n m"]:
        """R(s) - R(-s)."""
        sigma = self.schedule.sigma(b)
        if sigma == 0:
            # Slope 1 where |s| >= b, which two relus with a slope at 0 would not give for b = 0.
            return torch.where(s.abs() >= b, s - b * s.sign(), torch.zeros_like(s))
        relu = GaussianRelu(sigma)
        return relu.value(s - b) - relu.value(-s - b)
