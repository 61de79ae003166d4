"""The command line in this process (fast) and as a process of its own (true)."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from unmix import cli
from unmix.papers.averaging import PAPER
from unmix.reproduction import Task
from unmix.store import Store

TOML = """
seeds = [0, 1]
[data]
kind = "clusters"
k = 4
d = 32
[net]
kind = "two-layer"
m = 2
[train]
kind = "gradient-descent"
eta = 0.05
steps = 30
[samples]
train = 64
test = 8
"""


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What stdout holds; NaN and Infinity are no JSON."""

        def refuse(name: str) -> None:
            raise AssertionError(f"{name} in JSON")

        return json.loads(self.out, parse_constant=refuse)


Unmix = Callable[..., Answer]


@pytest.fixture(scope="session")
def toml() -> str:
    return TOML


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(TOML, encoding="utf-8")
    return path


@pytest.fixture
def unmix(monkeypatch, capsys, tmp_path: Path) -> Unmix:
    """unmix(*words) in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*words: object) -> Answer:
        monkeypatch.setattr(sys, "argv", ["unmix", *map(str, words)])
        code: object = 0
        try:
            cli.main()
        except SystemExit as end:
            code = end.code or 0
        assert isinstance(code, int)
        return Answer(code, *capsys.readouterr())

    return call


@pytest.fixture
def process(tmp_path: Path) -> Unmix:
    """process(*words) as a user runs it, in the same folder."""

    def call(*words: object, **options: Any) -> Answer:
        command = [str(Path(sys.executable).with_name("unmix")), *map(str, words)]
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=300, **options
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture(scope="session")
def attacked_once(tmp_path_factory) -> Path:
    """A store with the one attacked run that claim thm-d.1 rests on, not yet judged."""
    root = tmp_path_factory.mktemp("attacked")
    Task.of(PAPER, "thm-d.1", "quick", Store(root)).run(lambda done, total, what: None)
    return root


@pytest.fixture
def runs(attacked_once: Path, tmp_path: Path) -> Path:
    """The same store, where the commands look for it."""
    return shutil.copytree(attacked_once, tmp_path / "runs")
