"""Several papers at once: one page, the same verdicts with one process and with two."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from unmix import catalog
from unmix.campaign import Campaign, bad
from unmix.papers.averaging import PAPER
from unmix.papers.base import Contender, Prediction
from unmix.reproduction import Means
from unmix.store import Store

CHEAP = replace(
    PAPER,
    claims=(PAPER.claim("thm-d.1"),),
    figures=(PAPER.figure("1"),),
    findings=(),
    predictions=(Prediction("off-class ratio", "FA-k10", "laws:off"),),
    contenders=(Contender("f_FA", "FA-k10"),),
)


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    """A store that holds what CHEAP needs."""
    root = tmp_path_factory.mktemp("campaign")
    Campaign((CHEAP,), "quick", Store(root), Means(device="cpu")).run(lambda *_: None)
    return root


def test_a_section_has_all_of_a_paper(root: Path) -> None:
    campaign = Campaign((CHEAP, CHEAP), "quick", Store(root), Means(device="cpu"))
    told: list[tuple[int, int]] = []
    first, second = campaign.sections(lambda done, total: told.append((done, total)))
    assert told[-1] == (4, 4)
    assert first == second
    assert [v.status for v in first.verdicts] == ["supported"]
    assert list(first.drawings) == ["1"]
    (row,) = first.standings
    assert row.run == PAPER.settings("quick")["FA-k10"].experiment.digest()
    assert row.accuracy.mean == 1
    # f_FA has radius sqrt(d/10), and nobody more than sqrt(d/2).
    assert row.attacked.mean == pytest.approx(0.2**0.5, abs=0.02)
    assert row.features.mean == pytest.approx(5)
    assert not bad([first, second])


def test_a_prediction_that_cannot_be_measured_is_left_out(root: Path) -> None:
    (section,) = Campaign((CHEAP,), "quick", Store(root), Means(device="cpu")).sections()
    assert section.predictions == ()


def test_two_processes_tell_the_same(root: Path, monkeypatch) -> None:
    # A worker loads the whole paper by its name, so both are asked for nothing that is dear.
    monkeypatch.setattr("unmix.campaign._section", _cheap)
    alone = Campaign((CHEAP,), "quick", Store(root), Means(device="cpu")).sections()
    together = Campaign((CHEAP, CHEAP), "quick", Store(root), Means(2, device="cpu")).sections()
    assert together == [*alone, *alone]


def _cheap(name, size, root, means):
    return Campaign((CHEAP,), size, Store(root), means).sections()[0]


def test_every_paper_has_its_forecast(tmp_path: Path) -> None:
    papers = tuple(catalog.load("papers", name) for name in catalog.names("papers"))
    found = Campaign(papers, "paper", Store(tmp_path), Means()).forecasts()
    assert list(found) == catalog.names("papers")
    assert all(one.left == one.runs for one in found.values())
    assert found["averaging"].seconds > 60
