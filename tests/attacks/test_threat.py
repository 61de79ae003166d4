"""The geometry of threats against plain definitions."""

from __future__ import annotations

import pytest
import torch
from scipy.optimize import linprog, minimize

from unmix.attacks.threat import Threat
from unmix.errors import AttackError, SpecError

NORMS = ("l2", "linf", "l1")
BOXES = (None, (0.0, 1.0))
THREATS = [Threat(norm=n, box=b) for n in NORMS for b in BOXES]
ORDER = {"l2": 2, "linf": torch.inf, "l1": 1}
IDS = [f"{t.norm}-{'box' if t.box else 'open'}" for t in THREATS]


def drawn(seed: int, rows: int = 20, d: int = 7):
    made = torch.Generator().manual_seed(seed)
    x = torch.rand(rows, d, generator=made, dtype=torch.float64)
    return x, torch.randn(rows, d, generator=made, dtype=torch.float64)


@pytest.mark.parametrize("threat", THREATS, ids=IDS)
def test_a_projection_is_inside_and_leaves_alone_what_is(threat: Threat) -> None:
    x, delta = drawn(1)
    radius = torch.full((len(x),), 0.4, dtype=torch.float64)
    inside = threat.project(x, delta, radius)
    assert (threat.length(inside) <= 0.4 * (1 + 1e-12)).all()
    if threat.box is not None:
        assert (x + inside).min() >= -1e-15
        assert (x + inside).max() <= 1 + 1e-15
    torch.testing.assert_close(threat.project(x, inside, radius), inside, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("norm", NORMS)
def test_without_a_box_it_is_the_nearest_point_of_the_ball(norm: str) -> None:
    x, delta = drawn(2)
    threat, radius = Threat(norm=norm), torch.full((len(x),), 0.5, dtype=torch.float64)
    mine = threat.project(x, delta, radius)
    for other in drawn(3, rows=20)[1].split(1):
        inside = other * (0.5 / threat.length(other))
        # <delta - P delta, y - P delta> <= 0 for every y of the ball.
        assert ((delta - mine) * (inside - mine)).sum(1).max() <= 1e-12


@pytest.mark.parametrize("norm", NORMS)
def test_the_steepest_step_attains_the_dual_norm(norm: str) -> None:
    _, g = drawn(4)
    threat = Threat(norm=norm)
    step = threat.steepest(g)
    torch.testing.assert_close(threat.length(step), torch.ones(len(g), dtype=torch.float64))
    torch.testing.assert_close((g * step).sum(1), threat.dual(g))
    torch.testing.assert_close(threat.length(g), torch.linalg.vector_norm(g, ORDER[norm], dim=1))
    length = threat.length(threat.step(g))
    torch.testing.assert_close(length, torch.ones_like(length))
    assert (threat.steepest(torch.zeros_like(g)) == 0).all()


@pytest.mark.parametrize("threat", THREATS, ids=IDS)
def test_the_closest_point_of_a_plane_is_that_of_a_solver(threat: Threat) -> None:
    x, g = drawn(5, rows=6, d=5)
    gap = torch.linspace(0.05, 0.6, 6, dtype=torch.float64)
    mine = threat.closest(x, g, gap)
    # Half of what the box allows at most, so that every plane can be met.
    room = torch.where(g > 0, x, 1 - x)
    gap = torch.minimum(gap, 0.5 * (g.abs() * room).sum(1))
    mine = threat.closest(x, g, gap)
    torch.testing.assert_close(-(g * mine).sum(1), gap, rtol=1e-5, atol=1e-9)
    for row in range(6):
        wanted = solved(threat, x[row].numpy(), g[row].numpy(), float(gap[row]))
        assert float(threat.length(mine[row])) == pytest.approx(wanted, rel=1e-4)


def solved(threat: Threat, x, g, gap: float) -> float:
    """The same problem by SciPy."""
    low = -x if threat.box else [None] * len(x)
    high = 1 - x if threat.box else [None] * len(x)
    bounds = list(zip(low, high, strict=True))
    d = len(x)
    if threat.norm == "l2":
        cut = {"type": "eq", "fun": lambda v: -(g @ v) - gap, "jac": lambda v: -g}
        start = -g * gap / (g @ g)
        done = minimize(
            lambda v: v @ v, start, jac=lambda v: 2 * v, bounds=bounds, constraints=[cut],
            options={"ftol": 1e-14, "maxiter": 500},
        )  # fmt: skip
        return float(done.x @ done.x) ** 0.5
    # Variables (v, s): |v_i| <= s_i, cost sum s (l1), or |v_i| <= s (linf).
    sizes = d if threat.norm == "l1" else 1
    eye = torch.eye(d).numpy()
    bound = eye if threat.norm == "l1" else torch.ones(d, 1).numpy()
    above = [[*eye[i], *(-bound[i])] for i in range(d)] + [
        [*(-eye[i]), *(-bound[i])] for i in range(d)
    ]
    done = linprog(
        [0.0] * d + [1.0] * sizes, A_ub=above, b_ub=[0.0] * (2 * d),
        A_eq=[[*(-g), *([0.0] * sizes)]], b_eq=[gap], bounds=bounds + [(0, None)] * sizes,
    )  # fmt: skip
    return float(done.fun)


def test_points_outside_their_own_box_are_refused() -> None:
    with pytest.raises(AttackError, match=r"span \[-2, 0.5\], outside the box \[0, 1\]") as caught:
        Threat(box=(0.0, 1.0)).check(torch.tensor([[-2.0, 0.5]]))
    assert "box=None" in caught.value.hint
    with pytest.raises(AttackError, match="NaN or infinite"):
        Threat().check(torch.tensor([[0.0, float("nan")]]))
    Threat().check(torch.tensor([[-2.0, 5.0]]))


@pytest.mark.parametrize("fields", [{"norm": "l3"}, {"box": (1.0, 0.0)}, {"radius": 1.0}])
def test_impossible_threats_are_refused(fields: dict) -> None:
    with pytest.raises(SpecError):
        Threat(**fields)
