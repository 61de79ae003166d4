"""Every claim and figure of the feature-averaging paper can be measured, drawn and judged."""

from __future__ import annotations

import ast
import inspect
import math
from importlib import import_module
from pathlib import Path

import pytest

from paper_checks import assert_complete, assert_drawn, watched
from unmix import catalog
from unmix.papers import averaging
from unmix.papers.averaging import PAPER
from unmix.papers.base import Evidence, verdict

MEASURED = [c for c in PAPER.claims if c.measure]
LISTED = [c for c in PAPER.claims if not c.measure]
DRAWN = [f for f in PAPER.figures if f.draw]
QUICK, FULL = PAPER.settings("quick"), PAPER.settings("paper")


def known(setting: str) -> bool:
    """A setting, or a ladder with rungs, at quick or paper size."""
    stem, names = setting.removesuffix("*"), [*QUICK, *FULL]
    if stem == setting:
        return setting in names
    return any(name.removeprefix(stem).isdigit() for name in names)


def test_names_are_unique() -> None:
    for things in (PAPER.claims, PAPER.figures):
        names = [thing.name for thing in things]
        assert len(names) == len(set(names))
    assert len({c.statement + c.source.place + str(c.settings) for c in MEASURED}) == len(MEASURED)


def test_the_catalog_leads_here() -> None:
    assert catalog.load("papers", "averaging") is PAPER
    assert PAPER.package == averaging.__name__


@pytest.mark.parametrize("claim", PAPER.claims, ids=[c.name for c in PAPER.claims])
def test_a_claim_is_complete(claim) -> None:
    assert_complete(PAPER, claim)
    assert all(known(setting) for setting in claim.settings)


@pytest.mark.parametrize("figure", PAPER.figures, ids=[f.name for f in PAPER.figures])
def test_a_figure_is_complete(figure) -> None:
    assert figure.title
    assert bool(figure.draw) != bool(figure.why_not)
    assert all(known(setting) for setting in figure.settings)
    if figure.draw:
        draw = getattr(import_module("unmix.papers.averaging.figures"), figure.draw)
        assert list(inspect.signature(draw).parameters) == ["evidence"]


@pytest.mark.parametrize("claim", MEASURED, ids=[c.name for c in MEASURED])
def test_a_claim_is_measured_on_toys(evidence: Evidence, claim) -> None:
    settings = evidence.expand(claim.settings)
    found = verdict(PAPER, claim, evidence)
    if any(setting not in QUICK for setting in settings):
        assert found.status == "not-run"
        assert found.why.startswith("only at paper size: ")
        return
    assert found.status in ("inconclusive", "failed"), found.why
    assert found.runs == tuple(evidence.settings[s].experiment.digest() for s in settings)
    if found.status == "inconclusive":
        assert found.replicas > 0
        assert not math.isnan(found.mean)
        assert "a verdict needs 5" in found.why
    else:
        # Toys may have no dead neuron to speak of, or no logarithm; nothing else may fail.
        assert "no number on every replica" in found.why or "not positive" in found.why


def test_few_toys_fail(evidence: Evidence) -> None:
    failed = [c.name for c in MEASURED if verdict(PAPER, c, evidence).status == "failed"]
    assert len(failed) <= len(MEASURED) // 10, failed


@pytest.mark.parametrize("figure", DRAWN, ids=[f.name for f in DRAWN])
def test_a_figure_is_drawn_on_toys(evidence: Evidence, figure) -> None:
    assert_drawn(PAPER.draw(figure, evidence))


@pytest.mark.parametrize("figure", DRAWN, ids=[f.name for f in DRAWN])
def test_a_figure_asks_for_what_it_draws(evidence: Evidence, figure) -> None:
    asked: set[str] = set()
    under_attack: set[str] = set()
    PAPER.draw(figure, watched(evidence, asked, under_attack))
    assert asked == set(evidence.expand(figure.settings))
    assert all(QUICK[name].attack for name in under_attack)


def test_claims_on_robustness_name_attacked_settings(evidence: Evidence) -> None:
    under_attack: set[str] = set()
    for claim in MEASURED:
        verdict(PAPER, claim, watched(evidence, set(), under_attack))
    assert under_attack
    assert all(QUICK[name].attack for name in under_attack)


@pytest.mark.parametrize("size", ["quick", "paper"])
def test_only_crossing_ladders_share_an_experiment(size: str) -> None:
    table: dict[str, list[str]] = {}
    for name, setting in PAPER.settings(size).items():
        table.setdefault(setting.experiment.digest(), []).append(name)
    assert [names for names in table.values() if len(names) > 1] == [["NRMC-k10", "NRMC-d3072"]]


def test_the_baseline_is_the_papers() -> None:
    b = FULL["binary"].experiment
    assert (b.data.k, b.data.d, b.data.alpha, b.data.sigma) == (10, 3072, 1.0, 1.0)
    assert (b.net.m, b.net.sigma_w, b.net.sigma_b) == (5, 1e-5, 1e-5)
    assert (b.train.eta, b.train.steps, b.samples.train) == (1e-3, 100, 1000)
    assert FULL["k-class"].experiment.net.h == 1
    assert b.data.plus == (0, 1, 2, 3, 4)


def test_quick_is_the_papers_science_with_fewer_seeds(evidence: Evidence) -> None:
    same = Evidence(QUICK, FULL, evidence.source)
    for claim in MEASURED:
        settings = same.expand(claim.settings)
        if any(s not in QUICK for s in settings):
            continue
        wanted = "reduced" if claim.kind == "law" else "paper"
        assert same.scale(claim, settings) == wanted, claim.name


def test_no_claim_is_forgotten_between_the_files() -> None:
    folder = Path(import_module("unmix.papers.averaging.claims").__path__[0])
    modules = {p.stem for p in folder.glob("*.py")} - {"__init__", "base"}
    tree = ast.parse((folder / "__init__.py").read_text())
    named = {n.value.id for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    assert modules == named


def test_every_setting_is_used() -> None:
    asked = {s for thing in (*PAPER.claims, *PAPER.figures) for s in thing.settings}
    asked |= {s for contender in PAPER.contenders for s in (contender.setting, *contender.also)}
    for name in FULL:
        assert any(
            name == s or (s.endswith("*") and name.removeprefix(s[:-1]).isdigit()) for s in asked
        ), name
