"""Losses, derivatives and margins against their formulas, also where naive ones overflow."""

from __future__ import annotations

import math

import pytest
import torch

from unmix.train.losses import derivatives, losses, margins

F = torch.tensor([[[0.0], [2.0], [-3.0], [800.0], [-800.0]]]).double()
Y = torch.tensor([[1.0, -1.0, 1.0, -1.0, -1.0]]).double()
OUT = torch.tensor([[[1.0, 2.0, 0.5], [900.0, 0.0, -900.0], [0.0, 0.0, 0.0]]]).double()
CLASS = torch.tensor([[2, 1, 0]])


def test_the_logistic_loss() -> None:
    wanted = [math.log(2), math.log1p(math.e**2), math.log1p(math.e**3), 800.0, 0.0]
    assert losses(F, Y)[0].tolist() == pytest.approx(wanted, rel=1e-14)


def test_the_logistic_derivative_includes_the_label() -> None:
    wanted = [-1 / 2, 1 / (1 + math.e**-2), -1 / (1 + math.e**-3), 1.0, 0.0]
    assert derivatives(F, Y)[0, :, 0].tolist() == pytest.approx(wanted, rel=1e-14)


def test_the_cross_entropy() -> None:
    total = math.e + math.e**2 + math.e**0.5
    assert losses(OUT, CLASS)[0].tolist() == pytest.approx(
        [math.log(total) - 0.5, 900, math.log(3)]
    )
    wanted = [[math.e / total, math.e**2 / total, math.e**0.5 / total - 1], [1, -1, 0]]
    rows = derivatives(OUT, CLASS)[0].tolist()
    assert rows[0] == pytest.approx(wanted[0])
    assert rows[1] == wanted[1]
    assert rows[2] == pytest.approx([-2 / 3, 1 / 3, 1 / 3])


@pytest.mark.parametrize(("outputs", "targets"), [(F, Y), (OUT, CLASS)])
def test_derivatives_are_those_of_autograd(outputs, targets) -> None:
    leaf = outputs.clone().requires_grad_()
    (wanted,) = torch.autograd.grad(losses(leaf, targets).sum(), leaf)
    torch.testing.assert_close(derivatives(outputs, targets), wanted, rtol=1e-12, atol=1e-300)


def test_margins_are_label_times_output_or_the_own_output() -> None:
    assert margins(F, Y)[0].tolist() == [0.0, -2.0, -3.0, -800.0, 800.0]
    assert margins(OUT, CLASS)[0].tolist() == [0.5, 0.0, 0.0]
