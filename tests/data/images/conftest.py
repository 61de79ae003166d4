"""A data folder of the test's own, and a dataset so small that a test can write it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pictures import tiny_mnist
from unmix.data.images import datasets


@pytest.fixture
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data"
    monkeypatch.setenv("UNMIX_DATA", str(folder))
    return folder


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """The files of "mnist" of 30 and 20 images, and no source but one's own folder."""
    small, files = tiny_mnist()
    monkeypatch.setitem(datasets.DATASETS, "mnist", small)
    monkeypatch.setenv("PATH", "/nowhere")
    return files
