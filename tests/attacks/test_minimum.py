"""The minimum-norm search in its two efforts, and the edges of rays that all judging stands on."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from lab import gaussian, trained, trained_fine
from planted import Honest, points
from unmix.attacks.base import Found, attack, carried_out, verified
from unmix.attacks.flags import without_gradient
from unmix.attacks.frame import NeuronFrame
from unmix.attacks.line import Line, chosen
from unmix.attacks.minimum import CURVE, MinimumNorm
from unmix.attacks.objectives import gap, margin
from unmix.attacks.problem import WIDE, Problem, module_problem, problems
from unmix.attacks.target import SKINNY, FormTarget, Head
from unmix.attacks.threat import Threat
from unmix.nets.activations import Power, Relu

RADII = (1.0, 2.0, 4.0)
BOX = Threat(box=(0.0, 1.0))


def wide(threat: Threat, hidden: int = WIDE + 22, n: int = 60) -> Problem:
    """A net whose search is in float32, at points of its own labels in the unit cube."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(170, hidden), nn.ReLU(), nn.Linear(hidden, 5))
    x = torch.rand(n, 170)
    return module_problem(model, x, model(x).detach().argmax(1), threat, 2.0)


@pytest.mark.parametrize("run", [lambda: gaussian(trained(), seed=4), trained_fine])
def test_the_search_for_curves_is_hardly_above_the_thorough_one(run) -> None:
    lean, whole = (attack(run(), [m], RADII).smallest for m in (CURVE, MinimumNorm()))
    assert lean.isfinite().all()
    assert (lean >= whole * (1 - 1e-3)).double().mean() >= 0.9
    assert (lean / whole).nan_to_num(1.0).mean() < 1.1


@pytest.mark.parametrize("threat", [Threat(), BOX, Threat(norm="linf", box=(0.0, 1.0))])
def test_what_is_found_in_lower_precision_holds_in_float64(threat: Threat) -> None:
    problem = wide(threat)
    assert problem.frame.z0.dtype == torch.float32
    # Points next to the boundary, where float32 cannot tell the sides.
    found = verified(problem, CURVE.search(problem, RADII))
    delta = torch.where(found.radius.unsqueeze(1) > 1e-3, found.delta, 0.0)
    near = module_problem_at(problem, problem.x.double() + (1 - 1e-4) * delta)
    for asked in (problem, near):
        held = verified(asked, CURVE.search(asked, RADII))
        assert held.radius[asked.right].isfinite().all()
        assert held.unverified == 0
    assert (held.radius < 1e-3).any()


def module_problem_at(problem: Problem, x: torch.Tensor) -> Problem:
    """The same net and labels at other points."""
    if problem.threat.box is not None:
        x = x.clamp(*problem.threat.box)
    batch = type(problem.batch)(x[None].float(), problem.y[None], problem.batch.cluster)
    rest = (problem.threat, problem.largest, 0, batch)
    return Problem(problem.target, x.float(), problem.y, *rest)


def test_every_rival_is_gone_for_where_it_may_be_nearest() -> None:
    # Rival 1 has the smaller margin, rival 2 the nearer boundary.
    w, b = torch.eye(3), torch.zeros(3)
    head = Head(torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 4.0], [0.0, 0.0, 0.0]]), Relu())
    head = Head(head.readout, Relu(), bias=torch.tensor([2.0, 0.1, -1.0]))
    x, y = torch.tensor([[0.5, 0.05, 0.0]]), torch.tensor([0])
    batch = type(problems(trained(), Threat(), 1.0, 1)[0].batch)(
        x[None], y[None], torch.zeros(1, 1, dtype=torch.int64)
    )
    problem = Problem(FormTarget(w, b, head), x, y, Threat(), 4.0, 0, batch)
    assert gap(problem.clean, y).item() == pytest.approx(1.4)
    # s_0 - s_2 = 3 - 4 * 0.05 = 2.8 at a slope of 4: 0.7 away.
    held = verified(problem, CURVE.search(problem, RADII))
    assert held.radius.item() == pytest.approx(0.7, rel=1e-5)


def halved(line: Line, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    """The reference: plain bisection."""
    rows = torch.arange(len(low))
    for _ in range(60):
        middle = (low + high) / 2
        hit, _ = line.probe(rows, middle)
        low, high = torch.where(hit, low, middle), torch.where(hit, middle, high)
    return high


@pytest.mark.parametrize("power", [None, 3.0])
@pytest.mark.parametrize("box", [None, (-6.0, 6.0)])
def test_an_edge_is_where_bisection_finds_it(power: float | None, box) -> None:
    problem = problems(gaussian(trained(), seed=3), Threat(box=box), 4.0, 8)[0]
    if power is not None:
        target = problem.target
        assert isinstance(target, FormTarget)
        powered = FormTarget(target.w, target.b, Head(target.head.readout, Power(power)))
        rest = (problem.threat, problem.largest, 0, problem.batch, problem.data)
        problem = Problem(powered, problem.x, problem.y, *rest)
    made = torch.Generator().manual_seed(1)
    delta = torch.randn(8, 32, generator=made).double()
    line = Line.of(problem, delta / delta.norm(dim=1, keepdim=True), torch.arange(8))
    first = line.first()
    there = first.isfinite() & problem.right
    assert there.any()
    step = problem.reach / 159
    wanted = halved(line, (first - step).clamp_min(0), first)
    # In a box fewer values are asked for.
    tolerance = 1e-8 if box is None else 1e-5
    torch.testing.assert_close(first[there], wanted[there], rtol=tolerance, atol=1e-9)


def test_perturbations_in_the_span_are_those_of_input_space() -> None:
    problem = problems(gaussian(trained(), seed=3), Threat(), 4.0, 8)[0]
    found = CURVE.search(problem, RADII)
    assert found.basis is not None
    plain = Found(found.delta, found.hit)
    mixed, there = verified(problem, found), verified(problem, plain)
    torch.testing.assert_close(mixed.radius, there.radius, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(mixed.delta, there.delta, rtol=1e-6, atol=1e-9)
    length = mixed.delta.norm(dim=1)
    torch.testing.assert_close(length, mixed.radius, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_gap_is_the_value_of_the_margin(classes: int) -> None:
    scores = torch.randn(20, classes, generator=torch.Generator().manual_seed(0))
    scores[3] = 0.5
    y = torch.arange(20) % classes
    for rival in (None, (y + 1) % classes):
        assert torch.equal(gap(scores, y, rival), margin(scores, y, rival)[0])


def test_few_neurons_are_multiplied_from_the_other_side() -> None:
    x = torch.randn(7, 50, generator=torch.Generator().manual_seed(0)).double()
    for neurons in (SKINNY, SKINNY + 1):
        w = torch.randn(neurons, 50, generator=torch.Generator().manual_seed(1)).double()
        target = FormTarget(w, w[:, 0], Head(w[:, :1], Relu()))
        torch.testing.assert_close(target.preactivations(x), x @ w.T + w[:, 0])


def test_rows_without_a_hole_are_not_copied() -> None:
    rows = torch.arange(10.0).unsqueeze(1)
    for point in ([], [4], [2, 3, 4], [0, 2, 9], list(range(10))):
        which = torch.tensor(point, dtype=torch.int64)
        assert torch.equal(chosen(rows, which), rows[which])


def test_slopes_that_cancel_in_input_space_are_no_gradient() -> None:
    # f = z_1 - z_2 + 3 with the same neuron twice: constant, but not in its pre-activations.
    w = torch.ones(2, 6).double()
    head = Head(torch.tensor([[1.0], [-1.0]]).double(), Relu(), bias=torch.tensor([3.0]).double())
    base = problems(trained(), Threat(), 1.0, 4)[0]
    x = torch.rand(4, 6, generator=torch.Generator().manual_seed(0)).double()
    batch = type(base.batch)(x[None], torch.ones(1, 4), base.batch.cluster)
    problem = Problem(
        FormTarget(w, w[:, 0], head), x, torch.ones(4).long(), Threat(), 1.0, 0, batch
    )
    assert isinstance(problem.frame, NeuronFrame)
    assert without_gradient([problem]) == 1.0
    sloped = module_problem(Honest(), *points(12), Threat(), 1.0)
    assert without_gradient([sloped]) == 0.0
    assert carried_out([problem], [CURVE], (1.0,)).flags
