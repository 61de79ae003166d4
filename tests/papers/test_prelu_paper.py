"""Every claim and figure of the pReLU paper's theory half can be measured, drawn and judged."""

from __future__ import annotations

import dataclasses
from functools import cache

import pytest

from paper_checks import assert_complete, assert_drawn
from prelu_toys import toys
from unmix import catalog
from unmix.claims import Verdict
from unmix.papers.base import Evidence, verdict
from unmix.papers.prelu import PAPER, settings
from unmix.papers.prelu.claims import alignment, beyond, classifiers, robustness, training
from unmix.papers.prelu.measures import classifiers as measured

CLAIMS = [
    c
    for module in (classifiers, training, robustness, alignment, beyond)
    for c in module.CLAIMS
    if c.measure
]
QUICK, FULL = (
    {n: s for n, s in settings.settings(size).items() if s.experiment.data.kind == "clusters"}
    for size in ("quick", "paper")
)
DRAWN = [f for f in PAPER.figures if f.draw and set(f.settings) <= set(FULL)]


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch) -> None:
    monkeypatch.setattr(measured, "DRAWS", 500)


@cache
def judged(name: str) -> Verdict:
    return verdict(PAPER, PAPER.claim(name), toys())


def test_the_catalog_leads_here() -> None:
    assert catalog.load("papers", "prelu") is PAPER


def test_names_are_unique_and_claims_complete() -> None:
    names = [c.name for c in PAPER.claims]
    assert len(names) == len(set(names))
    assert set(QUICK) <= set(FULL)
    for claim in CLAIMS:
        assert claim in PAPER.claims
        assert set(claim.settings) <= set(FULL), claim.name
        assert_complete(PAPER, claim)


def test_every_setting_is_used_and_distinct() -> None:
    asked = {s for thing in (*CLAIMS, *DRAWN) for s in thing.settings}
    # Rungs of figure 2a exist at paper size only; the ladder draws what there is.
    assert {n for n in FULL if n not in asked and ",alpha=" not in n} == set()
    digests = [s.experiment.digest() for s in QUICK.values()]
    assert len(digests) == len(set(digests))


def test_the_papers_training_is_the_papers() -> None:
    e = FULL["sgd-p=3"].experiment
    assert (e.data.k, e.data.d, e.data.sigma, len(e.data.plus)) == (10, 1000, 0.1, 6)
    assert (e.net.h, e.net.sigma, e.net.initial) == (2000, 1e-7, "gaussian")
    assert (e.train.eta, e.train.batch, e.train.steps, e.train.loss) == (
        0.2,
        100,
        80_200,
        "exponential",
    )
    assert FULL["reduced-p=3"].experiment.train.time == pytest.approx(0.2 * 80_200)


@pytest.mark.parametrize("claim", CLAIMS, ids=[c.name for c in CLAIMS])
def test_a_claim_is_measured_on_toys(claim) -> None:
    found = judged(claim.name)
    if any(s not in QUICK for s in claim.settings):
        assert found.status == "not-run"
        assert found.why.startswith("only at paper size: ")
        return
    assert found.status in ("inconclusive", "failed"), found.why
    if found.status == "failed":
        # A toy may not escape in its short time; nothing else may fail.
        assert "no number on every replica" in found.why
        assert claim.measure.startswith(("dynamics:", "learned:", "robustness:lead"))
    else:
        assert "a verdict needs 5" in found.why


def test_few_toys_fail() -> None:
    failed = [c.name for c in CLAIMS if judged(c.name).status == "failed"]
    assert len(failed) <= len(CLAIMS) // 10, failed


@pytest.mark.parametrize("figure", DRAWN, ids=[f.name for f in DRAWN])
def test_a_figure_draws_what_it_asks_for(figure) -> None:
    asked: set[str] = set()

    class Watched(Evidence):
        def run(self, setting: str):
            asked.add(setting)
            return super().run(setting)

        def attacked(self, setting: str):
            asked.add(setting)
            assert QUICK[setting].attack is not None
            return super().attacked(setting)

    evidence = toys()
    fields = {f.name: getattr(evidence, f.name) for f in dataclasses.fields(Evidence)}
    drawing = PAPER.draw(figure, Watched(**fields | {"probes": {}}))
    assert asked == set(figure.settings)
    assert_drawn(drawing)
