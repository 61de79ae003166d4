"""Residual nets on images (patches paper, section 6.2): ResNet18, WideResNet-34-10 and small ones.

Points are pixels in [0, 1]; a net first subtracts each channel's mean over the training images and
divides by its standard deviation. Both are parameters that no training moves, and so are the
running moments of batch norm, so that a stored net needs no data.

The representation G is what stands below the last linear layer: channels averaged over the image.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field, field_validator
from torch import Tensor
from torch.func import functional_call

from unmix.data.base import Batch
from unmix.data.images.distribution import Images
from unmix.nets.base import Network, Params
from unmix.nets.blocks import Load, Plan, Residual, load_of
from unmix.streams import normals

# Points of one pass where no gradient is asked for.
PASS = 500
FIXED = ("centre", "scale")
Rows = Float[Tensor, "n *shape"]
Encoder = Callable[[Tensor], Tensor]


class DeepNet(Network):
    """A residual net; a member says its plan."""

    takes = (Images,)

    @abstractmethod
    def plan(self, data: Any) -> Plan:
        """Channels, blocks and classes."""

    def module(self, data: Any) -> Residual:
        """Without numbers: its parameters are handed to each call."""
        return _module(self.plan(data))

    def load(self, data: Any) -> Load:
        """What one image costs."""
        return load_of(self.module(data), planes(torch.empty(1, *data.shape), data).shape[1:])

    def neurons(self, data: Any) -> int:
        """Channels at every position: each is a weight vector on its own part of the image."""
        return self.load(data).numbers

    def names(self, data: Any) -> tuple[str, ...]:
        """The parameters that a training moves."""
        return tuple(name for name, _ in self.module(data).named_parameters())

    def start(self, data: Any, seeds: Sequence[int], batch: Batch) -> Params:
        """Normal with variance 2/(side^2 channels out) in convolutions (He et al. 2015), 1/m on
        top; norms begin as the identity."""
        made: Params = {}
        for name, like in self.module(data).state_dict().items():
            made[name] = _drawn(name, like.shape, seeds, batch.x.dtype)
        return made | _moments(batch.x, data)

    def classifier(self, data: Any, params: Params) -> DeepClassifier:
        return DeepClassifier(params, self.module(data), data)


class ResNet(DeepNet):
    """ResNet with one channel count a stage, doubled from stage to stage; 2, 2, 2, 2 blocks of
    width 64 are ResNet18 as it is used on small images (3x3 stem)."""

    kind: Literal["resnet"] = "resnet"
    width: int = Field(8, ge=1, description="channels of the first stage")
    blocks: tuple[int, ...] = Field((1, 1, 1), description="blocks of each stage")
    stride: Literal[1, 2] = Field(2, description="of the stem: 2 halves the image at once")

    @field_validator("blocks")
    @classmethod
    def _some(cls, blocks: tuple[int, ...]) -> tuple[int, ...]:
        if not blocks or min(blocks) < 1:
            raise ValueError(f"expected at least one block in each stage, got {list(blocks)}")
        return blocks

    def plan(self, data: Any) -> Plan:
        stages = tuple(self.width * 2**i for i in range(len(self.blocks)))
        channels = _channels(data)
        return Plan(channels, self.width, stages, self.blocks, data.classes, "after", self.stride)


class WideResNet(DeepNet):
    """WideResNet-`depth`-`widen`: three stages of (depth - 4)/6 blocks, 16, 32, 64 times `widen`
    channels; 34 and 10 are the paper's."""

    kind: Literal["wide-resnet"] = "wide-resnet"
    depth: int = Field(10, ge=10, description="layers: 10, 16, 22, 28, 34, 40")
    widen: int = Field(1, ge=1, description="channels, in multiples of 16, 32, 64")

    @field_validator("depth")
    @classmethod
    def _whole(cls, depth: int) -> int:
        if (depth - 4) % 6:
            raise ValueError(f"expected a depth of 6 n + 4 layers, got {depth}")
        return depth

    def plan(self, data: Any) -> Plan:
        stages = tuple(self.widen * c for c in (16, 32, 64))
        blocks = ((self.depth - 4) // 6,) * 3
        return Plan(_channels(data), 16, stages, blocks, data.classes, "before")


@dataclass(frozen=True)
class DeepClassifier:
    """R such nets; every tensor of `params` leads with the replica."""

    params: Params
    module: Residual
    data: Any

    def double(self) -> DeepClassifier:
        params = {name: t.double() for name, t in self.params.items()}
        return DeepClassifier(params, self.module, self.data)

    def replica(self, index: int) -> DeepClassifier:
        """One of the nets alone."""
        params = {name: t[index : index + 1] for name, t in self.params.items()}
        return DeepClassifier(params, self.module, self.data)

    def outputs(self, x: Float[Tensor, "R n *shape"]) -> Float[Tensor, "R n C"]:
        """One number a class; differentiable."""
        return torch.stack([self._called(r, row)[1] for r, row in enumerate(x)])

    def features(self, x: Float[Tensor, "R n *shape"]) -> Float[Tensor, "R n m"]:
        """G; differentiable."""
        return torch.stack([self._called(r, row)[0] for r, row in enumerate(x)])

    @torch.no_grad()
    def predict(self, x: Float[Tensor, "R n *shape"]) -> Int[Tensor, "R n"]:
        return torch.cat([self.outputs(part).argmax(-1) for part in x.split(PASS, 1)], 1)

    def accuracy(self, batch: Batch) -> Float[Tensor, " R"]:
        return (self.predict(batch.x) == batch.y).double().mean(1)

    def _called(self, replica: int, x: Rows) -> tuple[Tensor, Tensor]:
        mine = {name: t[replica] for name, t in self.params.items()}
        return passed(self.module.eval(), mine, planes(x, self.data))


def passed(module: Residual, params: Params, x: Float[Tensor, "n c h w"]) -> tuple[Tensor, Tensor]:
    """Representation and outputs of images with the parameters of one replica, in the module's
    mode: while it is training, norms use a batch's own moments and move the running ones."""
    centre, scale = (params[name].view(-1, 1, 1) for name in FIXED)
    inner = {name: t for name, t in params.items() if name not in FIXED}
    found: tuple[Tensor, Tensor] = functional_call(module, inner, ((x - centre) / scale,))
    return found


def planes(x: Rows, data: Any) -> Float[Tensor, "n c h w"]:
    """Points as images with channels in front, whatever their layout; no copy."""
    if data.layout == "planes":
        return x
    height, width, *channels = data.source.shape
    return x.unflatten(-1, (height, width, *(channels or [1]))).movedim(-1, -3)


@cache
def _module(plan: Plan) -> Residual:
    with torch.device("meta"):
        return Residual(plan)


def _channels(data: Any) -> int:
    _, _, *channels = data.source.shape
    return channels[0] if channels else 1


def _drawn(
    name: str, shape: torch.Size, seeds: Sequence[int], dtype: torch.dtype
) -> Float[Tensor, "R *shape"]:
    """A parameter before the first step, by its name and shape."""
    if len(shape) == 1:
        one = torch.ones if name.endswith(("weight", "var")) else torch.zeros
        return one(len(seeds), *shape, dtype=dtype)
    fan = shape[0] * math.prod(shape[2:]) if len(shape) == 4 else shape[1]
    size = math.sqrt((2 if len(shape) == 4 else 1) / fan)
    return normals(seeds, f"init.{name}", tuple(shape), dtype).mul_(size)


def _moments(x: Float[Tensor, "R n *shape"], data: Any) -> Params:
    """Mean and standard deviation of each channel; all replicas may share one set of points."""
    sets = x[:1] if x.stride(0) == 0 else x
    pixels = planes(sets.flatten(0, 1), data).unflatten(0, sets.shape[:2]).movedim(2, 1)
    flat = pixels.flatten(2)
    spread = flat.std(-1)
    # A channel without any spread is left as it is.
    scale = torch.where(spread > 0, spread, 1.0)
    both = (flat.mean(-1), scale)
    found = (t.expand(len(x), -1).contiguous() for t in both)
    return dict(zip(FIXED, found, strict=True))


def encoder(classifier: DeepClassifier, replica: int = 0) -> Encoder:
    """G of one replica, as a function of points [n *shape]."""
    lone = classifier.replica(replica)
    return lambda x: lone.features(x.unsqueeze(0))[0]
