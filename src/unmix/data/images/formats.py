"""Decoders of the formats in which small-image datasets travel: bytes to uint8 arrays.

Images come out as [n height width] or [n height width channels], labels as [n]. Nothing here is
unpickled: CIFAR-10 has a binary edition, and that one is read.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Mapping

import numpy as np

from unmix.errors import DataError

Files = Mapping[str, bytes]
Arrays = dict[str, np.ndarray]
Decode = Callable[[Files], Arrays]

PARTS = ("train.images", "train.labels", "test.images", "test.labels")
SIDE = 32
CIFAR_BATCHES = tuple(f"data_batch_{i}" for i in range(1, 6))


def mnist(files: Files) -> Arrays:
    """The four IDX files of MNIST and its look-alikes, packed or not."""
    names = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    return {part: idx(files[f"{name}-ubyte"]) for part, name in zip(PARTS, names, strict=True)}


def idx(content: bytes) -> np.ndarray:
    """An IDX file of bytes: two zeros, type 8, number of axes, big-endian sizes, the values."""
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    if len(content) < 4 or content[:3] != b"\0\0\x08":
        raise DataError("this is no IDX file of bytes", "download it again")
    axes = content[3]
    sizes = np.frombuffer(content, ">i4", axes, 4)
    values = np.frombuffer(content, np.uint8, offset=4 + 4 * axes)
    if values.size != sizes.prod():
        raise DataError(f"an IDX file of {values.size} values says it has {sizes.prod()}")
    return values.reshape(sizes)


def cifar_sheets(files: Files) -> Arrays:
    """CIFAR-10 as PNG sheets, one image a row of 1024 pixels, and labels as JSON."""
    train = [sheet(files[f"{batch}.png"]) for batch in CIFAR_BATCHES]
    labels = [np.array(json.loads(files[f"{p}_lables.json"]), np.uint8) for p in ("train", "test")]
    images = (np.concatenate(train), sheet(files["test_batch.png"]))
    return dict(zip(PARTS, (images[0], labels[0], images[1], labels[1]), strict=True))


def sheet(content: bytes) -> np.ndarray:
    """The images of one sheet. The size is known, so it is no bomb, whatever Pillow's limit."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(content)) as image:
            if image.width != SIDE * SIDE or image.height > 60_000:
                came = f"{image.width} x {image.height}"
                raise DataError(f"expected a sheet of rows of {SIDE * SIDE} pixels, got {came}")
            pixels = np.asarray(image.convert("RGB"))
    except UnidentifiedImageError as error:
        raise DataError(f"this is no image: {error}", "download it again") from None
    return pixels.reshape(-1, SIDE, SIDE, 3)


def cifar_binary(files: Files) -> Arrays:
    """CIFAR-10's binary edition: records of a label and 3 x 32 x 32 values, colour by colour."""
    batches = [*(files[f"{batch}.bin"] for batch in CIFAR_BATCHES), files["test_batch.bin"]]
    records = [np.frombuffer(batch, np.uint8).reshape(-1, 1 + 3 * SIDE * SIDE) for batch in batches]
    train, test = np.concatenate(records[:-1]), records[-1]
    parts = [part for rows in (train, test) for part in (_planes(rows[:, 1:]), rows[:, 0].copy())]
    return dict(zip(PARTS, parts, strict=True))


def _planes(rows: np.ndarray) -> np.ndarray:
    """Colour by colour to pixel by pixel."""
    return np.ascontiguousarray(rows.reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1))


def svhn(files: Files) -> Arrays:
    """SVHN's .mat files: X [32 32 3 n], y in 1..10 where 10 stands for the digit 0."""
    from scipy.io import loadmat

    arrays: Arrays = {}
    for part in ("train", "test"):
        content = loadmat(io.BytesIO(files[f"{part}_32x32.mat"]))
        arrays[f"{part}.images"] = np.ascontiguousarray(content["X"].transpose(3, 0, 1, 2))
        arrays[f"{part}.labels"] = (content["y"].ravel() % 10).astype(np.uint8)
    return arrays
