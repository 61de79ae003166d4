"""The flow against tiny descent steps and exact solutions; its records, events and checkpoints."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from torch.nn.functional import normalize

from small_runs import started
from unmix.data.clusters import Clusters
from unmix.errors import SpecError
from unmix.nets.base import Model
from unmix.nets.prelu import PReLU
from unmix.nets.prelu_constructed import PReLUSubclasses
from unmix.nets.two_layer import TwoLayer
from unmix.train.base import Checkpoint, Hooks, Record
from unmix.train.flow import LENGTH, Flow, GradientFlow
from unmix.train.flow_reference import euler
from unmix.train.integral import COLUMNS

DATA = Clusters(k=4, d=12, scale="unit", sigma=0.1)
LINEAR = Record(schedule="linear", points=9)


def begun(
    train: GradientFlow, net, seeds: tuple = (0, 1), data: Clusters = DATA, n: int = 30
) -> Flow:
    batch = data.sample(seeds, n, "train")
    return started(train, net, data, net.init(data, seeds, torch.float64), batch)


def decisions(net, params, data: Clusters = DATA) -> torch.Tensor:
    """f on points of the sphere."""
    made = torch.Generator().manual_seed(0)
    x = torch.randn(len(params["w"]), 300, data.d, generator=made, dtype=torch.float64)
    return Model(net, data, params).decision(normalize(x, dim=-1))


# Relative error of f on the sphere, in the norm, against descent at equal flow time. The reference
# itself is off by its step, here by less than 2e-4. Three times a step's tolerance is allowed.
TOLERANCES = {1e-2: 3e-2, 1e-3: 3e-3}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("p", "initial", "loss", "time"),
    [
        (1.0, "gaussian", "exponential", 60.0),
        (3.0, "gaussian", "exponential", 100.0),
        (1.0, "balanced", "logistic", 100.0),
        (2.5, "balanced", "exponential", 60.0),
    ],
)
def test_it_agrees_with_tiny_steps_of_descent(p: float, initial: str, loss: str, time) -> None:
    net = PReLU(p=p, h=12, initial=initial, sigma=1e-3)
    batch = DATA.sample((0, 1), 30, "train")
    start = net.init(DATA, (0, 1), torch.float64)
    wanted = decisions(net, euler(start, batch.x, batch.y, p, loss, time=time, steps=4000))
    for tolerance, allowed in TOLERANCES.items():
        train = GradientFlow(time=time, loss=loss, tolerance=tolerance)
        params, trace = started(train, net, DATA, start, batch).run(Hooks())
        error = (decisions(net, params) - wanted).norm(dim=1) / wanted.norm(dim=1)
        assert (error < allowed).all(), (tolerance, error)
        assert trace.columns["loss"][:, -1].max() < 0.5
        assert (trace.final["evaluations"] < 1000).all()


@pytest.mark.usefixtures("unchecked")
def test_neurons_with_a_heavy_output_agree_too() -> None:
    """delta > 0, with weights that must pass close by 0 to turn round."""
    net = PReLU(p=1.0, h=12, sigma=1e-2)
    batch = DATA.sample((0, 1), 30, "train")
    start = net.init(DATA, (0, 1), torch.float64)
    start["v"] *= 20
    assert (start["v"].abs() > start["w"].norm(dim=-1)).any(1).all()
    wanted = decisions(net, euler(start, batch.x, batch.y, 1.0, "exponential", time=40, steps=4000))
    params, _ = started(GradientFlow(time=40.0, tolerance=3e-4), net, DATA, start, batch).run(
        Hooks()
    )
    error = (decisions(net, params) - wanted).norm(dim=1) / wanted.norm(dim=1)
    assert (error < 5e-3).all()


@pytest.mark.parametrize("p", [2.0, 3.0, 4.0])
def test_an_aligned_net_follows_its_scalar_equation(p: float) -> None:
    """On exact centres F^(p)'s margins obey m' = 2 m share e^(-m), each subclass for itself."""
    data = DATA.model_copy(update={"sigma": 0.0, "sizes": "balanced"})
    net, n = PReLUSubclasses(p=p), 40
    train = GradientFlow(time=500.0, record=LINEAR, tolerance=1e-4)
    params, trace = begun(train, net, (0,), data, n).run(Hooks())
    exact = solve_ivp(
        lambda t, m: 2 * m / 4 * np.exp(-m), (0, 500), [1.0], rtol=1e-10, t_eval=trace.times
    ).y[0]
    found = trace.columns["margin"][0].numpy()
    # The integrator to 3e-4 in all; its dense output between the steps to 1e-3.
    assert found[-1] == pytest.approx(exact[-1], rel=3e-4)
    np.testing.assert_allclose(found, exact, rtol=1e-3)
    assert (trace.columns["margin_max"] - trace.columns["margin_min"]).abs().max() < 1e-6
    cosine = normalize(params["w"][0], dim=-1) @ data.centres((0,))[0].T
    torch.testing.assert_close(cosine, torch.eye(4, dtype=torch.float64), atol=1e-9, rtol=0)


def test_the_sum_runs_n_times_faster_than_the_mean() -> None:
    net = PReLU(h=8, sigma=1e-3)
    mean, _ = begun(GradientFlow(time=90.0), net).run(Hooks())
    total, _ = begun(GradientFlow(time=3.0, reduction="sum"), net).run(Hooks())
    torch.testing.assert_close(total["w"], mean["w"], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("sigma", [1e-2, 1e-9])
def test_balancedness_is_kept_to_rounding(sigma: float) -> None:
    net = PReLU(h=20, sigma=sigma)
    batch = DATA.sample((0, 1), 30, "train")
    start = net.init(DATA, (0, 1), torch.float64)
    params, _ = started(GradientFlow(time=300.0), net, DATA, start, batch).run(Hooks())
    before, after = (p["v"] ** 2 - p["w"].square().sum(-1) for p in (start, params))
    scale = params["w"].square().sum(-1)
    assert scale.max() > 1
    assert ((after - before).abs() <= 1e-13 * (scale + before.abs())).all()


def test_replicas_share_nothing() -> None:
    net, train = PReLU(h=8, sigma=1e-3), GradientFlow(time=50.0)
    both, both_trace = begun(train, net).run(Hooks())
    lone, lone_trace = begun(train, net, (1,)).run(Hooks())
    assert all(torch.equal(both[name][1:], lone[name]) for name in both)
    assert all(torch.equal(both_trace.columns[c][1:], lone_trace.columns[c]) for c in COLUMNS)


def test_records_are_those_of_a_flow_cut_short_there() -> None:
    net = PReLU(h=8, sigma=1e-3)
    train = GradientFlow(time=80.0, record=LINEAR, tolerance=1e-4)
    _, trace = begun(train, net).run(Hooks())
    assert trace.times == tuple(np.linspace(0, 80, 9))
    assert trace.steps == tuple(range(9))
    assert trace.columns["evaluations"][:, 0].tolist() == [1, 1]
    for index in (1, 4, 7):
        cut = train.model_copy(update={"time": trace.times[index]})
        _, short = begun(cut, net).run(Hooks())
        for name in COLUMNS[:-1]:
            mine, wanted = trace.columns[name][:, index], short.columns[name][:, -1]
            torch.testing.assert_close(mine, wanted, rtol=5e-3, atol=1e-6)


def test_recorded_times_are_declared() -> None:
    assert Record(points=3, schedule="linear").times(8.0) == (0.0, 4.0, 8.0)
    log = Record(points=6).times(1e5)
    assert log == pytest.approx((0, 10, 100, 1e3, 1e4, 1e5))
    assert (log[0], log[-1]) == (0.0, 1e5)
    assert Record(points=2).times(7.0) == (0.0, 7.0)


def test_it_stops_at_a_loss_and_at_an_output_and_says_when() -> None:
    net = PReLU(h=20, sigma=1e-4)
    _, whole = begun(GradientFlow(time=300.0), net).run(Hooks())
    assert [stop.reason for stop in whole.stops] == ["time", "time"]
    assert [stop.time for stop in whole.stops] == [300.0, 300.0]
    _, by_loss = begun(GradientFlow(time=300.0, until_loss=0.2), net).run(Hooks())
    _, by_output = begun(GradientFlow(time=300.0, until_output=1.0), net).run(Hooks())
    for r in (0, 1):
        assert (by_loss.stops[r].reason, by_output.stops[r].reason) == ("loss", "escape")
        assert by_loss.columns["loss"][r, -1] == pytest.approx(0.2, rel=1e-3)
        assert by_output.columns["output_max"][r, -1] == pytest.approx(1.0, rel=1e-3)
        assert 0 < by_output.stops[r].time < by_loss.stops[r].time < 300
        # Escape is noted on the way, by interpolation, whether it stops the flow or not.
        assert float(whole.final["escape_time"][r]) == pytest.approx(
            by_output.stops[r].time, rel=5e-3
        )
    assert len(by_loss.times) == len(by_loss.columns["loss"][0]) == len(whole.times)


def test_a_start_that_has_reached_its_event_stays() -> None:
    net = PReLU(h=20, sigma=1e-4)
    flow = begun(GradientFlow(time=300.0, until_loss=2.0), net)
    params, trace = flow.run(Hooks())
    assert [(stop.reason, stop.time, stop.step) for stop in trace.stops] == [("loss", 0.0, 0)] * 2
    start = net.init(DATA, (0, 1), torch.float64)
    torch.testing.assert_close(params["w"], start["w"], rtol=1e-12, atol=0)
    assert trace.final["escape_time"].isnan().all()


def test_a_flow_that_uses_up_its_evaluations_says_so() -> None:
    _, trace = begun(GradientFlow(time=300.0, evaluations=50), PReLU(h=8, sigma=1e-4)).run(Hooks())
    assert trace.diverged == (0, 1)
    assert all(stop.reason == "stalled" for stop in trace.stops)
    assert "raise train.evaluations (now 50)" in trace.stops[0].advice
    assert (trace.final["evaluations"] <= 50).all()


def test_other_nets_do_not_flow() -> None:
    net = TwoLayer(m=2)
    batch = DATA.sample((0,), 10, "train")
    with pytest.raises(SpecError, match="trains both layers, not 'two-layer'") as caught:
        started(GradientFlow(), net, DATA, net.init(DATA, (0,), torch.float64), batch)
    assert "net.kind=prelu" in caught.value.hint


def test_pruning_is_close_and_later() -> None:
    net = PReLU(h=60, sigma=1e-6)
    whole, _ = begun(GradientFlow(time=2000.0), net).run(Hooks())
    params, trace = begun(GradientFlow(time=2000.0, prune=1e-5), net).run(Hooks())
    assert (trace.final["frozen"] > 10).all()
    error = (decisions(net, params) - decisions(net, whole)).norm(dim=1)
    # Named, and measured: a hundredth of the integrator's own tolerance at h = 200.
    assert (error < 1e-3 * decisions(net, whole).norm(dim=1)).all()
    q, q0 = (p["v"] * p["w"].norm(dim=-1) for p in (params, whole))
    assert ((q - q0).abs().sum(1) < 2e-3 * q0.abs().sum(1)).all()


@pytest.mark.parametrize("prune", [0.0, 1e-4])
@pytest.mark.parametrize("at", [0, 1, 17, 70, 95])
def test_a_resumed_flow_equals_a_calm_one_bit_for_bit(prune: float, at: int) -> None:
    net, train = PReLU(h=20, sigma=1e-4), GradientFlow(time=3000.0, prune=prune)
    saved: list[Checkpoint] = []
    asked = iter(range(10**6))
    hooks = Hooks(wants_checkpoint=lambda: next(asked) == at, checkpoint=saved.append)
    params, trace = begun(train, net).run(hooks)
    (state,) = saved
    assert [stop is None for stop in state.stops] == [at < trace.stops[0].step, True]
    copy = Checkpoint(state.step, {n: t.clone() for n, t in state.tensors.items()}, [*state.stops])
    other = begun(train, net)
    other.resume(copy)
    again, again_trace = other.run(Hooks())
    assert again_trace.stops == trace.stops
    for mine, wanted in (
        (again, params),
        (again_trace.columns, trace.columns),
        (again_trace.final, trace.final),
    ):
        assert mine.keys() == wanted.keys()
        assert all(mine[n].numpy().tobytes() == wanted[n].numpy().tobytes() for n in wanted)


def test_progress_rises_to_its_length() -> None:
    heard: list[int] = []
    train = GradientFlow(time=3000.0)
    begun(train, PReLU(h=8, sigma=1e-4)).run(Hooks(progress=heard.append))
    assert (heard[0], heard[-1]) == (0, train.length()) == (0, LENGTH)
    assert heard == sorted(heard)
    # In the logarithm of time no step is a large part of the way.
    assert np.diff(heard).max() < LENGTH / 4


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("p", "escape"), [(1.0, (55, 70)), (3.0, (150, 190))])
def test_what_the_paper_sees_at_a_tenth_of_its_size(p: float, escape: tuple) -> None:
    data = Clusters(k=10, d=100, scale="unit", sigma=0.1, positive=tuple(range(6)))
    net, batch = PReLU(p=p, h=200), data.sample((0,), 1000, "train", torch.float32)
    train = GradientFlow(time=16040.0, prune=1e-7)
    params, trace = started(train, net, data, net.init(data, (0,), torch.float32), batch).run(
        Hooks()
    )
    form, mu = net.form(data, params), data.centres((0,), torch.float32)[0]
    q, u = form.readout[0, :, 0], form.w[0]
    if p == 1:
        mean = [normalize(mu[:6].sum(0), dim=0), normalize(mu[6:].sum(0), dim=0)]
        cosine = torch.where(q > 0, u @ mean[0], u @ mean[1])
        assert (cosine * q.abs()).sum() / q.abs().sum() > 0.998
    else:
        dominant = q.abs() > 0.01 * q.abs().max()
        best, which = (u[dominant] @ mu.T).max(1)
        assert best.min() > 0.999
        assert set(which.tolist()) == set(range(10))
        assert 10 <= int(dominant.sum()) <= 30
    assert 100 < float(trace.final["evaluations"]) < 400
    assert escape[0] < float(trace.final["escape_time"]) < escape[1]
    # Margins: log(2 pi m T) to leading order, per subclass (p = 3) or per label (p = 1).
    share = 1 / 10 if p == 3 else math.sqrt(5) / 10
    margin = float(trace.columns["margin"][0, -1])
    assert margin == pytest.approx(math.log(2 * share * margin * 16040), rel=0.02)
