"""Exact linf radii against a linear program for each activation pattern, and against rays."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small_nets import question
from test_curves import CURVES, REACH, STEPS, scanned
from test_oracles import TOL, agrees

from lab import still, trained, trained_fine
from unmix import certificate
from unmix.attacks.suite import SuiteLinf
from unmix.certify.base import EXACT, Question, sandwich
from unmix.certify.bounds import Interval, Lipschitz, Root
from unmix.certify.brute import BruteForce
from unmix.certify.exact import ExactL2, ExactLinf
from unmix.data.clusters import Clusters
from unmix.nets.activations import LeakyRelu, Relu
from unmix.nets.constructed import FeatureAveraging

ORACLE = BruteForce(threat="linf")


@pytest.mark.parametrize("block", range(10))
def test_exact_radii_are_those_of_brute_force(block: int) -> None:
    opened = 0
    for seed in range(52 * block, 52 * block + 52):
        asked = question(seed, LeakyRelu(0.2) if seed % 4 == 3 else Relu(), most=4)
        oracle, found = ORACLE.answer(asked), ExactLinf().answer(asked)
        agrees(found, oracle, seed)
        # In a set without inside it is rounding that gives the oracle a witness.
        lasts = asked.wrong(asked.x + (1 + 1e-7) * oracle.witness) & oracle.upper.isfinite()
        opened += int((lasts & (found.upper > oracle.upper * (1 + TOL))).sum())
        assert (found.lower[asked.lost] == 0).all()
        assert (found.upper[asked.lost] == 0).all()
        assert (found.status[asked.lost] == EXACT).all()
    assert opened <= 1


def test_more_neurons_and_several_outputs() -> None:
    for seed in range(700, 730):
        agrees(ExactLinf().answer(asked := question(seed, most=7)), ORACLE.answer(asked), seed)
        asked = question(seed, outputs=2 + seed % 3, most=4)
        agrees(ExactLinf().answer(asked), ORACLE.answer(asked), seed)


@pytest.mark.parametrize("activation", CURVES, ids=repr)
def test_brackets_hold_the_smallest_ray(activation: object) -> None:
    opened = 0
    for seed in range(12):
        asked = question(seed, activation, d=2)
        found = ExactLinf(tol=1e-3, nodes=500).answer(asked)
        root = Root(threat="linf").answer(asked)
        for point in range(2):
            seen, lower = scanned(asked, point, np.inf), found.lower[0, point]
            assert lower <= seen * (1 + 1e-9), seed
            assert root.lower[0, point] <= seen * (1 + 1e-9), seed
            if found.status[0, point] != EXACT:
                opened += 1
            elif np.isfinite(seen):
                assert lower >= 0.95 * seen - 2 * REACH / STEPS, seed
            else:
                assert found.upper[0, point] >= REACH * 0.95, seed
    assert opened <= 3


def test_bounds_lie_below_the_exact_radius() -> None:
    for seed in range(900, 930):
        asked = question(seed, LeakyRelu(0.3) if seed % 3 == 0 else Relu(), outputs=1 + seed % 2)
        exact = ExactLinf().answer(asked)
        for method in (Root, Interval, Lipschitz):
            bound = method(threat="linf").answer(asked)
            assert (bound.lower <= exact.upper * (1 + 1e-9)).all(), (method, seed)
        root = Root(threat="linf").answer(asked).lower
        assert (root >= Lipschitz(threat="linf").answer(asked).lower * (1 - 1e-3)).all(), seed


def test_radii_do_not_depend_on_the_scale_of_net_or_space() -> None:
    for seed in range(20):
        asked = question(seed)
        form = asked.form
        louder = type(form)(form.w, form.b, 1e3 * form.readout, form.activation)
        wider = type(form)(form.w / 50, form.b, form.readout, form.activation)
        plain = ExactLinf().answer(asked)
        loud = ExactLinf().answer(type(asked)(louder, asked.x, asked.y))
        wide = ExactLinf().answer(type(asked)(wider, 50 * asked.x, asked.y))
        torch.testing.assert_close(loud.lower, plain.lower, rtol=TOL, atol=0)
        torch.testing.assert_close(wide.lower, 50 * plain.lower, rtol=TOL, atol=0)


def test_between_the_l2_radius_and_its_share() -> None:
    """|delta|_inf <= |delta|_2 <= sqrt d |delta|_inf, on a net that no oracle can do."""
    asked = question(7, most=60, points=6, d=40)
    wide, cube = ExactL2(tol=1e-2).answer(asked), ExactLinf(tol=1e-2).answer(asked)
    assert (cube.lower <= wide.upper).all()
    assert (cube.upper >= wide.lower / 40**0.5).all()
    told = ExactLinf(tol=1e-2).answer(asked, cube.upper * 1.001)
    torch.testing.assert_close(told.lower, cube.lower, rtol=2e-2, atol=0)


def test_the_averaging_net_at_its_centres() -> None:
    """y = 1 is lost where A <= B or A <= 0, A and B being the sums over either label's centres;
    both are linear, and A = d, B = 0 at a centre."""
    world = Clusters(k=6, d=24)
    run = still(FeatureAveraging(), world)
    mu, y = world.centres((0,), torch.float64), world.signs.double()[None]
    found = ExactLinf().answer(Question(run.model.double().form, mu, y))
    assert found.counts["exact"] == 6
    ours, theirs = mu[0, world.signs > 0].sum(0), mu[0, world.signs < 0].sum(0)
    radius = 24 / torch.stack([ours - theirs, ours]).abs().sum(1).max()
    torch.testing.assert_close(found.upper[0, world.signs > 0], radius.expand(3), rtol=TOL, atol=0)
    own = certificate(run, points=4, norm="linf")
    assert own.method == "exact-linf"
    assert "exact-linf (linf): 4 exact" in str(own)


@pytest.mark.parametrize("run", [trained, trained_fine])
def test_the_bracket_holds_what_attacks_find(run: object) -> None:
    run = run()
    radii = [share * run.data.unit / run.data.d**0.5 for share in (0.25, 0.75)]
    attacked = SuiteLinf().curve(run, radii, points=4)
    found = certificate(run, points=4, above=attacked.smallest, norm="linf")
    sandwich(found.lower, attacked.smallest)
    assert (found.certified_accuracy(radii) <= attacked.robust_accuracy() + 1e-12).all()
