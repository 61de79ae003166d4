"""Images as an experiment's data: which ones, with which labels, as numbers in [0, 1].

Points are pixels, so that an attack's ball and box are in pixel space; what a net does first to
its pixels (subtract a mean, say) is the net's. All seeds train on the first n images of the file.
Held-out images come in an order of each seed's own: the files are sorted by writer, their first
thousand is harder than the rest, and seeds that see different ones tell how much that matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from jaxtyping import Int
from pydantic import Field, model_validator
from torch import Tensor

from unmix.data.base import Batch, Distribution
from unmix.data.images.datasets import Dataset, dataset
from unmix.data.images.loader import load
from unmix.errors import DataError
from unmix.streams import stream


class Pictures(Distribution):
    """What images and their features share: a known dataset, which part of it, which labels."""

    dataset: Literal["mnist", "fashion-mnist", "cifar10", "svhn"] = "mnist"
    labels: Literal["classes", "parity", "groups"] = Field(
        "classes", description="the classes, class mod 2, or classes grouped at random"
    )
    groups: int = Field(2, ge=2, description="number of random groups")
    grouping: int = Field(0, ge=0, description="which random grouping")
    split: Literal["official", "validation"] = Field(
        "official",
        description="the dataset's own test part, or the last training images held out "
        "(the pReLU paper's code)",
    )
    held: int = Field(10_000, ge=1, description="images held out by split = validation")

    @model_validator(mode="after")
    def _possible(self) -> Pictures:
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

    def place(self, purpose: str) -> tuple[str, int]:
        """The part of the dataset that a purpose is served from, and its first row."""
        if purpose == "train":
            return "train", 0
        if self.split == "official":
            return "test", 0
        return "train", self.source.train - self.held

    def rows(self, seeds: Sequence[int], n: int, purpose: str) -> Int[Tensor, "R n"]:
        """Which images each seed sees; all see the same ones to train on."""
        if n > (most := self.available(purpose)):
            which = "train" if purpose == "train" else "test"
            came = f"{self.dataset} has {most} images for this, not {n}"
            raise DataError(came, f"lower samples.{which} to {most}")
        if purpose == "train":
            return torch.arange(n).expand(len(seeds), n)
        orders = [stream(seed, f"{purpose}.images").permutation(most)[:n] for seed in seeds]
        return torch.from_numpy(np.stack(orders))

    def batch(self, x: Tensor, rows: Int[Tensor, "R n"], purpose: str) -> Batch:
        """Points of these rows: x holds every point that a purpose may ask for, or the first n."""
        part, first = self.place(purpose)
        classes = load(self.dataset, part).labels[first:]
        if rows.stride(0) == 0:
            # One place in memory for all replicas.
            n = rows.shape[1]
            parts = (x[:n], self.table[classes[:n]], classes[:n])
            return Batch(*(p.expand(len(rows), *p.shape) for p in parts))
        return Batch(x[rows], self.table[classes][rows], classes[rows])


class Images(Pictures):
    """Pixels of a known dataset; labels are its classes, their parity or random groups of them."""

    kind: Literal["images"] = "images"
    levels: Literal[255, 256] = Field(255, description="a pixel is its byte over this")
    layout: Literal["flat", "planes"] = Field(
        "flat", description="[d], or [channels, height, width] for convolutions"
    )

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

    def sample(
        self, seeds: Sequence[int], n: int, purpose: str, dtype: torch.dtype = torch.float64
    ) -> Batch:
        rows, (part, first) = self.rows(seeds, n, purpose), self.place(purpose)
        last = first + (n if purpose == "train" else self.available(purpose))
        x = load(self.dataset, part).images[first:last].to(dtype).div_(self.levels)
        if self.layout == "planes":
            x = x.unflatten(1, self.source.shape)
            x = x.movedim(-1, 1) if len(self.source.shape) == 3 else x.unsqueeze(1)
        return self.batch(x.contiguous(), rows, purpose)
