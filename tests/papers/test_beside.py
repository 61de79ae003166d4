"""Measurements beside closed forms: ratio, z-score, and the words that a verdict carries."""

from __future__ import annotations

import math
from statistics import fmean, stdev

import pytest
import torch

from unmix.claims import judge
from unmix.papers.averaging import PAPER, predict
from unmix.papers.averaging.figures.laws import PREDICTORS, predictors
from unmix.papers.averaging.measures import laws
from unmix.papers.base import Evidence

VALUES = [1.0, 1.2, 1.1, 1.3]


def test_z_is_the_deviation_in_standard_errors_of_the_mean() -> None:
    beside = laws.Beside(torch.tensor(VALUES, dtype=torch.float64), 1.0)
    assert beside.z == pytest.approx((fmean(VALUES) - 1.0) / (stdev(VALUES) / 2))
    assert beside.ratio.tolist() == pytest.approx(VALUES)
    assert str(beside) == "measured 1.15, predicted 1, z = 2.3"


@pytest.mark.parametrize("values", [[2.0], [2.0, 2.0, 2.0]])
def test_there_is_no_z_without_a_spread(values: list[float]) -> None:
    beside = laws.Beside(torch.tensor(values, dtype=torch.float64), 1.0, "why")
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
    table = predictors(evidence).table
    for row, (name, measure, setting) in enumerate(PREDICTORS):
        beside = measure(evidence, setting)
        assert table["quantity"][row] == name
        assert table["predicted"][row] == beside.predicted
        assert table["measured"][row] == pytest.approx(float(beside.measured.mean()))
        assert table["z"][row] == pytest.approx(beside.z, nan_ok=True)
