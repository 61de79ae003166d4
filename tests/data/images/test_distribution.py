"""Images as data: labels, splits, layouts, and what cannot be."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from pictures import install
from unmix.data.images import datasets
from unmix.data.images.distribution import Images
from unmix.data.images.loader import load
from unmix.errors import DataError, SpecError


@pytest.fixture(autouse=True)
def _tiny(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, tmp_path / "data", 80, 40)


def test_points_are_pixels_of_the_first_images() -> None:
    batch = Images().sample((0, 3), 20, "train", torch.float32)
    bytes_ = load("mnist", "train").images[:20]
    assert torch.equal((batch.x[1] * 255).round(), bytes_.float())
    assert batch.x.stride(0) == 0  # one place in memory for all replicas
    assert float(batch.x.max()) <= 1
    darker = Images(levels=256).sample((0,), 20, "train").x
    torch.testing.assert_close(darker * 256, bytes_.double().unsqueeze(0))


def test_labels_are_classes_parities_or_groups() -> None:
    digits = Images().sample((0,), 40, "test")
    assert torch.equal(digits.y, digits.cluster)
    parity = Images(labels="parity")
    assert torch.equal(parity.sample((0,), 40, "test").y, digits.y % 2)
    assert parity.classes == 2
    tables = set()
    for grouping in range(6):
        data = Images(labels="groups", groups=5, grouping=grouping)
        assert data.classes == 5
        assert data.table.bincount().tolist() == [2] * 5
        batch = data.sample((0,), 40, "test")
        assert torch.equal(batch.y, data.table[batch.cluster])
        tables.add(tuple(data.table.tolist()))
    assert len(tables) == 6
    assert Images(labels="groups", groups=3).table.bincount().tolist() == [4, 3, 3]


def test_each_seed_draws_its_own_held_out_images() -> None:
    data = Images()
    both = data.sample((0, 3), 40, "test")
    assert not torch.equal(both.x[0], both.x[1])
    file = load("mnist", "test")
    for r in range(2):
        # The whole part in another order, each image with its own label.
        pixels = (both.x[r] * 255).round().to(torch.uint8)
        known = {
            bytes(image.tolist()): int(y) for image, y in zip(file.images, file.labels, strict=True)
        }
        found = {bytes(image.tolist()): int(y) for image, y in zip(pixels, both.y[r], strict=True)}
        assert found == known
    assert torch.equal(data.sample((3,), 9, "test").x[0], both.x[1, :9])


def test_the_validation_split_holds_out_the_end_of_the_training_file() -> None:
    data, official = Images(split="validation", held=30), Images()
    whole = official.sample((0,), 80, "train").x
    assert torch.equal(data.sample((0,), 50, "train").x, whole[:, :50])
    held = {tuple(image.tolist()) for image in data.sample((0,), 30, "test").x[0]}
    assert held == {tuple(image.tolist()) for image in whole[0, 50:]}
    assert (data.available("train"), data.available("test")) == (50, 30)


def test_planes_are_the_same_pixels() -> None:
    data = Images(layout="planes")
    assert data.shape == (1, 28, 28)
    assert data.sample((0,), 5, "train").x.shape == (1, 5, 1, 28, 28)
    flat = Images().sample((0,), 5, "train").x
    assert torch.equal(data.sample((0,), 5, "train").x.flatten(2), flat)


def test_colours_come_first_in_planes(monkeypatch) -> None:
    mnist = datasets.DATASETS["mnist"]
    monkeypatch.setitem(datasets.DATASETS, "cifar10", replace(mnist, shape=(14, 28, 2)))
    monkeypatch.setattr(
        "unmix.data.images.distribution.load", lambda name, part: load("mnist", part)
    )
    data = Images(dataset="cifar10", layout="planes")
    assert data.shape == (2, 14, 28)
    pixels = load("mnist", "train").images[:4].double().reshape(4, 14, 28, 2) / 255
    torch.testing.assert_close(data.sample((0,), 4, "train").x[0], pixels.permute(0, 3, 1, 2))


def test_more_images_than_there_are() -> None:
    with pytest.raises(DataError, match="has 80 images") as caught:
        Images().sample((0,), 81, "train")
    assert "samples.train to 80" in caught.value.hint


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"labels": "groups", "groups": 11}, "some would be empty"),
        ({"split": "validation", "held": 80}, "leaves no image"),
        ({"dataset": "mnits"}, "dataset"),
        ({"levels": 100}, "levels"),
    ],
)
def test_what_cannot_be(fields: dict, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        Images(**fields)
