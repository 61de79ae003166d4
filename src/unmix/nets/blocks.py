"""Residual nets as modules: 3x3 convolutions in blocks with a shortcut, batch norm, mean pooling.

    after     relu(n2(c2(relu(n1(c1(x))))) + s(x))              (He et al.: ResNet18)
    before    a = relu(n1(x)),  c2(relu(n2(c1(a)))) + s(x or a)  (Zagoruyko, Komodakis: WideResNet)

A module is made on the meta device: it holds shapes alone, and is called with tensors of a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import batch_norm, relu

# Share of a batch's own moments in the running ones, and what keeps a variance from 0.
MOMENTUM, EPS = 0.1, 1e-5
Order = Literal["after", "before"]


@dataclass(frozen=True)
class Plan:
    """Channels of an image, of the stem and of each stage; blocks of each stage; classes."""

    inputs: int
    stem: int
    stages: tuple[int, ...]
    blocks: tuple[int, ...]
    classes: int
    order: Order = "after"
    stride: int = 1


class Norm(nn.Module):
    """Batch norm; the running moments are buffers, so that no gradient moves them."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("var", torch.ones(channels))

    def forward(self, x: Float[Tensor, "n c h w"]) -> Float[Tensor, "n c h w"]:
        mean, var = self.get_buffer("mean"), self.get_buffer("var")
        return batch_norm(x, mean, var, self.weight, self.bias, self.training, MOMENTUM, EPS)


class Block(nn.Module):
    """Two convolutions and a shortcut, which is a 1x1 convolution where shapes change."""

    def __init__(self, inputs: int, outputs: int, stride: int, order: Order) -> None:
        super().__init__()
        self.order = order
        self.c1 = _conv(inputs, outputs, stride)
        self.c2 = _conv(outputs, outputs, 1)
        self.n1 = Norm(outputs if order == "after" else inputs)
        self.n2 = Norm(outputs)
        self.short: nn.Module | None = None
        if stride > 1 or inputs != outputs:
            self.short = _conv(inputs, outputs, stride, side=1)
            self.n3 = Norm(outputs) if order == "after" else nn.Identity()

    def forward(self, x: Float[Tensor, "n c h w"]) -> Float[Tensor, "n o p q"]:
        if self.order == "before":
            a = relu(self.n1(x))
            straight = x if self.short is None else self.short(a)
            return self.c2(relu(self.n2(self.c1(a)))) + straight
        straight = x if self.short is None else self.n3(self.short(x))
        return relu(self.n2(self.c2(relu(self.n1(self.c1(x))))) + straight)


class Residual(nn.Module):
    """Stem, stages, mean over the image (the representation), one linear layer."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.stem = _conv(plan.inputs, plan.stem, plan.stride)
        # A block that normalises first needs a norm at the end, the other one at the start.
        self.norm = Norm(plan.stem if plan.order == "after" else plan.stages[-1])
        self.order = plan.order
        self.blocks = nn.Sequential(*_blocks(plan))
        self.top = nn.Linear(plan.stages[-1], plan.classes)

    def represent(self, x: Float[Tensor, "n c h w"]) -> Float[Tensor, "n m"]:
        """G."""
        if self.order == "after":
            return self.blocks(relu(self.norm(self.stem(x)))).mean((2, 3))
        return relu(self.norm(self.blocks(self.stem(x)))).mean((2, 3))

    def forward(
        self, x: Float[Tensor, "n c h w"]
    ) -> tuple[Float[Tensor, "n m"], Float[Tensor, "n C"]]:
        """Representation and outputs."""
        found = self.represent(x)
        return found, self.top(found)


@dataclass(frozen=True)
class Load:
    """What one image costs: multiplications forward, and numbers that layers put out."""

    multiplications: int
    numbers: int


def load_of(module: Residual, shape: Sequence[int]) -> Load:
    """Counted by a pass without numbers; the module is on the meta device."""
    seen: list[tuple[int, int]] = []

    def count(layer: nn.Module, _: object, out: Tensor) -> None:
        each = next(layer.parameters())[0].numel()
        seen.append((each * out.numel(), out.numel()))

    layers = [m for m in module.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    hooks = [layer.register_forward_hook(count) for layer in layers]
    try:
        module.eval()(torch.empty(1, *shape, device="meta"))
    finally:
        for hook in hooks:
            hook.remove()
    return Load(sum(m for m, _ in seen), sum(n for _, n in seen))


def _blocks(plan: Plan) -> list[Block]:
    """Each stage but the first halves the image."""
    made, channels = [], plan.stem
    for stage, (width, count) in enumerate(zip(plan.stages, plan.blocks, strict=True)):
        for turn in range(count):
            stride = 2 if stage > 0 and turn == 0 else 1
            made.append(Block(channels, width, stride, plan.order))
            channels = width
    return made


def _conv(inputs: int, outputs: int, stride: int, side: int = 3) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, side, stride, side // 2, bias=False)
