"""Images as an experiment's data: which ones, with which labels, as numbers in [0, 1].

Points are pixels, so that an attack's ball and box are in pixel space; what a net does first to
its pixels (subtract a mean, say) is the net's. A seed changes nothing here: all replicas see the
same images, and the first n of a part are the first n of the file, as everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Literal

import torch
from jaxtyping import Int
from pydantic import Field, model_validator
from torch import Tensor

from unmix.data.base import Batch, Distribution
from unmix.data.images.datasets import Dataset, dataset
from unmix.data.images.loader import Part, load
from unmix.errors import DataError
from unmix.streams import stream


class Images(Distribution):
    """A known dataset with its classes, their parity or random groups of them as labels."""

    kind: Literal["images"] = "images"
    dataset: Literal["mnist", "fashion-mnist", "cifar10", "svhn"] = "mnist"
    labels: Literal["classes", "parity", "groups"] = Field(
        "classes", description="the classes, class mod 2, or classes grouped at random"
    )
    groups: int = Field(2, ge=2, description="number of random groups")
    grouping: int = Field(0, ge=0, description="which random grouping")
    split: Literal["official", "validation"] = Field(
        "official",
        description="the dataset's own test part, or the last 10000 training images held out "
        "(the pReLU paper's code)",
    )
    held: int = Field(10_000, ge=1, description="images held out by split = validation")
    levels: Literal[255, 256] = Field(255, description="a pixel is its byte over this")
    layout: Literal["flat", "planes"] = Field(
        "flat", description="[d], or [channels, height, width] for convolutions"
    )

    @model_validator(mode="after")
    def _possible(self) -> Images:
        if self.groups > len(self.source.classes):
            raise ValueError(
                f"groups={self.groups} of {len(self.source.classes)} classes: some would be empty"
            )
        if self.split == "validation" and self.held >= self.source.train:
            raise ValueError(f"held={self.held} leaves no image of {self.source.train} to train on")
        return self

    @property
    def source(self) -> Dataset:
        """What is known of the dataset."""
        return dataset(self.dataset)

    @property
    def shape(self) -> tuple[int, ...]:
        if self.layout == "flat":
            return (self.source.d,)
        height, width, *channels = self.source.shape
        return (*(channels or [1]), height, width)

    @property
    def told(self) -> str:
        return f"{self.dataset} {self.labels} d={self.source.d}"

    @property
    def box(self) -> tuple[float, float]:
        """Where pixels may lie."""
        return 0.0, 1.0

    @property
    def classes(self) -> int:
        """Number of labels."""
        return int(self.table.max()) + 1

    @cached_property
    def table(self) -> Int[Tensor, " classes"]:
        """Label of each class."""
        classes = len(self.source.classes)
        if self.labels == "groups":
            order = stream(self.grouping, "images.groups").permutation(classes)
            table = torch.empty(classes, dtype=torch.int64)
            table[torch.from_numpy(order)] = torch.arange(classes) % self.groups
            return table
        every = torch.arange(classes)
        return every % 2 if self.labels == "parity" else every

    def available(self, purpose: str) -> int:
        """Images to train on ("train"), or held out (anything else)."""
        if self.split == "official":
            return self.source.train if purpose == "train" else self.source.test
        return self.source.train - self.held if purpose == "train" else self.held

    def sample(
        self, seeds: Sequence[int], n: int, purpose: str, dtype: torch.dtype = torch.float64
    ) -> Batch:
        """The first n images of a part, seen by every replica; memory is shared among them."""
        if n > (most := self.available(purpose)):
            which = "train" if purpose == "train" else "test"
            came = f"{self.dataset} has {most} images for this, not {n}"
            raise DataError(came, f"lower samples.{which} to {most}")
        images, classes = self._part(purpose)
        x = images[:n].to(dtype).div_(self.levels).unflatten(1, self.shape)
        replicas = len(seeds)
        return Batch(
            x.expand(replicas, *x.shape),
            self.table[classes[:n]].expand(replicas, -1),
            classes[:n].expand(replicas, -1),
        )

    def _part(self, purpose: str) -> tuple[Tensor, Tensor]:
        """Bytes, planes first where the layout says so, and classes."""
        held_out = purpose != "train"
        part: Part = load(self.dataset, "test" if held_out and self._official else "train")
        images, classes = part.images, part.labels
        if not self._official:
            cut = self.source.train - self.held
            rows = slice(cut, None) if held_out else slice(cut)
            images, classes = images[rows], classes[rows]
        if self.layout == "planes" and len(self.source.shape) == 3:
            images = images.unflatten(1, self.source.shape).movedim(-1, 1).flatten(1)
        return images, classes

    @property
    def _official(self) -> bool:
        return self.split == "official"
