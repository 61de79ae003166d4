"""Direction and hyperbolic angle: there and back, in all three cases of the invariant."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from unmix.train.angles import Angles
from unmix.train.bogacki_shampine import attempt, first_step
from unmix.train.fields import PointField, State
from unmix.train.flow_reference import prelu

SCALES = st.floats(1e-9, 1e3)


def drawn(seed: int, h: int = 5, d: int = 4) -> tuple[Tensor, Tensor]:
    made = torch.Generator().manual_seed(seed)
    w = torch.randn(h, d, generator=made, dtype=torch.float64)
    return w, torch.randn(h, generator=made, dtype=torch.float64)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), of_w=SCALES, of_v=SCALES)
def test_there_and_back(seed: int, of_w: float, of_v: float) -> None:
    w, v = drawn(seed)
    w, v = of_w * w, of_v * v
    v[0] = w[0].norm() * v[0].sign()
    angles, u, a = Angles.of(w, v)
    length = w.norm(dim=-1)
    larger = torch.maximum(length, v.abs())
    # What is small beside its partner is known to a share of the partner.
    assert ((angles.length(a) - length).abs() <= 1e-7 * larger).all()
    assert ((angles.v(a) - v).abs() <= 1e-7 * larger).all()
    torch.testing.assert_close(angles.q(a), v * length, rtol=1e-7, atol=0)
    torch.testing.assert_close(angles.ratio(a), v / length, rtol=1e-7, atol=1e-12)
    torch.testing.assert_close(u, w / length.unsqueeze(-1), rtol=1e-12, atol=1e-15)
    assert float(angles.delta[0]) == 0


def test_the_three_cases_are_met() -> None:
    w, v = drawn(0)
    v[0], v[1], v[2] = w[0].norm(), 0.1, -9.0
    angles, _, _ = Angles.of(w, v)
    assert angles.delta[:3].sign().tolist() == [0, -1, 1]
    assert angles.side[:3].tolist() == [1, 1, -1]


def test_a_balanced_start_in_single_precision_is_balanced() -> None:
    w = drawn(3, h=200)[0].float() * 1e-6
    angles, u, _ = Angles.of(w, w.norm(dim=-1))
    assert (angles.delta == 0).all()
    assert u.dtype == torch.float32


def test_a_neuron_that_is_not_there_stays_away() -> None:
    w, v = drawn(1)
    w[0], v[0], w[1] = 0.0, 0.0, 0.0
    angles, u, a = Angles.of(w, v)
    assert a.isfinite().all()
    assert angles.length(a)[:2].tolist() == [0, 0]
    assert angles.ratio(a)[1] == 0
    torch.testing.assert_close(angles.v(a), v, rtol=1e-12, atol=1e-300)
    assert (u[:2] == 0).all()


@pytest.mark.parametrize("p", [1.0, 1.7, 3.0])
@pytest.mark.parametrize("of_v", [0.1, 1.0, 10.0])
def test_the_field_is_the_gradient_of_the_net(p: float, of_v: float) -> None:
    """u', a' against -grad L of the formula by autograd, pushed through the change of variables."""
    w, v = drawn(5)
    v = of_v * v
    x = torch.randn(9, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    y = torch.tensor([1.0, -1, 1, 1, -1, 1, -1, -1, 1], dtype=torch.float64)
    w.requires_grad_()
    v.requires_grad_()
    f = prelu(w[None], v[None], x[None], p)[0]
    (-(y * f)).exp().mean().backward()
    dw, dv = -w.grad, -v.grad
    w, v = w.detach(), v.detach()
    length = w.norm(dim=-1)
    angles, u, angle = Angles.of(w, v)
    share = torch.full((9,), 1 / 9, dtype=torch.float64)
    motion = PointField(x, y, share, 1.0, p, "exponential", angles).motion(State(u, angle))
    torch.testing.assert_close(motion.f, f.detach())
    turning = (dw - (dw * u).sum(-1, keepdim=True) * u) / length.unsqueeze(-1)
    torch.testing.assert_close(motion.u, turning, rtol=1e-10, atol=1e-13)
    # v' = |w| G and |w|' = v G in every case: a' is side G.
    torch.testing.assert_close(motion.a, angles.side * dv / length, rtol=1e-10, atol=1e-13)
    torch.testing.assert_close((dw * u).sum(-1), v * dv / length, rtol=1e-10, atol=1e-13)


def test_a_step_has_third_order_and_its_estimate_is_honest() -> None:
    w, v = drawn(7)
    w, v = 0.3 * w, 0.3 * v
    x = torch.randn(9, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    y = torch.ones(9, dtype=torch.float64)
    angles, u, a = Angles.of(w, v)
    share = torch.full((9,), 1 / 9, dtype=torch.float64)
    field = PointField(x, y, share, 1.0, 3.0, "exponential", angles)
    start, motion = State(u, a), field.motion(State(u, a))
    dt = first_step(motion)

    def end(parts: int, whole: float) -> State:
        state = start
        for _ in range(parts):
            state = attempt(field, state, field.motion(state), whole / parts).end
        return state

    exact = end(64, dt)
    errors = [float((end(parts, dt).u - exact.u).norm()) for parts in (1, 2, 4)]
    assert errors[0] / errors[1] == pytest.approx(8, rel=0.25)
    assert errors[1] / errors[2] == pytest.approx(8, rel=0.25)
    step = attempt(field, start, motion, dt)
    assert errors[0] < step.error
    # The dense output meets both ends and keeps third order between them.
    assert torch.allclose(step.at(0.0).u, u, atol=1e-15)
    assert torch.allclose(step.at(1.0).u, step.end.u, atol=1e-15)
    middle = float((step.at(0.5).u - end(32, dt / 2).u).norm())
    assert middle < 2 * errors[0] + 1e-12
