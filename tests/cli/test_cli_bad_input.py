"""Whatever is wrong: one screen on stderr, exit code 2, and nothing new on the disk."""

from __future__ import annotations

import math
import os
import shutil
from pathlib import Path

import pytest
import torch

from unmix.experiment import Experiment
from unmix.spec import read
from unmix.store import Store

FILES = {
    "empty.toml": b"",
    "blank.json": b" \n",
    "bad.toml": b"seeds = [0\n[data",
    "bad.json": b'{"seeds": [0,}',
    "deep.json": b"[" * 100_000,
    "binary.toml": bytes(range(128, 256)),
    "binary.json": b"\xff\xfe\x00",
    "list.json": b"[]",
    "null.json": b"null",
    "none.json": b"{}",
    "kindless.json": b'{"data": {}, "net": {"kind": "two-layer"}, "train": {"kind": "none"}}',
    "nan.json": b'{"data": {"kind": "clusters", "sigma": NaN}}',
    "nan.toml": b'[data]\nkind = "clusters"\nalpha = inf\n',
    "spec.yaml": b"data: {}",
    "spec": b"{}",
}


@pytest.fixture
def refused(unmix, tmp_path: Path):
    """refused(*words) -> stderr of a command that is refused as promised."""

    def call(*words: object) -> str:
        before = _tree(tmp_path)
        answer = unmix(*words)
        assert answer.code == 2, answer
        assert answer.out == ""
        assert "Traceback" not in answer.err
        assert sum(math.ceil(max(len(line), 1) / 80) for line in answer.err.splitlines()) <= 12
        assert len(answer.err.splitlines()) >= 2, "an error says what to type next"
        assert _tree(tmp_path) == before
        return answer.err

    return call


def _tree(folder: Path) -> dict[str, bytes | None]:
    return {
        str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None
        for p in folder.rglob("*")
    }


CHANGES = [
    (["data.k=33"], "k=33 orthogonal centres do not fit into d=32: need k <= d"),
    (["data.k=1"], "data.k: Input should be greater than or equal to 2, got 1"),
    (["data.k=4.5"], "got 4.5"),
    (["data.k="], "got ''"),
    (["data.positive=[]"], "empty partition"),
    (["data.positive=[0,1,2,3]"], "empty partition"),
    (["data.positive=[0,1]", "data.negative=[1,2,3]"], "overlapping partition: [1]"),
    (["data.positive=[0]", "data.negative=[1]"], "must hold each of 0..3"),
    (["data.positive=[0,0,1]"], "must hold each of 0..3"),
    (["data.positive=[0,9]"], "must hold each of 0..3"),
    (["data.weights=[1.0,2.0]"], "weights must be k=4 positive numbers"),
    (["data.cosine=-0.9"], "cosine must exceed"),
    (["data.sigma=NaN"], "data.sigma: Input should be a finite number, got nan"),
    (["data.alpha=Infinity"], "got inf"),
    (["data.alpha=-Infinity"], "got -inf"),
    (["train.eta=1e999"], "train.eta: Input should be a finite number, got inf"),
    (["train.eta=0"], "train.eta: Input should be greater than 0, got 0"),
    (["train.eta=fast"], "got 'fast'"),
    (["train.steps=-3"], "train.steps: Input should be greater than or equal to 0, got -3"),
    (["samples.train=0"], "samples.train: "),
    (["samples.train=1000000000000"], "1000000000000 points of 32 numbers fit into no machine"),
    (["data.d=99999999999999999999"], "fit into no machine"),
    (["dtype=float16"], "'float32' or 'float64', got 'float16'"),
    (["seeds=[]"], "expected at least one seed"),
    (["seeds=3"], "Input should be a list, got 3"),
    (['train.record.coefficients=["no"]'], "train.record.coefficients.0: "),
    (["net.kind=k-class", "net.labels=3"], "3 labels cannot be shared fairly"),
    (["net.kind=k-class", "net.labels=40"], "40 labels cannot be shared"),
    (["data.kk=3"], "did you mean 'k'?"),
    (["sampels.train=3"], "did you mean 'samples'?"),
    (["net.kind=two-layr"], "did you mean 'two-layer'?"),
    (["net.kind=[1]"], "there is no nets entry [1]"),
    (["data.kind={}"], "there is no data entry {}"),
    (["data=3"], "expected a table with a 'kind', got 3"),
    (["data=3", "data.k=4"], "'data' is a value, it has no field 'k'"),
    (["data={}", "data.k=4"], "data.kind: "),
    (["data.k.x=3"], "'k' is a value, it has no field 'x'"),
    (["data..k=3"], "has no field ''"),
    (["data.k"], "expected name=value, got 'data.k'"),
    (["=3"], "expected name=value, got '=3'"),
    ([""], "expected name=value, got ''"),
]


@pytest.mark.parametrize(("changes", "words"), CHANGES, ids=lambda v: str(v)[:40])
def test_an_experiment_that_cannot_be(refused, spec: Path, changes: list[str], words: str) -> None:
    options = [part for change in changes for part in ("--set", change)]
    assert words in refused("run", spec, *options)


OPTIONS = [
    ("--seeds 5:5", "the range '5:5' is empty"),
    ("--seeds 5:2", "the range '5:2' is empty"),
    ("--seeds 1,1", "distinct non-negative integers"),
    ("--seeds -1:3", "distinct non-negative integers"),
    ("--seeds a:b", "expected 0:8 or 0,3,5, got 'a:b'"),
    ("--seeds 0:1:2", "expected 0:8 or 0,3,5, got '0:1:2'"),
    ("--seeds ,", "expected 0:8 or 0,3,5, got ','"),
    ("--seeds 0:99999999999", "at most 100000 seeds, got 99999999999"),
    ("--threads 0", "expected a whole number from 1 to 1024, got '0'"),
    ("--threads -1", "got '-1'"),
    ("--threads many", "got 'many'"),
    ("--threads 100000", "got '100000'"),
    ("--device cud", "expected auto, cpu or cuda:N, got 'cud'"),
    ("--device meta", "expected auto, cpu or cuda:N, got 'meta'"),
    ("--device cuda:x", "expected auto, cpu or cuda:N, got 'cuda:x'"),
    ("--no-such-option", "No such option: --no-such-option"),
    ("one-word-more", "unexpected extra argument"),
    ("--out small.toml", "cannot write to small.toml: a file is in the way"),
    ("--out small.toml/deep", "a file is in the way"),
    ("--out /proc/nowhere", "cannot write to /proc/nowhere"),
]


@pytest.mark.parametrize(("option", "words"), OPTIONS)
def test_an_option_that_cannot_be(refused, spec: Path, option: str, words: str) -> None:
    assert words in refused("run", spec, *option.split())


SPECS = [
    ("empty.toml", "empty.toml is empty"),
    ("blank.json", "blank.json is empty"),
    ("bad.toml", "bad.toml is not valid toml: Unclosed array"),
    ("bad.json", "bad.json is not valid json: "),
    ("deep.json", "deep.json is not valid json: "),
    ("binary.toml", "cannot read binary.toml: it is not text"),
    ("binary.json", "cannot read binary.json: it is not text"),
    ("list.json", "expected a table, got []"),
    ("null.json", "expected a table, got None"),
    ("none.json", "data: "),
    ("kindless.json", "data: expected a table with a 'kind', got {}"),
    ("nan.json", "data.sigma: Input should be a finite number, got nan"),
    ("nan.toml", "data.alpha: Input should be a finite number, got inf"),
    ("spec.yaml", "expected a .toml or .json file, got 'spec.yaml'"),
    ("spec", "expected a .toml or .json file, got 'spec'"),
    ("folder.toml", "cannot read folder.toml: Is a directory"),
    ("missing.toml", "cannot read missing.toml: No such file"),
    ("", "expected a .toml or .json file"),
    ("averaging", "expected a setting of the paper"),
    ("averaging:", "averaging has no setting ''"),
    ("averaging:binry", "did you mean 'binary'"),
    ("averging:binary", "did you mean 'averaging'?"),
    ("C:/spec.toml", "there is no papers entry 'C'"),
]


@pytest.mark.parametrize(("name", "words"), SPECS)
def test_a_spec_that_cannot_be(refused, tmp_path: Path, name: str, words: str) -> None:
    if name in FILES:
        (tmp_path / name).write_bytes(FILES[name])
    (tmp_path / "folder.toml").mkdir()
    assert words in refused("run", name)


COMMANDS = [
    ("list clams", "did you mean 'claims'?"),
    ("list papers data", "unexpected extra argument"),
    ("frobnicate", "No such command 'frobnicate'"),
    ("run", "Missing argument 'SPEC'"),
    ("reproduce", "expected the name of a paper or --all"),
    ("reproduce averging", "did you mean 'averaging'?"),
    ("reproduce averaging thm-4.5.9", "did you mean 'thm-4.5.1'"),
    ("reproduce averaging zzz", "averaging has no claim or figure 'zzz'"),
    ("reproduce averaging 1 --quick --paper", "--quick and --paper exclude each other"),
    ("reproduce averaging 1 --workers 0", "expected a whole number from 1 to 1024, got '0'"),
    ("reproduce averaging 1 --threads 0", "expected a whole number from 1 to 1024, got '0'"),
    ("reproduce averaging 1 --device gpu", "expected auto, cpu or cuda:N, got 'gpu'"),
    ("reproduce averaging 1 --out small.toml", "cannot write to small.toml"),
    ("reproduce averaging 1 --runs small.toml", "cannot write to small.toml"),
    ("reproduce averaging 1 --out /proc/nowhere", "cannot write to /proc/nowhere"),
    ("reproduce averaging 1 --runs /proc/nowhere", "cannot write to /proc/nowhere"),
    ("show", "expected a run, a paper or --sql"),
    ("show averging", "did you mean the paper 'averaging'?"),
    ("show nothing", "there is no run 'nothing' in runs"),
    ("show 0123", "the store runs is empty: run an experiment first"),
    ("show .", "is not a finished run: it has no file DONE"),
    ("show small.toml", "there is no run 'small.toml'"),
    ("show averaging --html --latex", "exclude each other"),
    ("show averaging --html --out /proc/nowhere", "cannot write to /proc/nowhere"),
    ("show nothing --html", "there is no run 'nothing' in runs"),
    ("show nothing --latex", "there is no run 'nothing' in runs"),
    ("show --html --sql x", "--html and --latex are for runs and papers"),
    ("show averaging --sql x", "a paper or --sql, and one only"),
]


@pytest.mark.parametrize(("command", "words"), COMMANDS)
@pytest.mark.usefixtures("spec")
def test_a_command_that_cannot_be(refused, command: str, words: str) -> None:
    assert words in refused(*command.split())


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("verb", [["run", "small.toml"], ["reproduce", "averaging", "1"]])
@pytest.mark.usefixtures("spec")
def test_a_gpu_that_is_not_there(refused, verb: list[str]) -> None:
    assert "try --device cpu" in refused(*verb, "--device", "cuda:0")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("verb", ["run small.toml --out", "reproduce averaging 1 --runs"])
@pytest.mark.usefixtures("spec")
def test_a_folder_without_permission(refused, tmp_path: Path, verb: str) -> None:
    (tmp_path / "closed").mkdir(mode=0o555)
    for place in ("closed", "closed/deep"):
        assert "Permission denied" in refused(*verb.split(), place)


QUERIES = [
    ("selec", "syntax error"),
    ("SELECT * FROM nothing", "nothing does not exist"),
    ("SELECT nothing FROM runs", '"nothing" not found'),
    ("DROP TABLE runs", "expected one SELECT"),
    ("SELECT 1; SELECT 2", "expected one SELECT"),
    ("COPY (SELECT 1) TO 'x.csv'", "expected one SELECT"),
    ("", "expected one SELECT"),
]


@pytest.mark.parametrize(("query", "words"), QUERIES)
def test_a_query_that_cannot_be(refused, spec: Path, tmp_path: Path, query, words) -> None:
    assert words in refused("show", "--sql", query)
    Store(tmp_path / "runs").run(read(Experiment, spec).with_("train.steps=1"))
    assert words in refused("show", "--sql", query)
    assert words in refused("show", "--sql", query, "--json")


@pytest.mark.parametrize("folder", ["nowhere", "empty"])
def test_an_empty_store_has_no_answers(refused, tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    told = refused("show", "--sql", "SELECT * FROM runs", "--runs", folder)
    assert f"the store {folder} is empty" in told


@pytest.mark.parametrize("damage", ["params.safetensors", "experiment.json", "missing", "renamed"])
def test_a_folder_that_is_no_run(refused, spec: Path, tmp_path: Path, damage: str) -> None:
    experiment = read(Experiment, spec).with_("train.steps=1")
    folder = Store(tmp_path / "runs").run(experiment).folder
    if damage == "missing":
        (folder / "trace.parquet").unlink()
    elif damage == "renamed":
        folder = shutil.move(folder, folder.with_name("0" * 16))
    else:
        with (folder / damage).open("ab") as file:
            file.write(b" ")
    words = "is foreign" if damage == "renamed" else "is damaged"
    for command in (["show", folder], ["show", folder.name], ["show", "averaging"]):
        told = refused(*command)
        assert words in told
        assert folder.name in told
    if damage != "renamed":
        told = refused("run", spec, "--set", "train.steps=1")
        assert f"delete it and run again: rm -r 'runs/{folder.name}'" in told


def test_a_process_keeps_to_the_same_promise(process, spec: Path, tmp_path: Path) -> None:
    for words in (["run", spec, "--set", "data.k=99"], ["run", spec, "--threads", "0"], ["show"]):
        answer = process(*words)
        assert (answer.code, answer.out) == (2, "")
        assert "rror: " in answer.err
        assert len(answer.err.splitlines()) <= 12
    assert [p.name for p in tmp_path.iterdir()] == ["small.toml"]
