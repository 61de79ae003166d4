"""Images without a network: all that conformance tests see of MNIST is 400 and 300 made-up ones."""

from __future__ import annotations

import pytest

from pictures import install


@pytest.fixture(autouse=True)
def _tiny_images(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, tmp_path_factory.getbasetemp() / "images-data", 400, 300)
