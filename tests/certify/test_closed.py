"""Closed forms against the search, and against the formulas of the papers."""

from __future__ import annotations

import math

import pytest
import torch
from small_nets import question

from lab import still
from unmix import certificate
from unmix.certify.base import EXACT, UNSUPPORTED, Question
from unmix.certify.brute import BruteForce
from unmix.certify.closed import ClosedForm
from unmix.certify.exact import ExactL2
from unmix.data.clusters import Clusters
from unmix.nets.activations import Power, Relu
from unmix.nets.constructed import FeatureAveraging
from unmix.nets.form import Form
from unmix.nets.prelu_constructed import PReLUAveraging, PReLUSubclasses

WORLD = Clusters(k=6, d=40, sigma=0.1, scale="unit")


def pair(seed: int) -> Question:
    """An own and an opposing ReLU, at points of either label."""
    made = torch.Generator().manual_seed(seed)
    w, b, x = (
        torch.randn(s, generator=made, dtype=torch.float64) for s in ((1, 2, 3), (1, 2), (1, 8, 3))
    )
    a = torch.tensor([[[1.0], [-2.0]]], dtype=torch.float64)
    form = Form(w, b * (seed % 2), a, Relu())
    return Question(form, x, torch.where(form.decision(x) > 0, 1.0, -1.0).double())


@pytest.mark.usefixtures("unchecked")
def test_two_relus_are_those_of_brute_force() -> None:
    exact = 0
    for seed in range(60):
        asked = pair(seed)
        found, oracle = ClosedForm().answer(asked), BruteForce().answer(asked)
        near = oracle.lower < 1e3
        torch.testing.assert_close(
            found.lower[near], oracle.lower[near], rtol=1e-6, atol=1e-9, msg=str(seed)
        )
        assert (found.lower[~near] >= 1e3).all(), seed
        exact += int((found.status == EXACT).sum())
    assert exact > 400


@pytest.mark.usefixtures("unchecked")
def test_powers_lie_below_the_search() -> None:
    for seed in range(20):
        asked = question(seed, Power(2.0 + seed % 3), outputs=1 + seed % 2)
        found, whole = ClosedForm().answer(asked), ExactL2(nodes=300).answer(asked)
        known = found.status != UNSUPPORTED
        assert (found.lower <= whole.upper * (1 + 1e-9))[known].all(), seed


@pytest.mark.usefixtures("unchecked")
def test_it_is_the_papers_formulas() -> None:
    run = still(PReLUAveraging(), WORLD)
    found, batch = certificate(run, points=8), run.fresh(8)
    assert found.method == "closed-form"
    inside = batch.x.double() @ run.centres.double().transpose(1, 2)
    own = inside[..., list(WORLD.plus)].sum(-1)
    other = inside[..., list(WORLD.minus)].sum(-1)
    y = batch.y
    a, b = torch.where(y > 0, own, other), torch.where(y > 0, other, own)
    sizes = torch.where(y > 0, float(len(WORLD.plus)), float(len(WORLD.minus))).sqrt()
    wanted = torch.minimum(a / sizes, (a - b) / math.sqrt(6)).clamp_min(0)
    torch.testing.assert_close(found.lower[y > 0], wanted[y > 0], rtol=1e-6, atol=0)
    # For y = -1 ties are right, so that the own relu may be silent.
    assert (found.lower[y < 0] >= wanted[y < 0] * (1 - 1e-6)).all()
    cubes = still(PReLUSubclasses(p=3), WORLD)
    form, mu = cubes.model.double().form, cubes.centres.double()
    at = ClosedForm().answer(Question(form, mu, WORLD.signs.double()[None]))
    torch.testing.assert_close(at.lower, torch.full((1, 6), 0.5**0.5).double(), rtol=1e-6, atol=0)


@pytest.mark.usefixtures("unchecked")
def test_the_averaging_net_and_what_has_no_form() -> None:
    world = Clusters(k=4, d=32)
    run = still(FeatureAveraging(), world)
    found = certificate(run, points=6)
    exact = certificate(run, ExactL2(), points=6)
    assert found.method == "closed-form"
    torch.testing.assert_close(found.lower, exact.lower, rtol=3e-4, atol=0)
    asked = question(3, outputs=1, d=3)
    assert (ClosedForm().answer(asked).status[~asked.lost] == UNSUPPORTED).any() or asked.lost.all()
