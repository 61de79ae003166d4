"""Perturbations of adversarial training: their radius, their rule, and what they leave alone."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from unmix import catalog
from unmix.balls import nearest
from unmix.data.sparse_code import SparseCode
from unmix.perturbations.base import Norm, Scene, dense, descending
from unmix.perturbations.fixed import Universal
from unmix.perturbations.gradient import FGM, ProjectedSteps
from unmix.train.engines.symmetric import SymmetricGemm

NAMES = catalog.names("perturbations")
CODE = SparseCode(d=12, k=4.0, basis="haar")
ORDER = {"l2": 2.0, "linf": math.inf}


def scene(basis: str = "haar") -> Scene:
    made = torch.Generator().manual_seed(0)
    w = torch.randn(2, 30, 12, generator=made).double() / 3
    params = {"w": w, "b": torch.tensor([0.2, 0.2]), "sigma": torch.tensor([0.02, 0.02])}
    matrix = CODE.dictionary((0, 1)) if basis == "haar" else None
    learner = SymmetricGemm.still(params, reach=9.0)
    return Scene(learner, CODE.label_vector((0, 1)), matrix, (0, 1), "test")


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("name", NAMES)
def test_a_perturbation_keeps_to_its_ball_and_to_the_net(name: str, norm: Norm) -> None:
    rule, at = catalog.load("perturbations", name)(norm=norm), scene()
    x, y = CODE.override("basis=identity").codes((0, 1), 20, "train")
    before = at.learner.params()["w"].clone()
    delta = rule.perturb(at, x, y, 0.3)
    assert delta.shape == (2, 20, 12)
    # The ball stands in input space.
    size = torch.linalg.vector_norm(at.to_input(delta), ord=ORDER[norm], dim=-1)
    assert (size <= 0.3 * (1 + 1e-9)).all()
    assert (size > 0.29).double().mean() > 0.9
    assert torch.equal(rule.perturb(at, x, y, 0.3), delta)
    assert torch.equal(at.learner.params()["w"], before)
    torch.testing.assert_close(rule.perturb(at, dense(x), y, 0.3), delta)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_more_steps_lower_the_margin_more(norm: Norm) -> None:
    at = scene()
    x, y = CODE.override("basis=identity").codes((0, 1), 200, "train")

    def margin(delta: torch.Tensor) -> float:
        return float((y * at.learner.outputs(dense(x) + delta)).mean())

    none = margin(torch.zeros(2, 200, 12).double())
    one = margin(FGM(norm=norm).perturb(at, x, y, 0.2))
    many = margin(ProjectedSteps(norm=norm, steps=10).perturb(at, x, y, 0.2))
    assert many <= one < none
    noise = margin(catalog.load("perturbations", "noise")(norm=norm).perturb(at, x, y, 0.2))
    assert abs(noise - none) < 0.3 * abs(one - none)


def test_the_universal_perturbation_is_that_of_the_theorem() -> None:
    at = scene()
    x, y = CODE.override("basis=identity").codes((0, 1), 5, "train")
    ahead = (at.dictionary @ at.label_vector.unsqueeze(-1))[..., 0]
    wanted = -0.4 * y.unsqueeze(-1) * (ahead / ahead.norm(dim=-1, keepdim=True)).unsqueeze(1)
    torch.testing.assert_close(at.to_input(Universal().perturb(at, x, y, 0.4)), wanted)
    flat = at.to_input(Universal(norm="linf").perturb(at, x, y, 0.4))
    torch.testing.assert_close(flat, -0.4 * y.unsqueeze(-1) * ahead.sign().unsqueeze(1))


def test_noise_has_a_stream_for_each_step() -> None:
    rule, at = catalog.load("perturbations", "noise")(), scene()
    x, y = CODE.override("basis=identity").codes((0, 1), 5, "train")
    other = rule.perturb(replace(at, purpose="later"), x, y, 0.3)
    assert not torch.equal(rule.perturb(at, x, y, 0.3), other)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_the_steepest_step_is_the_best_and_zero_below_its_threshold(norm: Norm) -> None:
    made = torch.Generator().manual_seed(3)
    g = torch.randn(1, 6, 5, generator=made).double()
    g[0, 1] *= 1e-8
    g[0, 2] = 0
    y = torch.tensor([[1.0, 1, 1, -1, -1, 1]]).double()
    delta = 0.3 * descending(g, y, norm, 1e-4)
    dual = 2 if norm == "l2" else 1
    assert (delta[0, 1:3] == 0).all()
    rest = [0, 3, 4, 5]
    size = torch.linalg.vector_norm(delta[0, rest], ord=ORDER[norm], dim=-1)
    torch.testing.assert_close(size, torch.full((4,), 0.3).double())
    gain = (y.unsqueeze(-1) * g * delta).sum(-1)[0, rest]
    best = -0.3 * torch.linalg.vector_norm(g[0, rest], ord=dual, dim=-1)
    torch.testing.assert_close(gain, best)
    assert (descending(torch.zeros_like(g), y, norm, 0.0) == 0).all()


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_clipping_moves_no_point_that_is_inside(norm: Norm) -> None:
    made = torch.Generator().manual_seed(4)
    delta = torch.randn(1, 50, 5, generator=made).double()
    size = torch.linalg.vector_norm(delta, ord=ORDER[norm], dim=-1)
    out = nearest(delta, norm, 1.0)
    assert torch.equal(out[size < 1], delta[size < 1])
    edge = torch.linalg.vector_norm(out[size > 1], ord=ORDER[norm], dim=-1)
    torch.testing.assert_close(edge, torch.ones_like(edge))
