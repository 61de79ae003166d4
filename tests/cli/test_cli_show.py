"""`unmix show`: stored runs, papers, SQL; as text, JSON, LaTeX and a page."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from unmix.claims import Verdict
from unmix.experiment import Experiment
from unmix.papers.averaging import PAPER
from unmix.spec import read
from unmix.store import Store


@pytest.fixture
def folder(unmix, spec: Path, tmp_path: Path) -> Path:
    """Of a stored run of two seeds."""
    return Store(tmp_path / "runs").run(read(Experiment, spec)).folder


def test_a_run_is_found_by_folder_digest_and_prefix(unmix, spec: Path, folder: Path) -> None:
    trained = unmix("run", spec)
    for what in (folder, folder.name, folder.name[:4]):
        assert unmix("show", what).out == trained.out
    data = unmix("show", folder.name, "--json")
    assert data.json == unmix("run", spec, "--json").json
    assert data.json["digest"] == folder.name
    elsewhere = folder.parents[1] / "elsewhere" / folder.name
    shutil.copytree(folder, elsewhere)
    assert unmix("show", folder.name, "--runs", "elsewhere").out == trained.out
    assert unmix("show", elsewhere).out == trained.out


@pytest.mark.usefixtures("runs")
def test_a_paper_before_and_after(unmix) -> None:
    before = unmix("show", "averaging", "--json")
    assert before.code == 0
    assert {record["claim"] for record in before.json} == {c.name for c in PAPER.claims}
    assert {record["status"] for record in before.json} == {"not-run"}
    reasons = {record["claim"]: record["why"] for record in before.json}
    assert reasons["thm-d.1"] == "not in the store: unmix reproduce averaging"
    assert reasons["fig-2c"] == PAPER.claim("fig-2c").why_not
    (judged,) = unmix("reproduce", "averaging", "thm-d.1", "--json").json
    after = unmix("show", "averaging", "--json").json
    assert [r for r in after if r["status"] != "not-run"] == [judged]
    said = unmix("show", "averaging")
    (row,) = (line for line in said.out.splitlines() if line.startswith("thm-d.1 "))
    assert "supported" in row
    assert said.err == f"1 supported, {len(PAPER.claims) - 1} not-run\n"


@pytest.mark.parametrize("order", [0, 1])
def test_of_several_verdicts_the_weightiest_is_shown(unmix, spec: Path, tmp_path, order) -> None:
    store, experiment = Store(tmp_path / "runs"), read(Experiment, spec)
    pair = [experiment, experiment.with_("train.eta=0.06")]
    runs = sorted((store.run(e) for e in pair), key=lambda run: run.experiment.digest())
    full = Verdict("thm-d.1", "confirmed", "full", "paper", 1.0, 1.0, 1.0, 5)
    quick = replace(full, status="supported", scale="reduced", replicas=50)
    for run, verdict in zip(runs, (full, quick) if order else (quick, full), strict=True):
        store.annotate(run, [verdict])
    records = {r["claim"]: r["status"] for r in unmix("show", "averaging", "--json").json}
    assert records["thm-d.1"] == "confirmed"


def test_a_run_of_another_version_does_not_speak(unmix, folder: Path, tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    kept = Verdict("thm-d.1", "confirmed", "", "paper", 1.0, 1.0, 1.0, 5)
    store.annotate(store.load(folder), [kept])
    statuses = {r["claim"]: r["status"] for r in unmix("show", "averaging", "--json").json}
    assert statuses["thm-d.1"] == "confirmed"
    env = json.loads((folder / "env.json").read_text())
    content = json.dumps(env | {"unmix": "0.0.0"}).encode()
    old = hashlib.sha256((folder / "env.json").read_bytes()).hexdigest()
    (folder / "env.json").write_bytes(content)
    done = (folder / "DONE").read_text()
    (folder / "DONE").write_text(done.replace(old, hashlib.sha256(content).hexdigest()))
    answer = unmix("show", "averaging", "--json")
    assert answer.code == 0
    assert {record["status"] for record in answer.json} == {"not-run"}


def test_the_page_is_written_where_it_says(unmix, tmp_path: Path) -> None:
    answer = unmix("show", "averaging", "--html", "--out", "there")
    assert (answer.code, answer.out) == (0, "there/index.html\n")
    assert PAPER.title in (tmp_path / "there/index.html").read_text(encoding="utf-8")


def test_a_run_has_a_page_and_a_table_of_its_own_claims(unmix, folder: Path, tmp_path) -> None:
    for form in ("--html", "--latex"):
        answer = unmix("show", folder.name, form)
        assert answer.code == 2
        assert f"no claim was judged on runs/{folder.name}" in answer.err
    store = Store(tmp_path / "runs")
    judged = Verdict("thm-d.1", "supported", "why not", "reduced", 1.0, 1.0, 1.0, 5)
    store.annotate(store.load(folder), [judged])
    answer = unmix("show", folder.name, "--html")
    assert (answer.code, answer.out) == (0, f"report/{folder.name}/index.html\n")
    text = (tmp_path / answer.out.strip()).read_text(encoding="utf-8")
    assert text.count(' data-status="supported">') == 1
    assert "thm-d.1" in text
    table = unmix("show", folder.name, "--latex").out
    assert table.count(r"\textbf{supported}: why not") == table.count(r"\addlinespace") == 1


def test_the_latex_holds_the_figures_of_a_report(unmix, tmp_path: Path) -> None:
    assert "includegraphics" not in unmix("show", "averaging", "--latex").out
    there = tmp_path / "report/figures/averaging"
    there.mkdir(parents=True)
    (there / "2a.pdf").write_bytes(b"%PDF-1.5")
    told = unmix("show", "averaging", "--latex").out
    assert told.count(r"\includegraphics") == 1
    assert r"{\detokenize{report/figures/averaging/2a.pdf}}" in told


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
@pytest.mark.usefixtures("runs")
def test_the_latex_compiles(unmix, tmp_path: Path) -> None:
    unmix("reproduce", "averaging", "thm-d.1")
    answer = unmix("show", "averaging", "--latex")
    assert (answer.code, answer.err) == (0, "")
    assert r"\toprule" in answer.out
    assert r"\textbf{supported}" in answer.out
    (tmp_path / "verdicts.tex").write_text(answer.out, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "verdicts.tex"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=300)
    assert (tmp_path / "verdicts.pdf").stat().st_size > 10_000


def test_sql_is_answered_as_a_table_and_as_data(unmix, folder: Path) -> None:
    query = "SELECT digest, data_k, seeds FROM runs"
    head, row = unmix("show", "--sql", query).out.splitlines()
    assert head.split() == ["digest", "data_k", "seeds"]
    assert row.split() == [folder.name, "4", "2"]
    assert unmix("show", "--sql", query, "--json").json == [
        {"digest": folder.name, "data_k": 4, "seeds": 2}
    ]
    columns = unmix("show", "--sql", "DESCRIBE trace", "--json").json
    assert {"digest", "step", "loss"} <= {column["column_name"] for column in columns}


@pytest.mark.usefixtures("folder")
def test_an_answer_in_json_has_only_what_json_has(unmix) -> None:
    query = """SELECT 'nan'::DOUBLE AS a, [1.5, 'inf'::DOUBLE] AS b, {'x': -'inf'::DOUBLE} AS c,
        DATE '2020-01-31' AS d, NULL AS e, 2.50::DECIMAL(4, 2) AS f, true AS g"""
    (row,) = unmix("show", "--sql", query, "--json").json
    assert row == {
        "a": None,
        "b": [1.5, None],
        "c": {"x": None},
        "d": "2020-01-31",
        "e": None,
        "f": "2.50",
        "g": True,
    }


def test_cells_are_shown_as_they_are(unmix, folder: Path) -> None:
    text = r"[bold]a[/bold] \[x] refuted"
    said = unmix("show", "--sql", f"SELECT '{text}' AS a, repeat('x', 500) AS b")
    assert said.code == 0
    assert said.out.splitlines()[1].split("  ") == [text, "x" * 500]


def test_any_encoding_will_do(process, spec: Path) -> None:
    env = {"PYTHONIOENCODING": "latin-1", "PATH": "/usr/bin"}
    answer = process("run", spec, "--set", "train.steps=1", env=env, encoding="latin-1")
    assert answer.code == 0
    assert "mean ± sd" in answer.out
    assert r"\u2212" in answer.out


def test_a_reader_may_leave(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("unmix")), "list", "claims"]
    line = f"{' '.join(command)} | head -1"
    done = subprocess.run(
        line, shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert (done.stdout, done.stderr) == ("claims:\n", "")
