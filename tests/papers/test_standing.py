"""Rows of the table across papers: certificate below attack, both as shares of one best radius."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from small_runs import small
from unmix.attacks.base import Attacked
from unmix.attacks.suite import AttackPlan, SuiteL2
from unmix.certify.base import Certificate
from unmix.certify.choice import CertifyPlan
from unmix.data.sparse_code import SparseCode
from unmix.errors import Contradiction
from unmix.experiment import Experiment, Run, Samples
from unmix.experiment import run as train
from unmix.nets.symmetric import Symmetric
from unmix.papers.averaging import PAPER
from unmix.papers.base import Contender, Evidence, Setting, Source, verdict
from unmix.papers.purification.measures.brackets import certified, halfway_radii
from unmix.papers.standing import Standing, standings
from unmix.train.descent import NoTraining

PLAN = AttackPlan(SuiteL2(), (0.5,), 2)
POINTS, ROOT2 = 2, 2**0.5


def bracketed(lower: float, upper: float, n: int = 3) -> Certificate:
    ends = (torch.full((2, n), end, dtype=torch.float64) for end in (lower, upper))
    return Certificate(*ends, torch.zeros(2, n, dtype=torch.int64), torch.zeros(2, n, 32))


def row(
    radius: float | list[float], lower: float, upper: float, also: float = 9.0, points: int = 3
) -> Standing:
    """Of a net with sqrt(d/2) = 4 for its best radius; both attacks see two points of a seed."""
    settings = {
        "a": Setting(small("seeds=[0, 1]"), PLAN, certify=CertifyPlan(points=3)),
        "b": Setting(small("seeds=[0, 1]"), AttackPlan(SuiteL2(), (0.6,), 2)),
    }
    found = {0.5: torch.tensor(radius), 0.6: torch.tensor(also)}

    def attacked(run: Run, plan: AttackPlan) -> Attacked:
        radii = found[plan.grid[0]].double().expand(run.replicas, POINTS)
        return Attacked(plan.grid, ("x",), {"x": radii}, {}, 1.0, 0)

    paper = replace(PAPER, contenders=(Contender("a net", "a", also=("b",)),))
    source = Source(train, attacked, lambda run, plan: bracketed(lower, upper, points))
    (only,) = standings(paper, Evidence(settings, settings, source))
    return only


def test_both_ends_are_shares_of_the_best_radius() -> None:
    found = row([3.0, 1.0], 1.0, torch.inf)
    assert found.best.mean == pytest.approx(4)
    assert found.best_is == "half-way to an opposite centre, in l2"
    assert found.certified.mean == pytest.approx(1 / 4)
    assert found.attacked.mean == pytest.approx(2 / 4)


def test_both_ends_speak_of_the_points_that_both_have_seen() -> None:
    found = row([3.0, 1.0], 1.0, torch.inf, points=1)
    assert found.certified.mean == pytest.approx(1 / 4)
    assert found.attacked.mean == pytest.approx(3 / 4)


def test_witnesses_and_other_attacks_on_the_net_join_the_union() -> None:
    assert row(3.0, 1.0, 2.0).attacked.mean == pytest.approx(2 / 4)
    assert row(3.0, 1.0, torch.inf, also=1.5).attacked.mean == pytest.approx(1.5 / 4)


def test_an_attack_that_gave_up_is_no_upper_bound() -> None:
    found = row(torch.inf, 1.0, torch.inf, also=torch.inf)
    assert found.attacked.mean is None
    assert "withstood every radius" in found.attacked.why_not
    assert found.certified.mean == pytest.approx(1 / 4)


def test_an_attack_below_a_certificate_raises() -> None:
    with pytest.raises(Contradiction, match="below a certified radius"):
        row(0.5, 1.0, torch.inf)


def coded() -> Run:
    """An untrained symmetric net on sparse codes."""
    return train(
        Experiment(
            data=SparseCode(d=30, k=5.0, w_seed=0),
            net=Symmetric(m=60, b=0.2),
            train=NoTraining(),
            samples=Samples(train=1, test=40),
            seeds=(0, 1),
        )
    )


def test_a_code_of_the_other_label_lies_twice_as_far_as_half_way() -> None:
    """Steps of 1/sqrt k on the coordinates with the largest |w*|, one after the other."""
    run = coded()
    data: SparseCode = run.data
    z, y = data.codes((0, 1), 40, "test")
    w, small = data.label_vector((0, 1)), data.k**-0.5
    radii = halfway_radii(run, 40)
    legal = torch.tensor([0.0, 1.0, small], dtype=torch.float64)
    for r in range(2):
        for code, label, radius in zip(z.dense()[r], y[r], radii[r], strict=True):
            moved = code.clone()
            for j in w[r].abs().argsort(descending=True).tolist():
                if (moved @ w[r]) * label < 0:
                    break
                step = -small * label * w[r, j].sign()
                taken = moved[j] != 0 and (moved[j] + step).abs() > 1e-9
                moved[j] += 0.0 if taken else step
            assert (moved @ w[r]) * label < 0
            assert torch.isclose(moved.abs()[:, None], legal).any(1).all()
            assert (moved - code).norm() / 2 == pytest.approx(float(radius))


def test_the_symmetric_nets_certificate_holds() -> None:
    run = coded()
    plan = AttackPlan(SuiteL2(), (0.5,), 20, "input")
    attacked = Attacked((0.5,), ("x",), {"x": torch.full((2, 20), 9.0).double()}, {}, 1.0, 0)
    table = {"a": Setting(run.experiment, plan)}
    evidence = Evidence(table, table, Source(lambda e: run, lambda run, plan: attacked))
    found = certified(evidence, "a")
    assert found.lower.shape == (2, 20)
    assert (found.lower > 0).any()
    batch = run.fresh(20)
    right = run.classifier.predict(batch.x) == batch.y
    assert (found.lower[~right] == 0).all()
    draw = torch.randn(200, *batch.x.shape, generator=torch.Generator().manual_seed(0)).double()
    way = draw / draw.norm(dim=-1, keepdim=True)
    for delta in found.lower.unsqueeze(-1) * way:
        still = run.classifier.predict(batch.x.double() + 0.999 * delta) == batch.y
        assert still[found.lower > 0].all()


def test_a_certificate_above_an_attack_raises_wherever_it_is_asked_for() -> None:
    table = {"a": Setting(small("seeds=[0, 1]"), PLAN, certify=CertifyPlan())}
    radii = torch.full((2, 2), 0.5, dtype=torch.float64)
    attacked = Attacked((0.5,), ("x",), {"x": radii}, {}, 1.0, 0)
    source = Source(train, lambda run, plan: attacked, lambda run, plan: bracketed(1.0, 2.0))
    evidence = Evidence(table, table, source)
    with pytest.raises(Contradiction, match="below a certified radius"):
        evidence.certified("a")
    within = replace(
        PAPER.claim("thm-d.3"), settings=("a",), measure="robustness:certified_at_third"
    )
    with pytest.raises(Contradiction, match="below a certified radius"):
        verdict(PAPER, within, evidence)
