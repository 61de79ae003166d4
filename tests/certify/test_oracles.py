"""The exact solver against brute force over all patterns, and against subsets of opponents."""

from __future__ import annotations

import pytest
import torch
from small_nets import question

from unmix.certify.base import EXACT, Certificate
from unmix.certify.bounds import Interval, Lipschitz, Root
from unmix.certify.brute import BruteForce
from unmix.certify.exact import ExactL2
from unmix.certify.subsets import Subsets
from unmix.nets.activations import LeakyRelu, Relu

# The solver's own tolerance, twice; what least squares and linear programs lose.
TOL, LOSS = 2e-4, 1e-6
FAR = 1e3
BLOCKS = range(10)


def agrees(found: Certificate, oracle: Certificate, seed: object) -> int:
    """The bracket holds the oracle's radius; how many it leaves open that the oracle closes.

    Where the lost set has no inside (f = |z| is lost on a plane only), nobody has a witness.
    """
    exact = oracle.lower
    assert (found.lower <= exact * (1 + LOSS)).all(), seed
    assert (found.upper >= exact * (1 - LOSS)).all(), seed
    near = exact < FAR
    assert (found.lower[near] >= exact[near] * (1 - TOL)).all(), seed
    return int((oracle.upper.isfinite() & (found.upper > oracle.upper * (1 + TOL) + 1e-9)).sum())


@pytest.mark.parametrize("block", BLOCKS)
def test_exact_radii_are_those_of_brute_force(block: int) -> None:
    opened = 0
    for seed in range(60 * block, 60 * block + 60):
        asked = question(seed, LeakyRelu(0.2) if seed % 4 == 3 else Relu())
        oracle, found = BruteForce().answer(asked), ExactL2().answer(asked)
        opened += agrees(found, oracle, seed)
        assert (found.lower[asked.lost] == 0).all()
        assert (found.upper[asked.lost] == 0).all()
        assert (found.status[asked.lost] == EXACT).all()
    # A corner of the lost set may be too thin to find a witness in; the lower end is right there.
    assert opened <= 2


def test_subsets_are_an_independent_second_implementation() -> None:
    for seed in range(600, 750):
        asked = question(seed)
        oracle, found = BruteForce().answer(asked), Subsets().answer(asked)
        finite = oracle.lower < FAR
        torch.testing.assert_close(
            found.lower[finite], oracle.lower[finite], rtol=LOSS, atol=1e-9, msg=str(seed)
        )
        assert (found.lower[~finite] >= FAR).all(), seed


def test_several_outputs_are_asked_rival_by_rival() -> None:
    for seed in range(800, 900):
        asked = question(seed, outputs=2 + seed % 3, most=5)
        agrees(ExactL2().answer(asked), BruteForce().answer(asked), seed)


@pytest.mark.parametrize(
    "method", [Root(), Root(rounds=0), Interval(), Lipschitz()], ids=lambda m: repr(m)
)
def test_bounds_lie_below_the_exact_radius(method: object) -> None:
    for seed in range(900, 960):
        asked = question(seed, LeakyRelu(0.3) if seed % 3 == 0 else Relu(), outputs=1 + seed % 2)
        exact, bound = BruteForce().answer(asked), method.answer(asked)
        assert (bound.lower <= exact.lower * (1 + LOSS)).all(), seed
        assert bound.upper[~asked.lost].isinf().all()


def test_the_root_bound_is_the_better_one() -> None:
    for seed in range(960, 990):
        asked = question(seed)
        root, still, lipschitz = (
            m.answer(asked).lower for m in (Root(), Root(rounds=0), Lipschitz())
        )
        assert (root >= still * (1 - 1e-3)).all(), seed
        assert (root >= lipschitz * (1 - 1e-3)).all(), seed


def test_radii_do_not_depend_on_the_scale_of_net_or_space() -> None:
    for seed in range(20):
        asked = question(seed)
        form = asked.form
        louder = type(form)(form.w, form.b, 1e3 * form.readout, form.activation)
        wider = type(form)(form.w / 50, form.b, form.readout, form.activation)
        plain = ExactL2().answer(asked)
        loud = ExactL2().answer(type(asked)(louder, asked.x, asked.y))
        wide = ExactL2().answer(type(asked)(wider, 50 * asked.x, asked.y))
        torch.testing.assert_close(loud.lower, plain.lower, rtol=TOL, atol=0)
        torch.testing.assert_close(wide.lower, 50 * plain.lower, rtol=TOL, atol=0)


def test_a_known_success_only_helps() -> None:
    for seed in range(20):
        asked = question(seed)
        plain = ExactL2().answer(asked)
        told = ExactL2().answer(asked, plain.upper * 1.001)
        near = plain.upper < FAR
        torch.testing.assert_close(told.lower[near], plain.lower[near], rtol=TOL, atol=0)
