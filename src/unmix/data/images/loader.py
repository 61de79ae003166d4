"""Images of a known dataset: from the cache, else decoded from the first source that has them.

    <UNMIX_DATA, or ~/.cache/unmix>/images/<name>/                  a user's own files, if any
    <UNMIX_DATA, or ~/.cache/unmix>/images/<name>-<part>.npy        decoded and checked, for good
    <UNMIX_DATA, or ~/.cache/unmix>/images/<name>.sha256            their checksums, written last

After the first time nothing but these is read; delete <name>.sha256 to begin anew.
"""

from __future__ import annotations

import hashlib
import io
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from unmix.data.images.datasets import Dataset, Recipe, dataset
from unmix.data.images.formats import PARTS, Arrays
from unmix.data.images.sources import Folder, Tell
from unmix.errors import DataError


@dataclass(frozen=True)
class Part:
    """One part of a dataset: images as bytes, a row each, and their classes."""

    images: UInt8[Tensor, "n d"]
    labels: Int[Tensor, " n"]


def home() -> Path:
    """The folder of all data that are kept; UNMIX_DATA names another one."""
    if own := os.environ.get("UNMIX_DATA"):
        return Path(own).expanduser()
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "unmix"


def load(name: str, part: str) -> Part:
    """The "train" or "test" images; they are fetched first, if they must be."""
    fetch(name)
    return _read(name, part, home())


def is_here(name: str) -> bool:
    """Whether a dataset can be loaded without a source."""
    return _sums(dataset(name)).is_file()


def fetch(name: str, tell: Tell = lambda done, total: None) -> None:
    """Put a dataset into the cache if it is not there: own folder first, then every source."""
    wanted = dataset(name)
    if is_here(name):
        return
    tried = []
    for recipe in _recipes(wanted):
        try:
            files = recipe.source.files(recipe.layout.names, recipe.size, tell)
            arrays = recipe.layout.arrays(files)
            _check(wanted, arrays)
        except (DataError, ValueError, KeyError) as error:
            why = error.message if isinstance(error, DataError) else str(error)
            tried.append(f"  {recipe.source.describe()}: {why}")
            continue
        _keep(wanted, arrays)
        tell(recipe.size, recipe.size)
        return
    every = "\n".join(dict.fromkeys(tried))
    raise DataError(f"cannot get the images of {name}; tried\n{every}", _help(wanted))


def _recipes(wanted: Dataset) -> Iterator[Recipe]:
    for recipe in wanted.recipes:
        yield Recipe(Folder(_own(wanted)), recipe.layout, recipe.size)
    yield from wanted.recipes


def _own(wanted: Dataset) -> Path:
    return home() / "images" / wanted.name


def _paths(wanted: Dataset) -> dict[str, Path]:
    return {part: home() / "images" / f"{wanted.name}-{part}.npy" for part in PARTS}


def _check(wanted: Dataset, arrays: Arrays) -> None:
    """Are these the images that the name stands for?"""
    for part in PARTS:
        points = wanted.train if part.startswith("train") else wanted.test
        shape = (points, *wanted.shape) if part.endswith("images") else (points,)
        if arrays[part].shape != shape or arrays[part].dtype != np.uint8:
            came = f"{arrays[part].dtype} {arrays[part].shape}"
            raise DataError(f"{part} of {wanted.name} should be uint8 {shape}, got {came}")
        if part.endswith("labels") and arrays[part].max(initial=0) >= len(wanted.classes):
            raise DataError(f"{part} of {wanted.name} has a label {arrays[part].max()}")
        known = wanted.sha256.get(part)
        if known and _sum(arrays[part]) != known:
            raise DataError(f"{part} is not that of {wanted.name}: its checksum is another")


def _keep(wanted: Dataset, arrays: Arrays) -> None:
    """Write the arrays, then their checksums; a reader meets whole files or none."""
    sums = ""
    for part, path in _paths(wanted).items():
        content = io.BytesIO()
        np.save(content, np.ascontiguousarray(arrays[part]), allow_pickle=False)
        write(path, content.getvalue())
        sums += f"{hashlib.sha256(content.getvalue()).hexdigest()}  {path.name}\n"
    write(_sums(wanted), sums.encode())


def write(path: Path, content: bytes) -> None:
    """A file of the data folder; a reader meets all of it or nothing."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(content)
        os.replace(draft, path)
    except OSError as error:
        hint = "let UNMIX_DATA name a folder that can be written"
        raise DataError(f"cannot keep {path}: {error.strerror}", hint) from None
    finally:
        draft.unlink(missing_ok=True)


@cache
def _read(name: str, part: str, root: Path) -> Part:
    """Both arrays of a part, checked; once a process and folder."""
    arrays = {which: _array(name, f"{part}.{which}") for which in ("images", "labels")}
    return Part(arrays["images"].flatten(1), arrays["labels"].long())


def _array(name: str, part: str) -> Tensor:
    path, sums = _paths(dataset(name))[part], _sums(dataset(name))
    again = f"delete the checksums, so that it is fetched again: rm '{sums}'"
    try:
        content, known = path.read_bytes(), sums.read_text()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}", again) from None
    if f"{hashlib.sha256(content).hexdigest()}  {path.name}" not in known.splitlines():
        raise DataError(f"{path} is not as it was written", again)
    return torch.from_numpy(np.load(io.BytesIO(content), allow_pickle=False))


def _sums(wanted: Dataset) -> Path:
    return home() / "images" / f"{wanted.name}.sha256"


def _sum(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def _help(wanted: Dataset) -> str:
    layouts = dict.fromkeys(", ".join(recipe.layout.names) for recipe in wanted.recipes)
    return f"put {' or '.join(layouts)} (or an archive with them) into {_own(wanted)}"
