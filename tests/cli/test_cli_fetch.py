"""`unmix fetch`: from one's own folder here; no test needs a network."""

from __future__ import annotations

from pathlib import Path

import pytest

from pictures import install


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    install(monkeypatch, tmp_path / "data", 30, 20)
    monkeypatch.setenv("PATH", "/nowhere")
    return tmp_path / "data" / "images"


def test_fetched_images_are_here(unmix, images: Path) -> None:
    assert unmix("fetch", "mnist").code == 0
    assert (images / "mnist.sha256").is_file()
    again = unmix("fetch", "mnist")
    assert again.code == 0
    assert str(images) in again.out


def test_what_cannot_be_fetched_is_told(unmix, images: Path) -> None:
    answer = unmix("fetch", "fashion-mnist")
    assert answer.code == 2
    assert "apt-get download dataset-fashion-mnist" in answer.err
    assert str(images / "fashion-mnist") in answer.err
    assert "did you mean 'mnist'" in unmix("fetch", "mnits").err
