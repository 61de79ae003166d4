"""Certificates of curved activations against rays in the plane."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small_nets import question

from unmix.certify.base import EXACT, Question
from unmix.certify.bounds import Interval, Root
from unmix.certify.curves import Code, slope, value
from unmix.certify.exact import ExactL2
from unmix.nets.activations import (
    Activation,
    GaussianPower,
    GaussianRelu,
    LeakyRelu,
    Power,
    Relu,
    SmoothedRelu,
)

CURVES: list[Activation] = [
    Power(3.0),
    Power(2.5),
    SmoothedRelu(q=3.0, rho=0.7),
    GaussianRelu(0.3),
    LeakyRelu(0.1),
]
REACH, ANGLES, STEPS = 4.0, 180, 500


@pytest.mark.parametrize("activation", [*CURVES, Relu()], ids=repr)
def test_compiled_curves_are_the_nets_own(activation: Activation) -> None:
    code, z = Code.of(activation), torch.linspace(-3, 3, 601, dtype=torch.float64)
    for compiled, plain in ((value, activation.value), (slope, activation.slope)):
        mine = [compiled(code.kind, code.p, code.q, s) for s in z.tolist() if s != 0]
        torch.testing.assert_close(
            torch.tensor(mine, dtype=torch.float64), plain(z[z != 0]), rtol=1e-12, atol=1e-14
        )


def test_an_unknown_curve_is_refused() -> None:
    with pytest.raises(Exception, match="GaussianPower"):
        Code.of(GaussianPower(3.0, 0.1))


def scanned(asked: Question, point: int, norm: float = 2) -> float:
    """Smallest step along many rays at which a point is lost: from above, to 1e-2 or so."""
    angles = torch.linspace(0, 2 * np.pi, ANGLES + 1, dtype=torch.float64)[:-1]
    rays = torch.stack([angles.cos(), angles.sin()], 1)
    rays = rays / torch.linalg.vector_norm(rays, norm, dim=1, keepdim=True)
    t = torch.linspace(0, REACH, STEPS, dtype=torch.float64)
    moved = asked.x[0, point] + t[:, None, None] * rays
    f = asked.form.decision(moved.reshape(1, -1, 2)).reshape(STEPS, ANGLES)
    # A Gaussian tail cancels to 1e-17 of either sign.
    lost = (f <= 0) if asked.y[0, point] > 0 else (f > 1e-12)
    return float(t[lost.any(1)][0]) if lost.any() else np.inf


@pytest.mark.parametrize("activation", CURVES, ids=repr)
def test_brackets_hold_the_smallest_ray(activation: Activation) -> None:
    opened = 0
    for seed in range(12):
        asked = question(seed, activation, d=2)
        found = ExactL2(tol=1e-3, nodes=500).answer(asked)
        root, interval = Root().answer(asked), Interval().answer(asked)
        for point in range(2):
            seen = scanned(asked, point)
            lower, upper = found.lower[0, point], found.upper[0, point]
            assert lower <= seen * (1 + 1e-9), seed
            assert root.lower[0, point] <= seen, seed
            assert interval.lower[0, point] <= seen, seed
            if found.status[0, point] != EXACT:
                opened += 1
            elif np.isfinite(seen):
                # A ray between two of ours is longer by less than its angle and its step.
                assert lower >= 0.97 * seen - 2 * REACH / STEPS, seed
            else:
                assert upper >= REACH * 0.97, seed
    assert opened <= 3
