"""Closed forms of the pReLU paper beside plain references: radii, fields, laws, distances."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as trials
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from torch.nn.functional import normalize

from unmix.data.clusters import Clusters
from unmix.papers.prelu import predict
from unmix.papers.prelu.measures.classifiers import coordinates, halfway_radius, value

DATA = Clusters(k=5, d=50, sigma=1.0, scale="unit", positive=(0, 1, 2))
made = st.integers(0, 2**31 - 1)


def points(seed: int, n: int = 40) -> tuple[torch.Tensor, torch.Tensor]:
    """Noisy points near centres, correctly classified or not."""
    generator = torch.Generator().manual_seed(seed)
    cluster = torch.randint(5, (n,), generator=generator)
    x = torch.eye(5, dtype=torch.float64)[cluster]
    x = x + 0.3 * torch.randn(n, 5, generator=generator, dtype=torch.float64)
    return x, DATA.signs[cluster]


def directions(seed: int, n: int, y: torch.Tensor) -> torch.Tensor:
    """Random unit directions, half of them leaning towards the other label."""
    generator = torch.Generator().manual_seed(seed + 1)
    u = torch.randn(n, 400, 5, generator=generator, dtype=torch.float64)
    u[:, ::2] -= 2 * (y[:, None] * DATA.signs)[:, None]
    return normalize(u, dim=-1)


@trials(max_examples=25, deadline=None)
@given(made)
def test_the_radius_of_f_is_exact(seed: int) -> None:
    x, y = points(seed)
    radius = predict.exact_radius(x, y, DATA)
    right = value(x, DATA, None) * y > 0
    assert torch.equal(right, radius > 0)
    u = directions(seed, len(x), y)
    inside = x[:, None] + 0.999 * radius.clamp_min(0)[:, None, None] * u
    assert ((value(inside, DATA, None) * y[:, None] > 0) | ~right[:, None]).all()
    # And it is reached: along one of the two half-spaces' normals.
    own = (y[:, None] == DATA.signs).double()
    normals = torch.stack([-normalize(own, dim=-1), -y[:, None] * DATA.signs / math.sqrt(5)], 1)
    outside = x[:, None] + (radius.clamp_min(0) + 1e-9)[:, None, None] * normals
    assert ((value(outside, DATA, None) * y[:, None] <= 0).any(1) | ~right).all()


@trials(max_examples=25, deadline=None)
@given(made, st.sampled_from([2.0, 2.5, 3.0, 4.0]))
def test_no_perturbation_lies_below_the_certificate(seed: int, p: float) -> None:
    x, y = points(seed)
    radius = predict.certified_radius(x, y, DATA, p)
    right = value(x, DATA, p) * y > 0
    assert torch.equal(right, radius > 0)
    u = directions(seed, len(x), y)
    moved = x[:, None] + 0.999 * radius.clamp_min(0)[:, None, None] * u
    assert ((value(moved, DATA, p) * y[:, None] > 0) | ~right[:, None]).all()
    attacked = halfway_radius(x[None], y[None], DATA, p)[0]
    assert (attacked >= radius - 1e-8)[right].all()


def test_at_a_centre_radii_are_the_papers() -> None:
    x, y = torch.eye(5, dtype=torch.float64), DATA.signs
    assert predict.exact_radius(x, y, DATA).tolist() == pytest.approx([5**-0.5] * 5)
    for p in (2.0, 3.0):
        assert predict.certified_radius(x, y, DATA, p).tolist() == pytest.approx([0.5**0.5] * 5)
        reached = halfway_radius(x[None], y[None], DATA, p)
        assert reached.flatten().tolist() == pytest.approx([0.5**0.5] * 5)
    assert predict.without_power(4) == pytest.approx(5**-0.5)


def test_the_drawn_coordinates_are_those_of_the_data() -> None:
    data = DATA.override("sigma=2.0")
    x, y = coordinates(data, (0, 1), 4000)
    assert torch.equal(y, torch.where(x.argmax(-1) < 3, 1.0, -1.0)) or (y.abs() == 1).all()
    batch = data.sample((0, 1), 4000, "test")
    inside = batch.x @ data.centres((0, 1)).transpose(1, 2)
    for statistic in (torch.mean, torch.std):
        assert float(statistic(x)) == pytest.approx(float(statistic(inside)), abs=0.01)


def test_bounds_are_those_of_the_text() -> None:
    data = Clusters(k=10, d=1000, sigma=3.0, scale="unit", positive=tuple(range(6)))
    assert 1 - predict.clean_bound(data, None) == pytest.approx(0.997, abs=1e-3)
    one = data.override("sigma=1.0")
    assert predict.broken_share(one, 0.1) == pytest.approx(0.159, abs=1e-3)
    assert predict.broken_share(one, 0.3) == pytest.approx(1.35e-3, rel=1e-2)
    assert predict.lost_bound(one, 0.2) == pytest.approx(10 * predict.lost_bound(one, 0.2, False))


@pytest.mark.parametrize(("rate", "time"), [(0.1, 300.0), (0.05, 5000.0), (0.24, 16040.0)])
def test_margins_solve_their_equation(rate: float, time: float) -> None:
    law = solve_ivp(lambda t, m: 2 * rate * m * np.exp(-m), (0, time), [1.0], rtol=1e-9, atol=1e-9)
    assert predict.margin(rate, time) == pytest.approx(law.y[0, -1], rel=1e-6)


@pytest.mark.parametrize("p", [3, 4, 6])
def test_escape_is_that_of_one_neuron_at_one_centre(p: int) -> None:
    """c' = (p/K) c^(p-1) (1 - c^2), (ln |w|)' = c^p/K up to |w|^2 c^p = 1."""
    k, cosine, length = 10, 0.1, 1e-7

    def field(t: float, state: np.ndarray) -> list[float]:
        c, _ = state
        return [p / k * c ** (p - 1) * (1 - c * c), c**p / k]

    def escaped(t: float, state: np.ndarray) -> float:
        return float(state[1] + p / 2 * math.log(state[0]))

    escaped.terminal = True  # type: ignore[attr-defined]
    path = solve_ivp(
        field, (0, 1e6), [cosine, math.log(length)], events=escaped, rtol=1e-9, atol=1e-12
    )
    law = predict.escape_time(k, p, cosine, length)
    assert path.t_events[0][0] == pytest.approx(law, rel=0.1)
