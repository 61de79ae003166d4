"""The Gram matrix of the neurons against plain input coordinates and autograd.

Tolerances are those of float64 with a ridge of 1e-13: 1e-6 of a length, 1e-9 of a slope.
"""

from __future__ import annotations

import pytest
import torch

from lab import gaussian, still, trained, trained_fine
from unmix.attacks.base import attack
from unmix.attacks.bundle import Bundle
from unmix.attacks.frame import InputFrame, Moves, NeuronFrame
from unmix.attacks.gradient import APGD, PGD
from unmix.attacks.minimum import MinimumNorm
from unmix.attacks.objectives import margin, objective
from unmix.attacks.problem import Problem, problems
from unmix.attacks.target import FormTarget, Target
from unmix.attacks.threat import Threat
from unmix.data.clusters import Clusters
from unmix.nets.prelu import PReLU

RUNS = {
    "binary": lambda: gaussian(trained(), seed=3),
    "k-class": lambda: gaussian(trained_fine(), seed=3),
    "prelu": lambda: still(PReLU(p=3.0, h=12, sigma=1.0), Clusters(k=4, d=32), test=8),
}
RADII = tuple(0.5 * i for i in range(1, 12))


def problem(label: str) -> Problem:
    return problems(RUNS[label](), Threat(), max(RADII), 8)[0]


def pair(mine: Problem) -> tuple[NeuronFrame, InputFrame]:
    frame = mine.frame
    assert isinstance(frame, NeuronFrame)
    return frame, mine.inputs


@pytest.mark.parametrize("label", RUNS)
def test_gradients_by_hand_are_those_of_autograd(label: str) -> None:
    mine = problem(label)
    target: Target = mine.judge
    assert isinstance(target, FormTarget)
    x = mine.x.double().clone().requires_grad_()
    value, _ = margin(target.scores(x), mine.y)
    (wanted,) = torch.autograd.grad(value.sum(), x)
    _, got, gradient = target.pull(mine.x.double(), objective("margin", mine.y))
    torch.testing.assert_close(got, value.detach())
    torch.testing.assert_close(gradient, wanted, rtol=1e-9, atol=1e-12)
    # The bound of the slopes is one.
    assert (gradient.norm(dim=1) <= target.lipschitz * (1 + 1e-12)).all()


@pytest.mark.parametrize("label", RUNS)
def test_a_step_in_the_frame_is_the_step_in_input_space(label: str) -> None:
    mine = problem(label)
    frame, plain = pair(mine)
    point = torch.arange(8)
    inside, outside = frame.still(point), plain.still(point)
    size, radius = torch.full((8,), 0.4).double(), torch.full((8,), 0.9).double()
    for _ in range(5):
        lowered = objective("margin", mine.y)
        scores, value, slopes = frame.pull(inside, lowered)
        wanted, plain_value, gradient = plain.pull(outside, lowered)
        torch.testing.assert_close(scores, wanted, rtol=1e-9, atol=1e-9)
        for move in ("closest", "step"):
            args = (value, 0.7) if move == "closest" else (size, radius)
            plain_args = (plain_value, 0.7) if move == "closest" else (size, radius)
            one = getattr(frame, move)(inside, slopes, *args)
            other = getattr(plain, move)(outside, gradient, *plain_args)
            torch.testing.assert_close(frame.length(one), plain.length(other), rtol=1e-6, atol=1e-9)
            torch.testing.assert_close(frame.lift(one), other.dz, rtol=1e-5, atol=1e-6)
        inside, outside = one, other


@pytest.mark.parametrize("label", RUNS)
def test_lifted_perturbations_have_their_length_and_effect(label: str) -> None:
    frame, _ = pair(problem(label))
    point = torch.arange(8)
    draw = torch.randn(8, frame.width, generator=torch.Generator().manual_seed(1)).double()
    direction = torch.randn(8, 32, generator=torch.Generator().manual_seed(2)).double()
    some = [frame.random(point, draw), frame.along(direction)]
    for moves in (*some, frame.plus(*some), frame.momentum(*some, some[0], 9 + 0 * draw[:, 0])):
        delta = frame.lift(moves)
        torch.testing.assert_close(delta.norm(dim=1), frame.length(moves), rtol=1e-5, atol=1e-9)
        torch.testing.assert_close(delta @ frame.target.w.T, moves.dz, rtol=1e-5, atol=1e-6)
    # A direction keeps its effect, up to scale.
    cosine = torch.cosine_similarity(some[1].dz, direction @ frame.target.w.T)
    torch.testing.assert_close(cosine, torch.ones_like(cosine))


def test_equal_opposite_and_zero_neurons_do_no_harm() -> None:
    w = torch.randn(5, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    w[1], w[2], w[3] = w[0], -w[0], 0
    target = FormTarget(w, torch.zeros(5).double(), problem("binary").judge.head)
    frame = NeuronFrame.of(target, torch.zeros(4, 5).double())
    moves = frame.along(w[[0, 1, 2, 4]])
    torch.testing.assert_close(
        frame.lift(moves).norm(dim=1), torch.ones(4).double(), rtol=1e-5, atol=0
    )


def test_several_cuts_give_the_shortest_point_behind_all() -> None:
    mine = problem("binary")
    frame, _ = pair(mine)
    made = torch.Generator().manual_seed(5)
    bundle, cuts = Bundle.of(frame, 8), []
    zero = frame.still(torch.arange(8))
    for _ in range(3):
        slopes = torch.randn(8, frame.width, generator=made).double()
        value = 0.5 + torch.rand(8, generator=made).double()
        bundle.add(zero, slopes, value)
        cuts.append((slopes @ frame.target.w, value))
    # Far along the sum of all gradients every cut is met.
    far = -10 * sum(g for g, _ in cuts)
    best = Moves(zero.point, far @ frame.target.w.T, far.square().sum(1))
    met = torch.stack([(g * far).sum(1) + v for g, v in cuts]).amax(0) <= 0
    assert met.any()
    for _ in range(30):
        delta = frame.lift(bundle.closest(best))
    for g, v in cuts:
        assert ((g * delta).sum(1) + v <= 1e-4)[met].all()
    # No closer point: delta is minus a nonnegative combination of active gradients.
    assert (delta.norm(dim=1) <= far.norm(dim=1))[met].all()


@pytest.mark.parametrize("label", RUNS)
def test_the_whole_curve_in_one_run_is_below_that_of_many(label: str) -> None:
    run = RUNS[label]()
    found = {
        a.name: attack(run, [a], RADII, points=8).smallest
        for a in (MinimumNorm(), PGD(restarts=8), APGD(), PGD(loss="ce"))
    }
    for name, radius in found.items():
        assert (found["min-norm"] <= radius * (1 + 1e-3)).double().mean() >= 0.9, name


@pytest.mark.parametrize("change", [{"hops": 0}, {"polish": 0}, {"starts": 1}, {"draws": 0}])
def test_every_part_of_the_search_may_be_left_out(change: dict) -> None:
    run = RUNS["binary"]()
    whole, part = (attack(run, [MinimumNorm(**c)], RADII).smallest for c in ({}, change))
    assert part.isfinite().all()
    assert (part >= whole * (1 - 1e-3)).double().mean() >= 0.8
