"""Decoders against writers of the same formats, written here a second time and plainly."""

from __future__ import annotations

import gzip
import io
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.io import savemat

from pictures import idx_bytes, sheet_bytes
from unmix.data.images import formats
from unmix.errors import DataError


def things(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    images = draw.integers(0, 256, (n, 32, 32, 3), np.uint8)
    return images, draw.integers(0, 10, n).astype(np.uint8)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=3), st.booleans())
@settings(max_examples=30, deadline=None)
def test_idx_comes_back(shape: list[int], packed: bool) -> None:
    values = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    content = idx_bytes(values)
    back = formats.idx(gzip.compress(content) if packed else content)
    assert back.shape == tuple(shape)
    np.testing.assert_array_equal(back, values)


@pytest.mark.parametrize("content", [b"", b"\0\0\x0d\x01", b"<html>", b"\0\0\x08\x01\0\0\0\x05ab"])
def test_what_is_no_idx_is_refused(content: bytes) -> None:
    with pytest.raises(DataError):
        formats.idx(content)


def test_both_editions_of_cifar_decode_to_the_same_images() -> None:
    batches = [things(4, seed) for seed in range(6)]
    names = (*formats.CIFAR_BATCHES, "test_batch")
    sheets = {f"{n}.png": sheet_bytes(x) for n, (x, _) in zip(names, batches, strict=True)}
    labels = [int(v) for _, y in batches[:5] for v in y]
    sheets["train_lables.json"] = json.dumps(labels).encode()
    sheets["test_lables.json"] = json.dumps(batches[5][1].tolist()).encode()
    binary = {}
    for name, (images, label) in zip(names, batches, strict=True):
        rows = [
            bytes([v]) + b"".join(image[..., colour].tobytes() for colour in range(3))
            for image, v in zip(images, label, strict=True)
        ]
        binary[f"{name}.bin"] = b"".join(rows)
    one, other = formats.cifar_sheets(sheets), formats.cifar_binary(binary)
    assert set(one) == set(other) == set(formats.PARTS)
    for part in formats.PARTS:
        np.testing.assert_array_equal(one[part], other[part])
    np.testing.assert_array_equal(one["train.images"][4:8], batches[1][0])


@pytest.mark.parametrize("content", [b"no picture", sheet_bytes(things(2)[0][:, :16])])
def test_a_wrong_sheet_is_refused(content: bytes) -> None:
    with pytest.raises(DataError):
        formats.sheet(content)


def test_svhn_counts_ten_as_zero() -> None:
    images, _ = things(3)
    file = io.BytesIO()
    savemat(file, {"X": images.transpose(1, 2, 3, 0), "y": np.array([[10], [1], [9]], np.uint8)})
    content = file.getvalue()
    arrays = formats.svhn({"train_32x32.mat": content, "test_32x32.mat": content})
    np.testing.assert_array_equal(arrays["train.images"], images)
    assert arrays["test.labels"].tolist() == [0, 1, 9]
    assert arrays["test.labels"].dtype == np.uint8
