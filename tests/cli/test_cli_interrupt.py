"""Ctrl-C and kill: a clean stop that says how to go on, and the same bytes in the end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from unmix import terminal

SAME = ("experiment.json", "trace.parquet", "stops.json", "params.safetensors")
WORDS = ["run", "small.toml", "--seeds", "0", "--set", "train.steps=2000", "--threads", "1"]
# The probes of a k-class net take the least time after the training.
WORDS += ["--set", "net.kind=k-class", "--json"]
UNMIX = Path(sys.executable).with_name("unmix")
GO_ON = "  the same command goes on from there\n"
# Only a dead process waits as long as this, however busy the machine is.
PATIENCE = 300
# The command line as it is, but with its own checkpoints, and a signal to the whole group as soon
# as a share of the training is done: a signal from outside would be late on a busy machine.
STRUCK = """
import os, sys
from pathlib import Path
from unmix import cli, store

how, share, every = int(sys.argv.pop(1)), float(sys.argv.pop(1)), float(sys.argv.pop(1))
store.Store.__init__.__defaults__ = (Path("runs"), every)
run = store.Store.run

def struck(self, experiment, *, progress, **options):
    def tell(done, total):
        progress(done, total)
        if done >= share * total:
            os.killpg(0, how)
    return run(self, experiment, progress=tell, **options)

store.Store.run = struck
cli.main()
"""
# The same for a pool, at the first word of its workers.
POOL_STRUCK = """
import os, signal
from unmix import cli, reproduction

execute = reproduction.execute

def struck(*args, progress, **options):
    def tell(done, total, what):
        progress(done, total, what)
        if done > 0:
            os.killpg(0, signal.SIGINT)
    execute(*args, progress=tell, **options)

if __name__ == "__main__":
    reproduction.execute = struck
    cli.main()
"""
# Ctrl-C at the very moment when torch is being imported.
EARLY = """
import os, signal, sys

class Press:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Press())
from unmix import cli
cli.main()
"""


def start(folder: Path, *command: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *map(str, command)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def until(child: subprocess.Popen[str], words: str) -> None:
    """Wait for a line of the log."""
    assert child.stderr is not None
    for line in child.stderr:
        if words in line:
            return
    raise AssertionError(f"it never said {words!r}")


def tenths(log: str) -> list[int]:
    return [int(found) for found in re.findall(r"^training: (\d+) %", log, re.MULTILINE)]


def files(folder: Path) -> dict[str, bytes]:
    """What must not depend on how often a training was disturbed."""
    (run,) = (folder / "runs").glob("[0-9a-f]*")
    return {name: (run / name).read_bytes() for name in SAME}


@pytest.fixture(scope="module")
def calm(tmp_path_factory, toml: str) -> dict[str, bytes]:
    """The files of a run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("calm")
    (folder / "small.toml").write_text(toml, encoding="utf-8")
    child = start(folder, UNMIX, *WORDS)
    child.communicate(timeout=PATIENCE)
    assert child.returncode == 0
    return files(folder)


@pytest.fixture(autouse=True)
def _a_spec(spec: Path) -> None:
    """Every command finds its spec."""


def test_ctrl_c_stops_cleanly(tmp_path: Path) -> None:
    # An hour is never over, so there is no checkpoint to keep.
    child = start(tmp_path, "-c", STRUCK, int(signal.SIGINT), 0.1, 3600, *WORDS)
    out, err = child.communicate(timeout=PATIENCE)
    assert (child.returncode, out) == (130, "")
    assert "training: 10 %" in err
    assert err.endswith("\nstopped; finished runs and checkpoints are kept\n" + GO_ON)
    assert "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["small.toml"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=lambda s: s.name)
def test_the_same_command_goes_on_and_ends_the_same(tmp_path: Path, calm, how) -> None:
    # A checkpoint at every step: the last one is of the step before the signal.
    child = start(tmp_path, "-c", STRUCK, int(how), 0.5, 0, *WORDS)
    child.communicate(timeout=PATIENCE)
    assert child.returncode == (130 if how == signal.SIGINT else -how)
    assert list((tmp_path / "runs").glob("[0-9a-f]*")) == []
    assert len(list((tmp_path / "runs" / ".partial").glob("*/*.safetensors"))) == 1
    child = start(tmp_path, UNMIX, *WORDS)
    _, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == 0
    # Half of it was done before, and is neither done nor told again.
    told = tenths(err)
    assert 50 <= told[0] <= 60
    assert told == list(range(told[0], 101, 10))
    assert files(tmp_path) == calm
    assert [*(tmp_path / "runs" / ".partial").iterdir(), *(tmp_path / "runs/.tmp").iterdir()] == []


def test_a_kill_while_it_is_stored_does_no_harm(tmp_path: Path, calm) -> None:
    child = start(tmp_path, UNMIX, *WORDS)
    until(child, "training: 100 %")
    child.kill()
    child.communicate(timeout=PATIENCE)
    for folder in (tmp_path / "runs").glob("[0-9a-f]*"):
        assert (folder / "DONE").is_file()
    child = start(tmp_path, UNMIX, *WORDS)
    child.communicate(timeout=PATIENCE)
    assert child.returncode == 0
    assert files(tmp_path) == calm


def test_ctrl_c_while_torch_is_loading(tmp_path: Path) -> None:
    child = start(tmp_path, "-c", EARLY, *WORDS)
    out, err = child.communicate(timeout=PATIENCE)
    assert (child.returncode, out) == (130, "")
    assert err == "\nstopped; finished runs and checkpoints are kept\n" + GO_ON
    assert [path.name for path in tmp_path.iterdir()] == ["small.toml"]


def test_ctrl_c_reaches_the_workers(tmp_path: Path) -> None:
    # Four short runs for two workers.
    words = ["reproduce", "averaging", "prop-4.8-loss", "--workers", "2"]
    child = start(tmp_path, "-c", POOL_STRUCK, *words)
    out, err = child.communicate(timeout=PATIENCE)
    assert (child.returncode, out) == (130, "")
    assert "stopped; " in err
    assert "the same command goes on" in err
    assert "Traceback" not in err
    assert _gone(child.pid)
    assert not (tmp_path / "report").exists()


def _gone(group: int) -> bool:
    """Whether every process of the group ends."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def lose_a_ctrl_c() -> None:
    """Work in which the first KeyboardInterrupt is swallowed, as code in C may do."""
    with terminal.progress("work") as tell:
        tell(1, 3, "")
        with suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        tell(2, 3, "")
        raise AssertionError("the work went on")


def test_a_ctrl_c_that_was_swallowed_is_not_lost() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        lose_a_ctrl_c()
    assert signal.getsignal(signal.SIGINT) is before


def test_a_log_has_a_line_for_each_tenth(capsys) -> None:
    with terminal.progress("work") as tell:
        for step in range(1001):
            tell(step, 1000, "")
    with terminal.progress("rest") as tell:
        for step in range(55, 101):
            tell(step, 100, "")
    with terminal.progress("nothing") as tell:
        tell(5, 5, "")
    with terminal.waiting("a moment") as tell:
        tell(1, 2, "")
    out, err = capsys.readouterr()
    assert out == ""
    lines = [line.split(",")[0] for line in err.splitlines()]
    told = [f"work: {n} %" for n in range(10, 101, 10)]
    assert lines == told + [f"rest: {n} %" for n in range(60, 101, 10)]


def test_the_time_left_leaves_out_what_was_done_before(capsys, monkeypatch) -> None:
    clock = iter([0.0, 10.0, 20.0])
    monkeypatch.setattr(terminal.time, "monotonic", lambda: next(clock))
    with terminal.progress("work") as tell:
        for done in (50, 60, 70):
            tell(done, 100, "")
    assert capsys.readouterr().err.splitlines() == [
        "work: 60 %, 10 s, about 40 s left",
        "work: 70 %, 20 s, about 30 s left",
    ]
