"""Training of deep nets on images, standard and adversarial (patches paper, section 6.2).

    v <- mu v + g + lambda theta,    theta <- theta - eta_t v,    g = grad of the mean cross-entropy

by mini-batches, on the points themselves or on what PGD makes of them. The paper names the nets,
the radii and the number of epochs; momentum, decay, batch, schedule and the attack's steps are
those of Madry et al. and Rice et al., and fields here.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field, field_validator, model_validator
from torch import Tensor
from torch.nn.functional import cross_entropy

from unmix.nets.base import Params
from unmix.nets.blocks import Residual
from unmix.nets.deep import DeepNet, passed
from unmix.spec import Spec
from unmix.train.base import Record, Start, Training
from unmix.train.deep_epochs import DeepEpochs

Pixels = Float[Tensor, "n c h w"]


class Ascent(Spec):
    """The inner maximum: signed steps on the cross-entropy within an l_inf ball and [0, 1]."""

    eps: float = Field(8 / 255, gt=0, description="radius")
    steps: int = Field(10, ge=1, description="steps of PGD")
    size: float | None = Field(None, gt=0, description="a step over eps; none: 2.5/steps")
    start: Literal["random", "point"] = Field("random", description="uniform in the ball, or x")
    moments: Literal["running", "batch"] = Field(
        "running", description="norms during the attack: as at test time, or of the batch"
    )
    warmup: int = Field(0, ge=0, description="epochs over which the radius grows to eps")

    def radius(self, epoch: int) -> float:
        """Of an epoch, the first being 0."""
        return self.eps * min(1.0, (epoch + 1) / (self.warmup + 1))

    def moved(
        self, module: Residual, params: Params, x: Pixels, y: Int[Tensor, " n"], start: Tensor,
        radius: float,
    ) -> Pixels:  # fmt: skip
        """The attacked points; `start` is uniform in [-1, 1]."""
        module.train(self.moments == "batch")
        frozen = {name: t.detach() for name, t in params.items()}
        if self.moments == "batch":
            # The running moments are moved by the step of training alone.
            frozen = {
                n: t.clone() if n.endswith((".mean", ".var")) else t for n, t in frozen.items()
            }
        size = radius * (2.5 / self.steps if self.size is None else self.size)
        low, high = (x - radius).clamp_min(0), (x + radius).clamp_max(1)
        moved = x + radius * start if self.start == "random" else x
        moved = torch.minimum(torch.maximum(moved, low), high)
        for _ in range(self.steps):
            leaf = moved.detach().requires_grad_()
            loss = cross_entropy(passed(module, frozen, leaf)[1], y, reduction="sum")
            (slope,) = torch.autograd.grad(loss, leaf)
            moved = torch.minimum(torch.maximum(moved + size * slope.sign(), low), high)
        return moved.detach()


class DeepDescent(Training):
    """SGD with momentum and weight decay on the images as they are."""

    kind: Literal["deep-descent"] = "deep-descent"
    eta: float = Field(0.1, gt=0, description="first step size")
    momentum: float = Field(0.9, ge=0, lt=1)
    decay: float = Field(5e-4, ge=0, description="weight decay, of every trained parameter")
    epochs: int = Field(12, ge=0, description="passes over the training points")
    batch: int = Field(128, ge=2, description="points a step, drawn anew each epoch")
    schedule: Literal["cosine", "drops", "constant"] = Field(
        "cosine", description="of the step size; drops: a tenth at each of `drops`"
    )
    drops: tuple[float, ...] = Field((0.5, 0.75), description="shares of the training")
    augment: Literal["none", "crop", "crop-flip"] = Field(
        "none", description="crops of images padded by 4 pixels, flipped or not"
    )
    precision: Literal["full", "mixed"] = Field(
        "full", description="mixed: bfloat16 within each pass on a GPU (autocast)"
    )
    watch: int = Field(500, ge=1, description="points whose loss and accuracy are recorded")
    snapshots: tuple[int, ...] = Field((), description="epochs after which the net is kept")
    record: Record = Record(points=13, schedule="linear")

    trains = (DeepNet,)

    @field_validator("drops")
    @classmethod
    def _shares(cls, drops: tuple[float, ...]) -> tuple[float, ...]:
        if any(not 0 < share < 1 for share in drops):
            raise ValueError(f"expected shares between 0 and 1, got {list(drops)}")
        return drops

    @model_validator(mode="after")
    def _within(self) -> DeepDescent:
        if any(not 0 <= epoch <= self.epochs for epoch in self.snapshots):
            came = f"snapshots: expected epochs from 0 to {self.epochs}, got {list(self.snapshots)}"
            raise ValueError(came)
        return self

    @property
    def ascent(self) -> Ascent | None:
        """The attack on each batch, if there is one."""
        return None

    def rate(self, share: float) -> float:
        """eta_t after this share of the training."""
        if self.schedule == "constant":
            return self.eta
        if self.schedule == "cosine":
            return self.eta * (1 + math.cos(math.pi * share)) / 2
        return self.eta * 0.1 ** sum(share >= drop for drop in self.drops)

    def length(self) -> int:
        return self.epochs

    def cost(self, net: Any, data: Any, points: int) -> int:
        """A pass with the gradient of all weights costs three forward, one for pixels alone two."""
        passes = 3 if self.ascent is None else 3 + 2 * self.ascent.steps
        return int(passes * self.epochs * points * net.load(data).multiplications)

    def begin(self, start: Start) -> DeepEpochs:
        return DeepEpochs(start, self)


class DeepAdversarial(DeepDescent):
    """The same on attacked images: PGD against the net as it is before each step."""

    kind: Literal["deep-adversarial"] = "deep-adversarial"  # type: ignore[assignment]
    attack: Ascent = Ascent()

    @property
    def ascent(self) -> Ascent:
        return self.attack
