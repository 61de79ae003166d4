"""Measurements beside closed forms: ratio, z-score, and the words that a verdict carries."""

from __future__ import annotations

import math
from statistics import fmean, stdev

import pytest
import torch

import unmix
from unmix.claims import judge
from unmix.papers.averaging import PAPER, predict
from unmix.papers.averaging.figures.laws import predictors
from unmix.papers.averaging.measures import laws
from unmix.papers.base import Evidence
from unmix.papers.beside import Beside, predictions

VALUES = [1.0, 1.2, 1.1, 1.3]


def test_z_is_the_deviation_in_standard_errors_of_the_mean() -> None:
    beside = Beside(torch.tensor(VALUES, dtype=torch.float64), 1.0)
    assert beside.z == pytest.approx((fmean(VALUES) - 1.0) / (stdev(VALUES) / 2))
    assert beside.ratio.tolist() == pytest.approx(VALUES)
    assert str(beside) == "measured 1.15, predicted 1, z = 2.3"


@pytest.mark.parametrize("values", [[2.0], [2.0, 2.0, 2.0], [2.0, 2.0 + 4e-16, 2.0]])
def test_there_is_no_z_without_a_spread(values: list[float]) -> None:
    beside = Beside(torch.tensor(values, dtype=torch.float64), 1.0, "why")
    assert math.isnan(beside.z)
    assert str(beside) == "measured 2, predicted 1; why"


def test_a_verdict_says_what_was_predicted(evidence: Evidence) -> None:
    claim = PAPER.claim("law-margin-multi")
    sample = laws.margin_over_law(evidence, "k-class")
    law = predict.margin(evidence.run("k-class").experiment, 100)
    assert f"predicted {law:.4g}, z = " in judge(claim, sample, "paper").why


def test_the_radius_has_its_law(evidence: Evidence) -> None:
    found = evidence.attacked("binary").mean_radius() * math.sqrt(10)
    assert laws.radius_over_law(evidence, "binary").values == pytest.approx(found.tolist())


def test_the_figure_holds_every_number(evidence: Evidence) -> None:
    table, found = predictors(evidence).table, predictions(PAPER, evidence)
    assert len(found) == len(PAPER.predictions) == len(table["quantity"])
    for row, one in enumerate(found):
        assert table["quantity"][row] == one.quantity
        assert table["predicted"][row] == one.predicted
        assert table["measured"][row] == pytest.approx(one.measured)
        assert table["z"][row] == pytest.approx(one.z, nan_ok=True)


def test_a_prediction_names_its_run_and_its_spread(evidence: Evidence) -> None:
    one = predictions(PAPER, evidence)[0]
    assert one.run == evidence.settings["binary"].experiment.digest()
    assert one.replicas == evidence.run("binary").replicas
    assert one.low <= one.measured <= one.high
    assert one.ratio == pytest.approx(one.measured / one.predicted)


def test_what_is_not_at_hand_is_left_out(evidence: Evidence) -> None:
    few = Evidence({"k-class": evidence.settings["k-class"]}, evidence.full, evidence.source)
    assert {p.setting for p in predictions(PAPER, few)} == {"k-class"}


def test_a_run_has_its_predictions(evidence: Evidence) -> None:
    b0 = PAPER.settings("paper")["k-class"].experiment
    run = unmix.run(b0.with_("seeds=[0, 1]"))
    found = unmix.predict(run)
    assert [p.quantity for p in found] == [
        "margin, ten labels",
        "off-class ratio, ten labels",
        "own cosine, ten labels",
    ]
    # The margin law is good to a percent at the paper's baseline.
    assert found[0].ratio == pytest.approx(1, abs=0.01)
    assert "margin, ten labels" in str(found)
