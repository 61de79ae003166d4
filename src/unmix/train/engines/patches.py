"""Training of the patch CNN (robust and non-robust features, section 2).

    F_i(X) = sum_{r<=m} sum_{p<=P} s(<w_ir, x_p>),    loss = mean cross-entropy of F

with s the smoothed ReLU, no bias and no second layer. Adversarial training attacks each point by
one step before each step of the weights; the attack is a constant (no gradient goes through it):

    G = grad_X L_margin,    X~ = X + clip(eta~ G),    W <- W - eta grad_W loss(X~)

`PatchReference` does this by autograd; `PatchGemm` by hand, to rounding. Their common interface:

    advance(alive)   one step of the replicas that are alive        undo(replicas)   take it back
    outputs()        F at the clean training points [R N k]         attacked()       X~ [R N P d]
    attacked_outputs()   F at X~ [R N k]
    params()         {"w": [R k m d]}                               state(), restore(state)
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor
from torch.nn import functional

from unmix.errors import SpecError
from unmix.nets.activations import SmoothedRelu
from unmix.nets.base import Params
from unmix.spec import Spec
from unmix.train.engines.product import product
from unmix.train.engines.smooth import smooth_for

# Replicas that share one pass have their buffers within about this many numbers (the L2 and L3
# caches hold them); more replicas go in several passes over the same buffers.
PASS = 1_500_000
# With this many multiplications in a product, a replica gains nothing from company.
LARGE = 2_000_000


class OneStep(Spec):
    """The one-step attack of adversarial training, with the readings that the text leaves open."""

    step: float = Field(1e3, gt=0, description="eta~, step of the attack")
    eps: float = Field(1.2, gt=0, description="radius of the clip")
    objective: Literal["Fy", "margin"] = Field(
        "Fy", description="L_margin: -F_y, or -(F_y - max_{j != y} F_j)"
    )
    clip: Literal["coord", "patch", "input"] = Field(
        "coord",
        description="clamp every coordinate; or shrink every patch, or the input, to the ball",
    )
    p: float | Literal["inf"] = Field("inf", description="norm of the ball; inf clamps by coord")
    reduction: Literal["sum", "mean"] = Field(
        "sum", description="G of the sum over the batch, or of its mean (1/N)"
    )

    def scale(self, points: int) -> float:
        """What multiplies the gradient of one point's L_margin."""
        return self.step / points if self.reduction == "mean" else self.step

    @model_validator(mode="after")
    def _a_ball(self) -> OneStep:
        if self.p != "inf" and (self.clip == "coord" or self.p < 1):
            raise ValueError("p: expected p >= 1, with clip=patch or clip=input where it is finite")
        return self

    def clipped(self, move: Float[Tensor, "*p d"], patches: int = 1) -> Float[Tensor, "*p d"]:
        """clip(move), in place; an input is `patches` rows."""
        if self.clip == "coord":
            return move.clamp_(-self.eps, self.eps)
        rows = patches if self.clip == "input" else 1
        whole = move.unflatten(-2, (-1, rows)).flatten(-2)
        length = torch.linalg.vector_norm(whole, float(self.p), -1, keepdim=True)
        return move.div_((length / self.eps).clamp_min_(1).repeat_interleave(rows, -2))


class PatchReference:
    """Plain autograd, one line a formula. Slow and obviously right."""

    def __init__(
        self,
        params: Params,
        x: Float[Tensor, "R N P d"],
        y: Int[Tensor, "R N"],
        activation: SmoothedRelu,
        eta: float,
        attack: OneStep | None = None,
    ) -> None:
        self.x, self.y, self.activation, self.eta, self.attack = x, y, activation, eta, attack
        self.previous = self.w = params["w"].detach().clone()

    def outputs(self) -> Float[Tensor, "R N k"]:
        return self._outputs(self.x, self.w)

    def attacked(self) -> Float[Tensor, "R N P d"]:
        if self.attack is None:
            return self.x
        step = self.attack.scale(self.x.shape[1]) * self.gradient(self.x)
        return self.x + self.attack.clipped(step, self.x.shape[2])

    def attacked_outputs(self) -> Float[Tensor, "R N k"]:
        return self._outputs(self.attacked(), self.w)

    def gradient(self, x: Float[Tensor, "R N P d"]) -> Float[Tensor, "R N P d"]:
        """grad_X L_margin."""
        x = x.clone().requires_grad_()
        f, own = self._outputs(x, self.w), self.y.unsqueeze(-1)
        margin = -f.gather(-1, own)
        if self.attack is not None and self.attack.objective == "margin":
            rival = f.detach().scatter(-1, own, -torch.inf).argmax(-1, keepdim=True)
            margin = margin + f.gather(-1, rival)
        (g,) = torch.autograd.grad(margin.sum(), x)
        return g

    def advance(self, alive: Bool[Tensor, " R"]) -> None:
        w = self.w.clone().requires_grad_()
        f = self._outputs(self.attacked(), w).transpose(1, 2)
        loss = functional.cross_entropy(f, self.y, reduction="none").mean(1).sum()
        (g,) = torch.autograd.grad(loss, w)
        self.previous = self.w
        self.w = torch.where(alive.reshape(-1, 1, 1, 1), self.w - self.eta * g, self.w)

    def undo(self, replicas: Bool[Tensor, " R"]) -> None:
        self.w = torch.where(replicas.reshape(-1, 1, 1, 1), self.previous, self.w)

    def params(self) -> Params:
        return {"w": self.w}

    def state(self) -> Params:
        return self.params()

    def restore(self, state: Params) -> None:
        self.previous = self.w = state["w"].detach().clone()

    def _outputs(
        self, x: Float[Tensor, "R N P d"], w: Float[Tensor, "R k m d"]
    ) -> Float[Tensor, "R N k"]:
        z = torch.einsum("rnpd,rkmd->rnkpm", x, w)
        return self.activation.value(z).sum((-1, -2))


class PatchGemm:
    """The same steps by hand.

    Points are sorted by class, so that the attack on -F_y touches the filters of one class only;
    a class has as many rows as in the replica that has most of it, and spare rows weigh nothing.
    Slopes are kept as rho^(q-1) s'(z), which is cheaper; small factors make up for it.
    """

    def __init__(
        self,
        params: Params,
        x: Float[Tensor, "R N P d"],
        y: Int[Tensor, "R N"],
        activation: SmoothedRelu,
        eta: float,
        attack: OneStep | None = None,
    ) -> None:
        self.smooth, self.eta, self.attack = smooth_for(activation, x), eta, attack
        self.unit = activation.rho ** (1 - activation.q)
        self.replicas, self.points, self.patches, d = x.shape
        _, self.k, self.m, _ = params["w"].shape
        if int(y.min()) < 0 or int(y.max()) >= self.k:
            raise SpecError(f"classes must lie in 0..{self.k - 1}, got {int(y.max())}")
        self._sort(x, y)
        self.w = self.spare = params["w"]
        self.restore(params)
        rows, width = self.x.shape[1], self.k * self.m
        together = PASS // (rows * (width + 2 * d)) if rows * width * d < LARGE else 1
        self.group = min(self.replicas, max(1, together))
        self.z = x.new_empty(self.group, rows, width)
        self.xt, self.move = (x.new_empty(self.group, rows, d) for _ in range(2))

    def outputs(self) -> Float[Tensor, "R N k"]:
        return self._unsorted([self._forward(self.x[g], self.w[g])[0] for g in self._groups()])

    def attacked_outputs(self) -> Float[Tensor, "R N k"]:
        parts = [self._forward(self._attacked(g), self.w[g])[0] for g in self._groups()]
        return self._unsorted(parts)

    def attacked(self) -> Float[Tensor, "R N P d"]:
        parts = [self._attacked(g).clone() for g in self._groups()]
        x = torch.cat(parts).unflatten(1, (-1, self.patches))
        return x.gather(1, self.place[..., None, None].expand(-1, -1, *x.shape[2:]))

    def advance(self, alive: Bool[Tensor, " R"]) -> None:
        for g in self._groups():
            xt, out = self._attacked(g), self.spare[g].flatten(1, 2)
            f, steep = self._forward(xt, self.w[g])
            pull = (f.softmax(-1) - self.target[g]).mul_(self.weight[g])
            pull.mul_(-self.eta * self.unit / self.points)
            self.smooth.scale(self._by_output(steep), pull)
            move = product(steep.transpose(1, 2), xt, out)
            torch.add(self.w[g].flatten(1, 2), move, out=out)
        self.w, self.spare = self.spare, self.w
        if not alive.all():
            self.undo(~alive)

    def undo(self, replicas: Bool[Tensor, " R"]) -> None:
        self.w[replicas] = self.spare[replicas]

    def params(self) -> Params:
        return {"w": self.w.clone()}

    def state(self) -> Params:
        return self.params()

    def restore(self, state: Params) -> None:
        self.w = state["w"].detach().clone(memory_format=torch.contiguous_format)
        self.spare = self.w.clone()

    def _sort(self, x: Float[Tensor, "R N P d"], y: Int[Tensor, "R N"]) -> None:
        """Class-sorted copies of the points, their one-hot targets and their weights."""
        onehot = functional.one_hot(y, self.k)
        most = onehot.sum(1).amax(0)
        ends = most.cumsum(0)
        # A point's row is its class's first row plus its rank within the class.
        self.place = (ends - most)[y] + (onehot.cumsum(1) * onehot).sum(-1) - 1
        self.bounds = [
            (int(e - n) * self.patches, int(e) * self.patches)
            for n, e in zip(most, ends, strict=True)
            if n > 0
        ]
        self.present = most.nonzero()[:, 0].tolist()
        rows, replica = int(ends[-1]), torch.arange(len(y), device=y.device).unsqueeze(1)
        points = x.new_zeros(self.replicas, rows, self.patches, x.shape[-1])
        points[replica, self.place] = x
        self.x = points.flatten(1, 2)
        self.target = x.new_zeros(self.replicas, rows, self.k)
        self.target[replica, self.place] = onehot.to(x)
        self.weight = x.new_zeros(self.replicas, rows, 1)
        self.weight[replica, self.place] = 1

    def _unsorted(self, parts: list[Float[Tensor, "g rows k"]]) -> Float[Tensor, "R N k"]:
        """Outputs of the sorted rows, in the order of the points."""
        return torch.cat(parts).gather(1, self.place.unsqueeze(-1).expand(-1, -1, self.k))

    def _groups(self) -> list[slice]:
        starts = range(0, self.replicas, self.group)
        return [slice(a, min(a + self.group, self.replicas)) for a in starts]

    def _attacked(self, g: slice) -> Float[Tensor, "g NP d"]:
        """X~ of some replicas."""
        if self.attack is None:
            return self.x[g]
        move = self._rival if self.attack.objective == "margin" else self._own
        return move(self.attack, self.x[g], self.w[g], self.target[g])

    def _own(self, attack: OneStep, x: Tensor, w: Tensor, target: Tensor) -> Tensor:
        """X + clip(-eta~ grad F_y): the filters of one class are enough for its points."""
        xt = self.xt[: len(x)]
        scale = -attack.scale(self.points) * self.unit
        for c, (a, e) in zip(self.present, self.bounds, strict=True):
            # Without gaps, since torch takes one product after the other if there are any.
            half = _cut(self.z, len(x), e - a, self.m)
            z = product(x[:, a:e], w[:, c].transpose(1, 2), half)
            self.smooth.steepen(z)
            move = product(z, w[:, c], _cut(self.move, len(x), e - a, x.shape[2]))
            clipped = attack.clipped(move.mul_(scale), self.patches)
            torch.add(x[:, a:e], clipped, out=xt[:, a:e])
        return xt

    def _rival(self, attack: OneStep, x: Tensor, w: Tensor, target: Tensor) -> Tensor:
        """X + clip(eta~ grad (F_j - F_y)), j the best other class."""
        f, steep = self._forward(x, w)
        rival = f.masked_fill(target > 0, -torch.inf).argmax(-1)
        side = functional.one_hot(rival, self.k).to(target) - target
        self.smooth.scale(self._by_output(steep), side)
        xt = self.xt[: len(x)]
        move = product(steep, w.flatten(1, 2), xt)
        scale = attack.scale(self.points) * self.unit
        return torch.add(x, attack.clipped(move.mul_(scale), self.patches), out=xt)

    def _forward(self, x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        """F [g N k], and rho^(q-1) s'(z) [g NP km]."""
        z = product(x, w.flatten(1, 2).transpose(1, 2), self.z[: len(x)])
        return self.smooth.total(self._by_output(z)), z

    def _by_output(self, z: Float[Tensor, "g NP km"]) -> Float[Tensor, "g N P k m"]:
        return z.unflatten(2, (self.k, self.m)).unflatten(1, (-1, self.patches))


def _cut(room: Tensor, *shape: int) -> Tensor:
    """The first numbers of some memory as a tensor of that shape."""
    return room.view(-1)[: math.prod(shape)].view(shape)
