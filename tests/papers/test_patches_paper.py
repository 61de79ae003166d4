"""Every claim and figure of the patches paper can be measured, drawn and judged."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch

from lab import unchecked_shapes
from paper_checks import assert_complete, assert_drawn, watched
from unmix import catalog
from unmix.experiment import Experiment
from unmix.experiment import run as train
from unmix.papers.base import Evidence, Setting, Source, verdict
from unmix.papers.beside import predictions
from unmix.papers.patches import PAPER
from unmix.papers.patches.measures import lemmas, phases, races
from unmix.papers.patches.settings import TIMES
from unmix.probes.patch_phases import phases as found_phases
from unmix.train.base import Stop, Trace

MEASURED = [c for c in PAPER.claims if c.measure]
QUICK, FULL = PAPER.settings("quick"), PAPER.settings("paper")
# Figures on images: see test_patches_images.
DRAWN = [f for f in PAPER.figures if f.draw and not any("-std" in s for s in f.settings)]
CLAIMS = pytest.mark.parametrize("claim", MEASURED, ids=[c.name for c in MEASURED])
FIGURES = pytest.mark.parametrize("figure", DRAWN, ids=[f.name for f in DRAWN])


def shrunken(experiment: Experiment) -> Experiment:
    """A few filters in few dimensions, two seeds, and short where no snapshot asks for more."""
    changes = ["data.d=12", "data.patches=6", "samples.test=6", "seeds=[0, 1]"]
    changes.append(f"samples.train={min(experiment.samples.train, 8)}")
    if "m" in type(experiment.net).model_fields:
        changes.append(f"net.m={min(experiment.net.m, 4)}")
    if not getattr(experiment.train, "snapshots", (1,)):
        changes.append(f"train.steps={min(experiment.train.steps, 60)}")
    return experiment.with_(*changes)


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    settings = {
        name: Setting(shrunken(s.experiment), s.attack and dataclasses.replace(s.attack, points=4))
        for name, s in QUICK.items()
    }

    def attacked(run, plan):
        with unchecked_shapes():
            return plan.curve(run)

    return Evidence(settings, FULL, Source(train, attacked))


def known(setting: str) -> bool:
    stem, names = setting.removesuffix("*"), [*QUICK, *FULL]
    if stem == setting:
        return setting in names
    return any(name.removeprefix(stem).isdigit() for name in names)


def test_the_catalog_leads_here_and_names_are_unique() -> None:
    assert catalog.load("papers", "patches") is PAPER
    for things in (PAPER.claims, PAPER.figures):
        names = [thing.name for thing in things]
        assert len(names) == len(set(names))


@pytest.mark.parametrize("claim", PAPER.claims, ids=[c.name for c in PAPER.claims])
def test_a_claim_is_complete(claim) -> None:
    assert_complete(PAPER, claim)
    assert all(known(setting) for setting in claim.settings)


@CLAIMS
def test_a_claim_is_measured_on_toys(evidence: Evidence, claim) -> None:
    found = verdict(PAPER, claim, evidence)
    if evidence.why_not(claim.settings):
        assert found.status == "not-run"
        assert found.why.startswith("only at paper size: ")
        return
    # Toys have two seeds, and may meet no phase or win no race; nothing else may go wrong.
    assert found.status != "not-run", found.why
    if found.status == "failed":
        assert "no number on every replica" in found.why


@CLAIMS
def test_a_claim_asks_for_the_settings_that_it_names(evidence: Evidence, claim) -> None:
    if evidence.why_not(claim.settings):
        return
    asked: set[str] = set()
    PAPER.measure(claim, watched(evidence, asked))
    assert asked == set(evidence.expand(claim.settings))


@FIGURES
def test_a_figure_is_drawn_from_what_it_asks_for(evidence: Evidence, figure) -> None:
    asked: set[str] = set()
    drawing = PAPER.draw(figure, watched(evidence, asked))
    assert asked == set(evidence.expand(figure.settings))
    assert_drawn(drawing)


def test_the_simulation_is_the_papers() -> None:
    e = FULL["adv"].experiment
    data, net, attack = e.data, e.net, e.train.attack
    assert (data.k, data.d, data.patches, data.robust, data.sigma_n) == (2, 100, 16, 1, 0.1)
    assert (data.alpha, data.beta) == ((2.0, 2.0), (1.0, 1.0))
    assert (net.m, net.q, net.rho, net.sigma_0) == (100, 3.0, 1.0, 0.01)
    assert (e.train.eta, e.train.steps, e.samples.train) == (0.1, 1000, 100)
    assert (attack.step, attack.eps, attack.objective) == (1000.0, 1.2, "Fy")
    assert (attack.clip, attack.reduction, attack.steps) == ("coord", "sum", 1)
    assert e.train.snapshots == TIMES


def test_quick_has_the_papers_hyper_parameters(evidence: Evidence) -> None:
    same = Evidence(QUICK, FULL, evidence.source)
    for claim in MEASURED:
        if not same.why_not(claim.settings):
            wanted = "reduced" if claim.kind == "law" else "paper"
            assert same.scale(claim, same.expand(claim.settings)) == wanted, claim.name


def test_every_setting_is_used() -> None:
    asked = {s for thing in (*PAPER.claims, *PAPER.figures) for s in thing.settings}
    asked |= {s for contender in PAPER.contenders for s in (contender.setting, *contender.also)}
    asked |= {setting.shrinks for setting in FULL.values()}
    for name in FULL:
        ladders = {s for s in asked if s.endswith("*") and name.removeprefix(s[:-1]).isdigit()}
        assert name in asked or ladders, name


def test_identities_hold_on_toys_too(evidence: Evidence) -> None:
    for name in ("lemma-5.1", "lemma-d.2", "lemma-d.17", "lemma-d.18", "lemma-b.1"):
        claim = PAPER.claim(name)
        sample = PAPER.measure(claim, evidence)
        assert max(sample.values) <= claim.interval.high, name


def test_attacked_points_are_seen_to_be_wrong_where_noise_is(evidence: Evidence) -> None:
    """The decomposition of Lemma D.17 is one of noiseless points only."""
    noisy = shrunken(QUICK["exact-adv"].experiment).with_("data.sigma_n=0.2")
    settings = {"noisy": Setting(noisy)}
    found = lemmas.attacked_points(Evidence(settings, FULL, evidence.source), "noisy")
    assert min(found.values) > 1e-3


def path(a: list, b: list) -> Trace:
    columns = {"A1": torch.tensor([a]).double(), "B1": torch.tensor([b]).double()}
    steps = tuple(range(0, 10 * len(a), 10))
    return Trace(steps, columns, (Stop("steps", steps[-1]),))


def test_phases_are_found_where_they_are() -> None:
    a = [3.0, 3.0, 3.0, 3.1, 4.0, 8.0, 20.0, 30.0]
    b = [1.0, 2.0, 9.0, 15.0, 15.1, 15.2, 15.2, 15.2]
    found = found_phases(path(a, b), 1)
    assert {n: t.tolist() for n, t in found.items()} == {
        "peak": [[10.0]],
        "saturation": [[30.0]],
        "takeoff": [[30.0]],
        "crossing": [[60.0]],
    }
    # A lead of the start that is lost again is no crossing.
    lost = found_phases(path([9.0, 9.0, 9.0, 9.0], [1.0, 6.0, 8.0, 9.5]), 1)
    assert math.isnan(lost["crossing"])
    never = found_phases(path([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]), 1)
    assert all(math.isnan(never[n]) for n in ("saturation", "takeoff", "crossing"))


def test_slopes_and_passages_are_right() -> None:
    assert phases._passed([1.0, 2.0, 4.0], [0.0, 0.25, 0.75]) == pytest.approx(3.0)
    assert phases._passed([1.0, 2.0], [0.5, 1.0]) == 1.0
    assert math.isnan(phases._passed([1.0, 2.0], [0.0, 0.4]))


def test_predictions_are_taken_on_toys(evidence: Evidence) -> None:
    found = predictions(PAPER, evidence)
    assert [p.quantity for p in found] == [p.quantity for p in PAPER.predictions]
    radii = [p for p in found if "radius" in p.quantity]
    # Five patches of six hold v: 1 * 5/11, and 2 * 1/7 for u. Four noisy points a seed.
    assert [p.predicted for p in radii] == pytest.approx([2 / 7, 5 / 11])
    assert [p.measured for p in radii] == pytest.approx([2 / 7, 5 / 11], rel=0.3)


def test_the_race_is_decided_by_the_start_for_any_power_of_s(evidence: Evidence) -> None:
    run = evidence.run("races")
    data = run.data
    wanted = data.robust * 8.0 / ((data.patches - data.robust) * 1.0)
    assert races.race_slope(run) == pytest.approx(wanted)
