"""Every claim and figure of the purification paper can be measured, drawn and judged."""

from __future__ import annotations

import math

import pytest
import torch

from lab import unchecked_shapes
from paper_checks import assert_complete, assert_drawn
from unmix import catalog
from unmix.attacks.base import Attacked
from unmix.attacks.coded import CodeSuite
from unmix.attacks.gradient import PGD
from unmix.attacks.minimum import MinimumNorm
from unmix.attacks.suite import AttackPlan
from unmix.experiment import Experiment, Run
from unmix.experiment import run as train
from unmix.papers.base import Evidence, Setting, Source, verdict
from unmix.papers.purification import PAPER
from unmix.papers.purification.measures.robust import linear_radii, oracle_radii

MEASURED = [c for c in PAPER.claims if c.measure]
DRAWN = [f for f in PAPER.figures if f.draw]
QUICK, FULL = PAPER.settings("quick"), PAPER.settings("paper")


def shrunken(e: Experiment) -> Experiment:
    """A dimension of twenty or so, and a few steps."""
    d = 10 + e.data.d // 10
    if e.train.kind == "contrast-descent":
        small = ("data.d=15", "data.k=4.0", "samples.test=6", "seeds=[0, 1]")
        return e.with_(*small, "train.steps=20", "train.batch=40")
    prefix = "train.clean." if e.train.kind == "purification" else "train."
    clean = e.train.clean if e.train.kind == "purification" else e.train
    steps = min(clean.steps, 80)
    changes = [f"{prefix}steps={steps}", f"{prefix}batch=60", f"{prefix}opening_batch=150"]
    changes += [f"{prefix}opening={min(clean.opening, 40)}", f"{prefix}eta={d / 25}"]
    changes += [f"{prefix}opening_eta={d / 50}", f"{prefix}schedule.b_max=0.25"]
    if e.train.kind == "purification":
        changes += ["train.steps=10", "train.batch=60", f"train.eta={d / 50}"]
    wide = 4 * d if e.net.initial == "pure" else 60
    b = 0.25 if e.net.initial == "pure" else 0.125
    shape = (f"data.d={d}", "data.k=4.0", f"net.m={wide}", f"net.b={b}", "samples.test=6")
    if e.data.D is not None:
        changes.append(f"data.D={d * e.data.D // e.data.d}")
    return e.with_(*shape, *changes, "seeds=[0, 1]")


def attacked(run: Run, plan: AttackPlan) -> Attacked:
    """The plan with next to no steps."""
    assert isinstance(plan.suite, CodeSuite)
    minimum = MinimumNorm(steps=2, starts=1, draws=1, hops=0, polish=0)
    suite = CodeSuite(
        norm=plan.suite.norm,
        weights=plan.suite.weights,
        minimum=minimum,
        pgd=PGD(steps=2, restarts=0),
    )
    with unchecked_shapes():
        return suite.curve(run, plan.radii(run.experiment), 6)


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    every = {name: FULL[name] for name in FULL.keys() - QUICK.keys() if "-d" not in name} | QUICK
    settings = {name: Setting(shrunken(s.experiment), s.attack) for name, s in every.items()}
    return Evidence(settings, FULL, Source(train, attacked))


def test_names_are_unique_and_settings_are_there() -> None:
    for things in (PAPER.claims, PAPER.figures):
        names = [thing.name for thing in things]
        assert len(names) == len(set(names))
    for thing in (*PAPER.claims, *PAPER.figures):
        for setting in thing.settings:
            stem = setting.removesuffix("*")
            assert setting in QUICK | FULL or any(n.removeprefix(stem).isdigit() for n in QUICK)


@pytest.mark.parametrize("claim", PAPER.claims, ids=[c.name for c in PAPER.claims])
def test_a_claim_is_complete(claim) -> None:
    assert_complete(PAPER, claim)


@pytest.mark.parametrize("claim", MEASURED, ids=[c.name for c in MEASURED])
def test_a_claim_is_measured_on_toys(evidence: Evidence, claim) -> None:
    found = verdict(PAPER, claim, evidence)
    assert found.status in ("inconclusive", "failed"), found.why
    if found.status == "inconclusive":
        assert found.replicas > 0
        assert not math.isnan(found.mean)
        assert "a verdict needs 5" in found.why


def test_few_toys_fail(evidence: Evidence) -> None:
    failed = [c.name for c in MEASURED if verdict(PAPER, c, evidence).status == "failed"]
    assert len(failed) <= len(MEASURED) // 6, failed


@pytest.mark.parametrize("figure", DRAWN, ids=[f.name for f in DRAWN])
def test_a_figure_is_drawn_on_toys(evidence: Evidence, figure) -> None:
    assert_drawn(PAPER.draw(figure, evidence))


def test_settings_differ_in_seeds_only_where_they_share_a_training() -> None:
    for table in (QUICK, FULL):
        for name, setting in table.items():
            if name.startswith("clean-d"):
                other = table[name.replace("clean", "purified")]
                assert other.experiment == setting.experiment
                assert other.attack != setting.attack
            assert len(setting.experiment.seeds) >= 5


def test_the_simple_rules_break_exactly_at_their_radii(evidence: Evidence) -> None:
    run = evidence.run("side")
    data, seeds = run.data, run.experiment.seeds
    z, y = data.codes(seeds, 50, "test")
    x, w = z.dense(), data.label_vector(seeds).unsqueeze(1)
    c = 0.5 / math.sqrt(data.k)

    def pure(x: torch.Tensor) -> torch.Tensor:
        return (w * x * (x.abs() >= c)).sum(-1)

    def linear(x: torch.Tensor) -> torch.Tensor:
        return (w * x).sum(-1)

    for rule, radii, way in (
        (linear, linear_radii(run, 50), w.expand_as(x)),
        (pure, oracle_radii(run, 50), w * (x != 0)),
    ):
        unit = way / way.norm(dim=-1, keepdim=True).clamp_min(1e-12)
        some = (radii < 0.9 * c) & (radii > 0)
        assert some.any()
        for share, right in ((0.999, True), (1.001, False)):
            moved = x - (share * radii * y).unsqueeze(-1) * unit
            assert ((y * rule(moved) > 0)[some] == right).all()


def test_the_catalog_leads_here() -> None:
    assert catalog.load("papers", "purification") is PAPER
