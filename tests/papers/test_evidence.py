"""Evidence: what counts as the paper's own scale, and what cannot be measured."""

from __future__ import annotations

import dataclasses
import html
import sys
import types

import pytest
import torch

from lab import trained
from small_runs import small
from unmix.attacks.base import Attacked
from unmix.attacks.suite import AttackPlan, SuiteL2
from unmix.claims import Claim, Interval, Sample, Verdicts
from unmix.claims import Source as Place
from unmix.errors import DataError, UnknownName
from unmix.experiment import run as train
from unmix.papers.averaging import PAPER
from unmix.papers.base import (
    Contender,
    Evidence,
    FigureEntry,
    Paper,
    Prediction,
    Setting,
    Source,
    verdict,
    verdicts,
)
from unmix.papers.beside import Beside, predictions
from unmix.papers.standing import standings
from unmix.report import page, tables
from unmix.reproduction import Means, Task
from unmix.store import Store

FULL = {"a": Setting(small("seeds=[0, 1, 2, 3, 4]")), "b": Setting(small("train.eta=0.1"))}


def evidence(**settings) -> Evidence:
    return Evidence({n: Setting(e) for n, e in settings.items()}, FULL, Source(train, None))


def claim(kind: str = "experiment", measure: str = "margins.mean", *settings: str) -> Claim:
    place = Place("paper", "Thm 1")
    wanted = Interval(low=0.0)
    return Claim("c", "it holds", place, kind, wanted, measure, settings or ("a",), why_not="why")


@pytest.mark.parametrize(
    "change",
    [
        "seeds=[7]",
        "samples.test=3",
        "train.engine=reference",
        "train.record.points=9",
        "train.record.coefficients=[]",
    ],
)
def test_what_does_not_change_the_science_keeps_the_scale(change: str) -> None:
    assert evidence(a=small(change)).scale(claim(), ("a",)) == "paper"


@pytest.mark.parametrize(
    "change",
    [
        "data.d=33",
        "data.cosine=0.1",
        "net.m=3",
        "net.slope_at_zero=0",
        "net.kind=k-class",
        "train.eta=0.06",
        "train.steps=31",
        "samples.train=65",
        "dtype=float32",
        "train.kind=none",
    ],
)
def test_any_other_change_reduces_it(change: str) -> None:
    assert evidence(a=small(change)).scale(claim(), ("a",)) == "reduced"


def test_one_reduced_setting_reduces_all() -> None:
    both = evidence(a=small(), b=small("train.eta=0.2"))
    assert both.scale(claim(), ("a",)) == "paper"
    assert both.scale(claim(), ("a", "b")) == "reduced"


def test_a_law_has_no_full_scale() -> None:
    assert evidence(a=small()).scale(claim("law"), ("a",)) == "reduced"


def test_ladders_hold_the_rungs_of_the_size_at_hand() -> None:
    one = small()
    mine = evidence(**{"x-k4": one, "x-k10": one, "x-kind": one, "x": one})
    assert mine.expand(("x-k*",)) == ("x-k4", "x-k10")
    assert mine.expand(("x", "x-k4")) == ("x", "x-k4")
    assert mine.expand(("y-*",)) == ("y-*",)


def test_runs_and_probes_are_obtained_once() -> None:
    calls = []
    mine = evidence(a=small())
    mine.source = Source(lambda e: calls.append(e) or train(e), lambda run: calls.append(run))
    assert mine.run("a") is mine.run("a")
    assert mine.probe("a", "margins") is mine.probe("a", "margins")
    assert calls == [small()]


PAGE = Paper("p", "title", "authors", "", (claim(),), (), "unmix.papers.averaging")


def test_a_probes_value_is_a_sample() -> None:
    mine = evidence(a=small("seeds=[0, 1, 2, 3, 4]"))
    found = verdict(PAGE, claim(), mine)
    assert found.status == "confirmed"
    assert found.replicas == 5
    assert found.mean == pytest.approx(float(mine.probe("a", "margins")["mean"].mean()))
    assert found.runs == (small("seeds=[0, 1, 2, 3, 4]").digest(),)


def test_a_diverged_replica_is_a_failed_premise() -> None:
    wild = small("train.eta=1e38", "dtype=float32", "seeds=[0, 1, 2, 3, 4]")
    found = verdict(PAGE, claim(), evidence(a=wild))
    assert found.status == "failed"
    count = len(train(wild).trace.diverged)
    assert count > 0
    assert found.why == f"premise not met: {count} replicas of a diverged"


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (dataclasses.replace(claim(), measure=""), "why"),
        (claim("law", "margins.mean", "elsewhere"), "only at paper size: elsewhere"),
        (claim("law", "averaging-distance.distance"), "Thm 4.6 speaks of a binary net"),
        (claim("law", "margins.maen"), "the probe gave no 'maen'"),
    ],
)
def test_what_cannot_be_measured_is_not_run(wanted: Claim, why: str) -> None:
    found = verdict(PAGE, wanted, evidence(a=small("net.kind=k-class")))
    assert found.status == "not-run"
    assert why in found.why


def test_unknown_claims_and_figures_are_answered_with_the_nearest() -> None:
    assert PAPER.claim("lemma-5.3").name == "lemma-5.3"
    with pytest.raises(UnknownName, match=r"no claim 'lemma-5\.33'\n.*'lemma-5\.3'"):
        PAPER.claim("lemma-5.33")
    with pytest.raises(UnknownName, match=r"no figure '3-lefft'\n.*'3-left'"):
        PAPER.figure("3-lefft")


def test_a_run_is_judged_on_the_claims_it_decides_alone() -> None:
    setting = PAPER.settings("paper")["FA-k10"]
    run = train(setting.experiment.with_("seeds=[5, 6, 7, 8, 9]", "samples.test=3"))
    found = verdicts(run)
    assert isinstance(found, Verdicts)
    wanted = [c.name for c in PAPER.claims if c.measure and c.settings == ("FA-k10",)]
    assert [v.claim for v in found] == wanted
    assert {v.status for v in found} == {"supported"}


def test_a_run_of_no_setting_decides_nothing() -> None:
    assert verdicts(trained()) == ()


def test_an_error_of_a_probe_is_not_run_with_its_words() -> None:
    bare = evidence(a=small("train.record.coefficients=[]"))
    with pytest.raises(DataError):
        bare.probe("a", "decomposition")
    found = verdict(PAGE, claim("identity", "decomposition.eq4"), bare)
    assert found.status == "not-run"
    assert "did not record the coefficients" in found.why


def test_a_setting_that_cannot_run_here_says_why() -> None:
    absent = Setting(small("seeds=[0, 1, 2, 3, 4]"), why_not="no images")
    held = Evidence({"a": absent}, FULL, Source(train, None))
    assert held.why_not(("a",)) == "no images"
    assert held.why_not(("b",)) == "only at paper size: b"
    assert evidence(a=FULL["a"].experiment).why_not(("a",)) == ""
    found = verdict(PAPER, claim(), held)
    assert (found.status, found.why) == ("not-run", "no images")


def test_neither_claims_nor_figures_ask_for_what_cannot_run_here(tmp_path) -> None:
    figure = FigureEntry("1", "drawn", "curves", ("b",))
    absent = {"b": Setting(FULL["b"].experiment, why_not="no images")}
    claims = (claim("experiment", "margins.mean", "b"),)
    task = Task(PAPER, "quick", claims, (figure,), Store(tmp_path), Means(), absent)
    assert task.needed == {}
    result = task.judge()
    assert [v.why for v in result.verdicts] == ["no images"]
    assert result.drawings == {}
    assert result.not_drawn == {"1": "no images"}


FLAGS = ("the control 'random' beats the whole union: 0.100 against 0.900 at 1",)


def flagged_attack(run, plan) -> Attacked:
    radius = torch.ones(run.replicas, 3, dtype=torch.float64)
    return Attacked((0.5,), ("a",), {"a": radius}, {}, 1.0, 0, flags=FLAGS)


@pytest.fixture
def flagged(monkeypatch) -> Evidence:
    """One setting, whose attack has a red flag; a measure that reads it, and one that does not."""
    plan = AttackPlan(SuiteL2(), (0.5,))
    table = {"a": Setting(small("seeds=[0, 1, 2, 3, 4]"), plan)}
    found = Evidence(table, table, Source(train, flagged_attack))
    module = types.ModuleType("measures")
    module.robust = lambda e, s: Sample(e.attacked(s).robust_accuracy()[:, 0].tolist(), (), "note")
    module.beside = lambda e, s: Beside(e.attacked(s).robust_accuracy()[:, 0], 1.0)
    module.plain = lambda e, s: Sample([1.0] * 5)
    monkeypatch.setitem(sys.modules, "unmix.papers.averaging.measures.flagged", module)
    return found


def test_no_robust_accuracy_is_told_without_its_red_flags(flagged: Evidence) -> None:
    robust = claim("experiment", "flagged:robust")
    told = f"red flag, a: {FLAGS[0]}"
    # The second claim reads what the first has left behind.
    for _ in range(2):
        found = verdict(PAGE, robust, flagged)
        assert found.why == f"inside; note; {told}"
        (row,) = tables.rows(PAGE, [found])
        assert told in row.plain()[-1]
        assert told in tables.records(PAGE, [found])[0]["why"]
    assert "flag" not in verdict(PAGE, claim("experiment", "flagged:plain"), flagged).why
    paper = dataclasses.replace(
        PAGE,
        predictions=(Prediction("radius", "a", "flagged:beside"),),
        contenders=(Contender("a net", "a"),),
    )
    assert [p.note for p in predictions(paper, flagged)] == [told]
    assert told in str(predictions(paper, flagged))
    (row,) = standings(paper, flagged)
    assert row.attacked.flagged == told
    assert row.accuracy.flagged == ""
    assert told in html.unescape(page.render([page.Section(paper, [], standings=[row])]))
