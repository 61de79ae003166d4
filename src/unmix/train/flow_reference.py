"""The flow's plain reference: explicit Euler on (w, v), which is gradient descent with a tiny rate.

    theta <- theta - step dL/dtheta,     dL/dtheta by automatic differentiation of eq (1)

Slow, and exact only as step -> 0; `GradientFlow` is what it is compared with at equal flow time.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from unmix.nets.base import Params
from unmix.train.losses import BinaryLoss, losses


def prelu(
    w: Float[Tensor, "R h d"], v: Float[Tensor, "R h"], x: Float[Tensor, "R n d"], p: float
) -> Float[Tensor, "R n"]:
    """f_p(x) = sum_j v_j a_j (a_j/|w_j|)^(p-1), a = relu(<x, w>); the norm is differentiated."""
    a = (x @ w.transpose(1, 2)).relu()
    cosine = a / w.norm(dim=-1).unsqueeze(1)
    # A power below 1 has no derivative at 0; where a = 0 any factor will do.
    power = torch.where(a > 0, cosine, torch.ones_like(a)) ** (p - 1)
    return torch.einsum("rnh,rh->rn", a * power, v)


def euler(
    params: Params,
    x: Float[Tensor, "R n d"],
    y: Float[Tensor, "R n"],
    p: float,
    loss: BinaryLoss,
    *,
    time: float,
    steps: int,
) -> Params:
    """`steps` steps of length time/steps on the mean loss."""
    now = {name: value.clone().requires_grad_() for name, value in params.items()}
    for _ in range(steps):
        outputs = prelu(now["w"], now["v"], x, p).unsqueeze(-1)
        total = losses(outputs, y, loss).mean(1).sum()
        grads = torch.autograd.grad(total, list(now.values()))
        with torch.no_grad():
            for value, grad in zip(now.values(), grads, strict=True):
                value -= time / steps * grad
    return {name: value.detach() for name, value in now.items()}
