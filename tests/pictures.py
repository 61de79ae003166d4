"""Image files as tests write them, and a dataset so small that a test can."""

from __future__ import annotations

import io
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from unmix.data.images import datasets, formats


def idx_bytes(values: np.ndarray) -> bytes:
    """An IDX file of bytes."""
    head = b"\0\0\x08" + bytes([values.ndim])
    return head + b"".join(struct.pack(">i", n) for n in values.shape) + values.tobytes()


def sheet_bytes(images: np.ndarray) -> bytes:
    """A PNG with one image a row."""
    file = io.BytesIO()
    Image.fromarray(images.reshape(len(images), -1, 3)).save(file, "PNG")
    return file.getvalue()


def tiny_mnist(train: int = 30, test: int = 20) -> tuple[datasets.Dataset, dict[str, bytes]]:
    """Noise with the digit's own bright pixel block, as a dataset and as its four files."""
    draw = np.random.default_rng(0)
    arrays = {}
    for part, n in (("train", train), ("test", test)):
        labels = np.arange(n, dtype=np.uint8) % 10
        images = draw.integers(0, 100, (n, 28, 28), np.uint8)
        for image, label in zip(images, labels, strict=True):
            image[4:8, 2 * label + 4 : 2 * label + 6] = 255
        arrays |= {f"{part}.images": images, f"{part}.labels": labels}
    small = replace(datasets.DATASETS["mnist"], train=train, test=test, sha256={})
    names = zip(datasets.IDX, formats.PARTS, strict=True)
    return small, {name: idx_bytes(arrays[part]) for name, part in names}


def tiny_cifar(train: int = 50, test: int = 20) -> tuple[datasets.Dataset, dict[str, bytes]]:
    """Noise with a bright bar whose place and colour are the class's, in the binary edition."""
    draw = np.random.default_rng(1)
    small = replace(datasets.DATASETS["cifar10"], train=train, test=test, sha256={})
    sizes = [train // 5] * 4 + [train - train // 5 * 4, test]
    files = {}
    for name, n in zip(datasets.BINARY, sizes, strict=True):
        labels = np.arange(n, dtype=np.uint8) % 10
        images = draw.integers(0, 100, (n, 3, 32, 32), np.uint8)
        for image, label in zip(images, labels, strict=True):
            image[label % 3, 3 * label : 3 * label + 3] = 255
        files[name] = np.concatenate([labels[:, None], images.reshape(n, -1)], 1).tobytes()
    return small, files


TINY = {"mnist": tiny_mnist, "cifar10": tiny_cifar}


def install(
    patch: pytest.MonkeyPatch, home: Path, train: int, test: int, name: str = "mnist"
) -> None:
    """Let a dataset be a tiny one in a data folder of its own, and no client be at hand."""
    small, files = TINY[name](train, test)
    patch.setitem(datasets.DATASETS, name, small)
    patch.setenv("UNMIX_DATA", str(home))
    own = home / "images" / name
    if not own.is_dir():
        own.mkdir(parents=True)
        for name, content in files.items():
            (own / name).write_bytes(content)
