"""Softmax-difference certificates against rays in the plane and many local searches."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from lab import trained_fine
from unmix.attacks.minimum import MinimumNorm
from unmix.attacks.suite import SuiteL2
from unmix.certify.base import BOUND, EXACT, TIMEOUT, UNSUPPORTED, Question, certificate
from unmix.certify.softmax import PairwiseLipschitz, SoftmaxDual
from unmix.certify.softmax_exact import SoftmaxExact
from unmix.nets.activations import Activation, LeakyRelu, Power, Relu
from unmix.nets.form import Form

REACH, ANGLES, STEPS = 6.0, 180, 200
TOL = 1e-3


def fine(
    seed: int,
    h: int = 1,
    d: int = 2,
    spread: float = 0.0,
    activation: Activation | None = None,
    signed: bool = False,
) -> Question:
    """2 to 5 outputs of two signs, h neurons each that differ by `spread`; labels are the net's."""
    made, rng = torch.Generator().manual_seed(seed), np.random.default_rng(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=made, dtype=torch.float64)

    outputs = int(rng.integers(2, 6))
    signs = torch.tensor([1.0, -1.0, *rng.choice([1.0, -1.0], outputs - 2)], dtype=torch.float64)
    w, b = 2 * normal(outputs, d), 0.3 * normal(outputs)
    w = w.repeat_interleave(h, 0) + spread * normal(outputs * h, d)
    readout = torch.eye(outputs, dtype=torch.float64).repeat_interleave(h, 0) / h
    if signed:
        readout = normal(outputs * h, outputs)
    if rng.random() < 0.2:
        w[0] = 0
    form = Form(w[None], b.repeat_interleave(h)[None], readout[None], activation or Relu(), signs)
    x = normal(1, 3, d)
    y = torch.where(form.decision(x) > 0, 1.0, -1.0).double()
    y[0, 2] = -y[0, 2]
    return Question(form, x, y)


def scanned(asked: Question, point: int) -> float:
    """Smallest step of rays all around at which a point is lost, then of rays near the best."""
    wide, best = np.pi, np.inf
    centre = 0.0
    for _ in range(4):
        angles = centre + torch.linspace(-wide, wide, ANGLES, dtype=torch.float64)
        steps = crossings(asked, point, torch.stack([angles.cos(), angles.sin()], 1))
        if not steps.isfinite().any():
            break
        best = min(best, float(steps.min()))
        centre, wide = float(angles[steps.argmin()]), wide * 4 / ANGLES
    return best


def crossings(asked: Question, point: int, rays: torch.Tensor) -> torch.Tensor:
    """The first step along each ray that is lost, by bisection within its grid."""
    y = asked.y[0, point]

    def lost(t: torch.Tensor) -> torch.Tensor:
        moved = asked.x[0, point] + t[..., None] * rays
        f = asked.form.decision(moved.reshape(1, -1, 2)).reshape(t.shape)
        return torch.where(f > 0, 1.0, -1.0) != y

    grid = torch.linspace(0, REACH, STEPS, dtype=torch.float64)
    hit = lost(grid[:, None].expand(STEPS, len(rays)))
    first = hit.double().argmax(0)
    high, low = grid[first], grid[(first - 1).clamp_min(0)]
    for _ in range(40):
        middle = (low + high) / 2
        held = lost(middle)
        low, high = torch.where(held, low, middle), torch.where(held, middle, high)
    return torch.where(hit.any(0), high, torch.inf)


@pytest.mark.usefixtures("unchecked")
def test_exact_radii_are_those_of_a_scan_of_the_plane() -> None:
    opened = 0
    for seed in range(30):
        asked = fine(seed)
        found = SoftmaxExact(tol=TOL).answer(asked)
        assert found.lower[0, 2] == found.upper[0, 2] == 0
        for point in range(2):
            seen, lower = scanned(asked, point), found.lower[0, point]
            assert lower <= seen * (1 + 1e-9), seed
            if not np.isfinite(seen):
                assert found.upper[0, point] > 0.99 * REACH, seed
            elif found.status[0, point] == EXACT:
                # A ray between two of ours is longer by a share of 1e-5 only.
                assert found.upper[0, point] <= seen * (1 + TOL + 1e-4), seed
                assert lower >= seen * (1 - TOL - 1e-4), seed
            else:
                opened += 1
    assert opened <= 2


@pytest.mark.usefixtures("unchecked")
def test_many_local_searches_never_fall_below_and_meet_it() -> None:
    for seed in range(100, 106):
        asked = fine(seed, d=4)
        found = SoftmaxExact(tol=TOL).answer(asked)
        nearest = searched(asked, 0)
        assert found.lower[0, 0] <= nearest * (1 + 1e-7), seed
        if np.isfinite(nearest) and found.status[0, 0] == EXACT:
            assert found.upper[0, 0] <= nearest * (1 + TOL + 1e-6), seed


def searched(asked: Question, point: int, starts: int = 15) -> float:
    """min |delta| with f of the other sign, by SLSQP from random starts."""
    x, y, rng = asked.x[0, point], float(asked.y[0, point]), np.random.default_rng(point)

    def margin(delta: np.ndarray) -> float:
        return y * float(asked.form.decision((x + torch.from_numpy(delta))[None, None]))

    best = np.inf
    for _ in range(starts):
        start = rng.normal(size=len(x)) * rng.uniform(0.2, 3)
        out = minimize(
            lambda v: v @ v, start, jac=lambda v: 2 * v, method="SLSQP",
            constraints={"type": "ineq", "fun": lambda v: -margin(v)},
        )  # fmt: skip
        if margin(out.x * (1 + 1e-9)) <= 1e-9:
            best = min(best, float(np.linalg.norm(out.x)))
    return best


@pytest.mark.usefixtures("unchecked")
def test_sums_of_neurons_hold_the_scan() -> None:
    shares = []
    for seed in range(200, 212):
        asked = fine(seed, h=3, spread=0.02)
        found = SoftmaxExact(tol=TOL).answer(asked)
        for point in range(2):
            seen = scanned(asked, point)
            assert found.lower[0, point] <= seen * (1 + 1e-9), seed
            if np.isfinite(seen):
                assert found.upper[0, point] >= seen * (1 - 1e-4), seed
                shares.append(found.lower[0, point] / seen)
    assert np.median(shares) > 0.98


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("activation", [Relu(), LeakyRelu(0.2), Power(2.0)], ids=repr)
def test_the_dual_lies_below_the_scan_for_any_second_layer(activation: Activation) -> None:
    better = []
    for seed in range(300, 308):
        asked = fine(seed, h=2, spread=0.5, activation=activation, signed=seed % 2 == 0)
        dual, steep = SoftmaxDual().answer(asked), PairwiseLipschitz().answer(asked)
        for point in range(2):
            assert dual.lower[0, point] <= scanned(asked, point) * (1 + 1e-9), seed
        better.append((dual.lower > steep.lower * 1.01).any())
        assert (dual.lower >= steep.lower * (1 - 1e-9)).all()
    assert any(better)


@pytest.mark.usefixtures("unchecked")
def test_large_outputs_go_to_the_dual_which_is_then_tight() -> None:
    for seed in range(400, 405):
        asked = fine(seed)
        form = asked.form
        loud = Question(
            Form(form.w, form.b, 1e4 * form.readout, Relu(), form.signs), asked.x, asked.y
        )
        assert (SoftmaxExact().answer(loud).status == UNSUPPORTED).any() or loud.lost.all()
        seen, low = scanned(loud, 0), SoftmaxDual(rounds=6).answer(loud).lower[0, 0]
        assert low <= seen * (1 + 1e-9)


@pytest.mark.usefixtures("unchecked")
def test_the_nodes_run_out_and_unknown_nets_are_named() -> None:
    asked = fine(3, d=4)
    cut = SoftmaxExact(nodes=1).answer(asked)
    assert set(cut.status.unique().tolist()) <= {EXACT, BOUND, TIMEOUT}
    assert (cut.lower <= SoftmaxExact().answer(asked).upper).all()
    for bad, why in (
        (fine(1, activation=Power(3.0)), "sums of ReLUs"),
        (fine(2, signed=True), "negative weights"),
    ):
        found = SoftmaxExact().answer(bad)
        assert found.counts["unsupported"] > 0
        assert why in found.why


@pytest.mark.usefixtures("unchecked")
def test_a_trained_net_closes() -> None:
    run = trained_fine("net.h=1")
    found = certificate(run, points=4)
    assert found.method == "softmax-exact"
    assert found.closed.all()
    radii = [0.25 * run.data.unit, 0.75 * run.data.unit]
    attacked = SuiteL2(minimum=MinimumNorm(steps=10)).curve(run, radii, points=4).smallest
    assert (found.lower <= attacked * (1 + 1e-9)).all()
    assert (found.upper <= attacked * (1 + 2e-3)).all()
