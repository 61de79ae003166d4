"""`unmix reproduce`: verdicts, figures, a report and an exit code."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from unmix import catalog
from unmix.claims import Claim, Interval
from unmix.papers import averaging
from unmix.report.export import FORMATS
from unmix.reproduction import Task
from unmix.store import Store

PAPER = averaging.PAPER
CHEAP = PAPER.claim("thm-d.1")


def only(monkeypatch, claim: Claim) -> None:
    """Let the paper have this claim and one cheap figure, and nothing else."""
    nothing = {"predictions": (), "contenders": (), "findings": (), "explorer": "", "explored": ()}
    small = replace(PAPER, claims=(claim,), figures=(PAPER.figure("1"),), **nothing)
    monkeypatch.setattr(averaging, "PAPER", small)
    assert catalog.load("papers", "averaging") is small


def test_one_claim_is_judged_and_kept(unmix, tmp_path: Path) -> None:
    first = unmix("reproduce", "averaging", "thm-d.1")
    assert first.code == 0
    title, head, row = first.out.splitlines()
    assert title == PAPER.title
    assert head.split()[:3] == ["claim", "where", "wanted"]
    assert row.split()[:4] == ["thm-d.1", "Thm", "D.1", "≥"]
    assert "◐ supported" in row
    assert first.err.splitlines()[-1] == "1 supported"
    assert first.err.startswith("runs: ")
    store = Store(tmp_path / "runs")
    settings = PAPER.settings("quick")
    digests = [settings[s].experiment.digest() for s in CHEAP.settings]
    assert store.digests() == sorted(digests)
    verdicts = [v for digest in digests for v in store.verdicts(store.load(digest))]
    assert {(v.claim, v.status) for v in verdicts} == {("thm-d.1", "supported")}
    again = unmix("reproduce", "averaging", "thm-d.1", "--quick")
    assert (again.code, again.out) == (0, first.out)
    assert "runs: " not in again.err
    data = unmix("reproduce", "averaging", "thm-d.1", "--json")
    ((record),) = data.json
    assert (record["claim"], record["status"], record["runs"]) == ("thm-d.1", "supported", digests)


def test_one_figure_is_drawn(unmix, tmp_path: Path) -> None:
    said = unmix("reproduce", "averaging", "1", "--out", "there")
    assert said.code == 0
    told = [Path(line.removeprefix("figure: ")) for line in said.out.splitlines()]
    assert {path.suffix[1:] for path in told} == set(FORMATS)
    for path in told:
        assert path.parent == Path("there/figures/averaging")
        assert (tmp_path / path).stat().st_size > 0
    data = unmix("reproduce", "averaging", "1", "--out", "there", "--json")
    assert data.json == []
    assert [line for line in data.err.splitlines() if line.startswith("figure: ")] == [
        f"figure: {path}" for path in told
    ]


def test_a_figure_that_cannot_be_drawn_says_why(unmix, tmp_path: Path) -> None:
    said = unmix("reproduce", "averaging", "2c")
    assert said.code == 0
    assert said.out.splitlines()[-1].startswith("figure 2c is not drawn: needs embeddings")
    assert "not-run" in said.out
    assert not (tmp_path / "report").exists()


@pytest.mark.parametrize(
    ("name", "claims"),
    [
        ("1", set()),
        ("2a", {"fig-2a", "fig-2a-average"}),
        ("fig-2b", {"fig-2b", "fig-2b-h3", "fig-2b-h5"}),
        ("fig-2a-average", {"fig-2a-average"}),
        ("3-left", {"fig-3-left", "fig-3-left-area"}),
        ("10", {"fig-10"}),
    ],
)
def test_a_figure_brings_its_own_claims(tmp_path: Path, name: str, claims: set[str]) -> None:
    task = Task.of(PAPER, name, "quick", Store(tmp_path))
    assert {c.name for c in task.claims} == claims


REFUTED = replace(CHEAP, kind="identity", interval=Interval(2.0, 3.0))
# f_FA has one neuron a side, so this is no number.
FAILED = replace(CHEAP, measure="cosines.pair_plus")
UNMEASURED = replace(CHEAP, measure="decomposition.lambda_own")


@pytest.mark.parametrize(
    ("claim", "status", "code"),
    [
        (CHEAP, "supported", 0),
        (REFUTED, "refuted", 1),
        (FAILED, "failed", 1),
        (UNMEASURED, "not-run", 0),
    ],
    ids=["supported", "refuted", "failed", "not-run"],
)
@pytest.mark.usefixtures("runs")
def test_the_exit_code_is_the_verdict(unmix, monkeypatch, claim: Claim, status: str, code) -> None:
    only(monkeypatch, claim)
    answer = unmix("reproduce", "averaging", "thm-d.1", "--json")
    assert [record["status"] for record in answer.json] == [status]
    assert answer.code == code
    said = unmix("reproduce", "averaging", "thm-d.1")
    assert (said.code, said.err.splitlines()[-1]) == (code, f"1 {status}")


def test_a_whole_paper_becomes_a_report(unmix, monkeypatch, tmp_path: Path, runs: Path) -> None:
    only(monkeypatch, REFUTED)
    runs.rename(tmp_path / "kept")
    answer = unmix("reproduce", "averaging", "--out", "there", "--runs", "kept")
    assert answer.code == 1
    assert answer.out.splitlines()[-1] == "report: there/index.html"
    page = (tmp_path / "there/index.html").read_text(encoding="utf-8")
    assert "refuted" in page
    assert "<svg" in page
    (record,) = json.loads((tmp_path / "there/verdicts.json").read_text(encoding="utf-8"))
    assert (record["claim"], record["status"]) == ("thm-d.1", "refuted")
    assert (tmp_path / "there/figures/averaging/1.pdf").is_file()
    assert Store(tmp_path / "kept").digests() == record["runs"]
    assert not (tmp_path / "runs").exists()


@pytest.mark.usefixtures("runs")
def test_a_full_disk_is_an_error_not_a_traceback(unmix, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "index.html")

    only(monkeypatch, CHEAP)
    monkeypatch.setattr("unmix.report.page.write", full)
    answer = unmix("reproduce", "averaging")
    assert answer.code == 2
    assert "No space left on device: 'index.html'" in answer.err
    assert "free some space" in answer.err
