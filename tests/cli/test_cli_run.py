"""`unmix run`: what is trained, what is said, and where it is said."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from unmix import catalog, cli
from unmix.experiment import Experiment
from unmix.experiment import run as train
from unmix.report.tables import number
from unmix.spec import read

SAME = ("experiment.json", "trace.parquet", "stops.json", "params.safetensors")


def test_the_numbers_are_those_of_the_training(unmix, spec: Path) -> None:
    done = train(read(Experiment, spec))
    said, data = unmix("run", spec), unmix("run", spec, "--json").json
    assert said.code == 0
    head, stops, *lines = said.out.splitlines()
    assert head == f"{done.experiment.digest()}: two-layer on clusters, 2 seeds"
    assert stops == "seeds 0, 1: all 30 steps done"
    assert lines[0].split() == ["probe", "mean", "±", "sd"]
    table = dict(line.rsplit("  ", 1) for line in (line.rstrip() for line in lines[1:]))
    told = {name.strip(): words.strip() for name, words in table.items()}
    for name in ("cosines", "margins", "activation"):
        for value, column in catalog.load("probes", name)(done).values.items():
            both = number(float(column.mean())), number(float(column.std()))
            assert told[f"{name}.{value}"] == " ± ".join(both)
            assert data["probes"][f"{name}.{value}"] == pytest.approx(column.tolist(), rel=1e-9)
    assert list(data["probes"]) == list(told)
    assert data["experiment"] == done.experiment.plain()
    assert [stop["step"] for stop in data["stops"]] == [30, 30]


def test_one_seed_has_no_spread(unmix, spec: Path) -> None:
    said = unmix("run", spec, "--seeds", "5")
    assert ", 1 seed\nseed 5: all 30 steps done\n" in said.out
    assert "±" not in said.out
    assert "cosines.on " in said.out


def test_a_stored_run_is_not_trained_again(unmix, spec: Path, tmp_path: Path) -> None:
    first = unmix("run", spec)
    (folder,) = (tmp_path / "runs").glob("[0-9a-f]*")
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir() if path.name in SAME}
    second = unmix("run", spec)
    assert "training:" in first.err
    assert "training:" not in second.err
    assert second.out == first.out
    assert before == {path: path.stat().st_mtime_ns for path in before}
    assert len(before) == len(SAME)
    assert f"stored in {Path('runs') / folder.name}" in second.err


def test_two_folders_hold_the_same_bytes(unmix, spec: Path, tmp_path: Path) -> None:
    folders = []
    for name in ("one", "deep/two"):
        assert unmix("run", spec, "--out", name, "--threads", "1").code == 0
        folders += (tmp_path / name).glob("[0-9a-f]*")
    one, two = folders
    assert one.name == two.name
    for name in SAME:
        assert (one / name).read_bytes() == (two / name).read_bytes()
    assert json.loads((two / "env.json").read_text())["threads"] == 1


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        (["--set", "data.k=100", "--set", "data.d=200"], {"data": {"k": 100, "d": 200}}),
        (["--set", "data.d=3", "--set", "data.k=2"], {"data": {"d": 3, "k": 2}}),
        (["--set", "net.kind=k-class", "--set", "net.h=2"], {"net": {"kind": "k-class", "h": 2}}),
        (["--set", "data.sizes=balanced"], {"data": {"sizes": "balanced"}}),
        (["--seeds", "2:5"], {"seeds": [2, 3, 4]}),
        (["--seeds", "7,0"], {"seeds": [7, 0]}),
        (["--set", "seeds=[1]", "--seeds", "3"], {"seeds": [3]}),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_changes_are_judged_as_a_whole(unmix, spec: Path, words: list[str], changed: dict) -> None:
    answer = unmix("run", spec, "--set", "train.steps=1", *words, "--json")
    assert answer.code == 0, answer.err
    experiment = answer.json["experiment"]
    for part, values in changed.items():
        came = experiment[part]
        assert values == ({k: came[k] for k in values} if isinstance(values, dict) else came)
    assert experiment["train"]["steps"] == 1


def test_toml_json_and_a_stored_spec_are_one_experiment(unmix, spec: Path, tmp_path: Path) -> None:
    digest = unmix("run", spec, "--json").json["digest"]
    stored = tmp_path / "runs" / digest / "experiment.json"
    again = unmix("run", stored, "--json")
    assert (again.json["digest"], again.code) == (digest, 0)
    assert "training:" not in again.err


def test_a_setting_of_a_paper_is_a_spec(unmix) -> None:
    words = ["--set", "data.d=16", "--set", "samples.test=4", "--seeds", "0", "--json"]
    found = unmix("run", "averaging:FA-k4", *words).json
    assert found["experiment"]["net"]["kind"] == "feature-averaging"
    assert (found["experiment"]["data"]["k"], found["experiment"]["data"]["d"]) == (4, 16)


def test_a_training_that_diverges_ends_in_advice(unmix, spec: Path, tmp_path: Path) -> None:
    words = ["run", spec, "--set", "train.eta=1e300"]
    for attempt in ("trained", "stored"):
        answer = unmix(*words)
        assert answer.code == 2
        *log, error, advice = answer.err.splitlines()
        assert all(line.startswith("training: ") for line in log)
        assert bool(log) is (attempt == "trained")
        assert error.startswith("error: training diverged on seed 1, first at step 1; ")
        assert advice == "  lower train.eta (now 1e+300), for example to 1e+299"
        assert "seed 1: diverged at step 1; lower train.eta" in answer.out
        assert "nan" not in answer.out
    answer = unmix(*words, "--json")
    assert answer.code == 2
    reasons = [(stop["reason"], stop["step"]) for stop in answer.json["stops"]]
    assert reasons == [("steps", 30), ("diverged", 1)]
    assert answer.json["probes"] == {}
    assert (tmp_path / answer.json["folder"] / "DONE").is_file()


def test_data_go_to_stdout_and_progress_to_stderr(process, spec: Path) -> None:
    answer = process("run", spec, "--json", "--seeds", "0", "--threads", "1")
    assert answer.code == 0
    assert len(answer.json["probes"]) > 20
    *log, last = answer.err.splitlines()
    told = [re.fullmatch(r"training: (\d+) %, \d+ s, about \d+ s left", line) for line in log]
    assert [match and int(match[1]) for match in told] == list(range(10, 101, 10))
    assert last.startswith("stored in runs/")


def test_a_terminal_has_a_live_bar_with_the_time_left(spec: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [Path(sys.executable).with_name("unmix"), "run", spec, "--json", "--seeds", "0"]
    command += ["--set", "train.steps=1500", "--set", "net.kind=k-class", "--threads", "1"]
    env = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=theirs, text=True, env=env
    ) as child:
        os.close(theirs)
        seen = ""
        while chunk := _read(ours):
            seen += chunk
        assert child.stdout is not None
        data = json.loads(child.stdout.read())
    os.close(ours)
    assert child.returncode == 0
    assert data["stops"][0]["step"] == 1500
    # A bar is drawn over itself; a log's lines are not there.
    assert "training" in seen
    assert "left" in seen
    assert re.search(r"\d+ %", seen)
    assert "\x1b[" in seen
    assert "training: 10 %" not in seen


def _read(handle: int) -> str:
    try:
        return os.read(handle, 4096).decode(errors="replace")
    except OSError:
        # The other side of a terminal was closed.
        return ""


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 8 TiB"),
        RuntimeError("[enforce fail at x] DefaultCPUAllocator: can't allocate memory: 8 bytes"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_full_memory_is_explained(unmix, spec: Path, tmp_path, monkeypatch, error) -> None:
    def full(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("unmix.store.train", full)
    answer = unmix("run", spec)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error: not enough memory: ")
    assert "enforce" not in answer.err
    assert "lower samples.train" in answer.err
    assert not (tmp_path / "runs").exists()


def test_other_failures_are_not_hidden(unmix, spec: Path, monkeypatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr("unmix.store.train", broken)
    with pytest.raises(RuntimeError, match="a defect"):
        unmix("run", spec)


def test_threads_are_left_as_they_were(unmix, spec: Path) -> None:
    torch.set_num_threads(1)
    assert unmix("run", spec, "--threads", "2").code == 0
    assert torch.get_num_threads() == 1


def test_a_run_tells_its_cost_instead_of_starting_or_before(
    unmix, spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = unmix("run", spec, "--estimate")
    assert said.code == 0
    assert re.search(r"about \d+ s on 1 process", said.out)
    assert not (tmp_path / "runs").exists()
    assert unmix("run", "patches:cifar10-adv-full", "--estimate", "--json").code == 0
    monkeypatch.setattr(cli, "LONG", 0)
    assert re.search(r"about \d+ s on one core, .* multiplications", unmix("run", spec).err)
    assert "on one core" not in unmix("run", spec).err
