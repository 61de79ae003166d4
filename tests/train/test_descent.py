"""The loop: records, stops with advice, checkpoints; diverging replicas harm nobody."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from lab import still, trained
from small_runs import small
from unmix.data.base import Batch
from unmix.data.clusters import Clusters
from unmix.experiment import run as train
from unmix.nets.k_class import KClass
from unmix.nets.two_layer import TwoLayer
from unmix.train import losses
from unmix.train.base import Checkpoint, Hooks, Record, Start
from unmix.train.descent import COLUMNS, ENGINES, Descent, GradientDescent

# Few dimensions, many noisy points and a huge step: the loss cannot settle.
WILD = Clusters(k=2, d=2, sigma=5.0)
# Inputs so large that the second step leads away for good.
WILD_SCALE = 5e3


def descent(training: GradientDescent, net=None, spoil: float = 1.0) -> Descent:
    """Two replicas on noisy data; the inputs of the second are multiplied by `spoil`."""
    net = net or TwoLayer(m=2, sigma_w=1e-9, sigma_b=0.0)
    batch = WILD.sample((0, 1), 200, "train")
    x = batch.x.clone()
    x[1] *= spoil
    params = net.init(WILD, (0, 1), torch.float64)
    batch = Batch(x, batch.y, batch.cluster)
    return Descent(Start(net, WILD, params, batch, (0, 1), (training,)))


def fast(engine: str, steps: int = 60, **fields) -> GradientDescent:
    record = Record(schedule="linear", points=7, coefficients=("paper",))
    return GradientDescent(
        **({"eta": 1e-3, "steps": steps, "engine": engine, "record": record} | fields)
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("net", [TwoLayer(m=2, sigma_w=1e-9), KClass(h=2, sigma_w=1e-9)])
def test_divergence_stops_one_replica_and_not_the_other(engine: str, net) -> None:
    wild, tame = descent(fast(engine), net, spoil=WILD_SCALE), descent(fast(engine), net)
    params, trace = wild.run(Hooks())
    calm, calm_trace = tame.run(Hooks())
    assert trace.diverged == (1,)
    assert calm_trace.diverged == ()
    stop = trace.stops[1]
    assert stop.reason == "diverged"
    assert stop.step == 2
    assert stop.advice == "lower train.eta (now 0.001), for example to 0.0001"
    for name, p in params.items():
        assert p.isfinite().all()
        torch.testing.assert_close(p[0], calm[name][0], rtol=1e-12, atol=1e-15)
    for name, column in trace.columns.items():
        assert column.shape == (2, 7)
        assert column.isfinite().all()
        torch.testing.assert_close(column[0], calm_trace.columns[name][0], rtol=1e-12, atol=1e-15)
    assert (trace.columns["loss"][1] <= 1e4 * max(1.0, float(trace.columns["loss"][1, 0]))).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_the_weights_of_a_stopped_replica_are_those_before_the_bad_step(engine: str) -> None:
    params, trace = descent(fast(engine), spoil=WILD_SCALE).run(Hooks())
    last = trace.stops[1].step - 1
    shorter, short_trace = descent(fast(engine, steps=last), spoil=WILD_SCALE).run(Hooks())
    assert short_trace.diverged == ()
    for name, p in params.items():
        torch.testing.assert_close(p[1], shorter[name][1], rtol=1e-9, atol=0)
    # The recursion beside the training stops with it.
    mine, wanted = trace.final["paper"][1], short_trace.final.get("paper")
    wanted = torch.zeros_like(mine) if wanted is None else wanted[1]
    torch.testing.assert_close(mine, wanted, rtol=1e-9, atol=0)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", ["two-layer", "k-class"])
def test_single_precision_overflow_is_a_divergence(engine: str, kind: str) -> None:
    run = train(
        small(f"net.kind={kind}", f"train.engine={engine}", "train.eta=1e38", "dtype=float32")
    )
    assert run.trace.diverged == (0, 1)
    assert all(stop.step == 1 and "lower train.eta" in stop.advice for stop in run.trace.stops)
    # No step survived: the weights are the initial ones.
    for name, p in run.params.items():
        assert torch.equal(p, run.initial[name])
    for column in run.trace.columns.values():
        assert column.isfinite().all()
        assert torch.equal(column, column[:, :1].expand_as(column))


def test_when_all_have_diverged_the_training_ends() -> None:
    heard: list[int] = []
    wild = descent(fast("reference"), spoil=1.0)
    wild.problem.eta.fill_(1e8)
    _, trace = wild.run(Hooks(progress=heard.append))
    assert trace.diverged == (0, 1)
    assert heard[-1] == max(stop.step for stop in trace.stops) < 60
    assert all(len(column[0]) == len(trace.steps) for column in trace.columns.values())


def test_a_large_step_that_settles_is_no_divergence() -> None:
    run = train(small("train.eta=100.0", "train.steps=200"))
    loss = run.trace.columns["loss"]
    assert (loss[:, 1:].amax(1) > loss[:, 0]).any()
    assert run.trace.diverged == ()
    assert run.trace.columns["accuracy"][:, -1].min() > 0.9


@pytest.mark.parametrize("kind", ["two-layer", "k-class"])
def test_recorded_columns_are_what_their_names_say(kind: str) -> None:
    changes = (f"net.kind={kind}", "train.record.schedule=linear", "train.record.points=4")
    run = trained(*changes)
    assert run.trace.steps == (0, 10, 20, 30)
    for index, steps in enumerate(run.trace.steps):
        # The same training, cut short at that step.
        cut = train(small(*changes, f"train.steps={steps}", "train.engine=gram"))
        outputs = cut.model.outputs(cut.train_batch.x)
        targets = cut.model.net.targets(cut.data, cut.train_batch)
        q = losses.margins(outputs, targets)
        binary = outputs.shape[-1] == 1
        right = q > 0 if binary else outputs.argmax(-1) == targets
        wanted = {
            "loss": losses.losses(outputs, targets).mean(1),
            "margin": q.mean(1),
            "margin_min": q.min(1).values,
            "margin_max": q.max(1).values,
            "accuracy": right.double().mean(1),
        }
        for name, value in wanted.items():
            torch.testing.assert_close(
                run.trace.columns[name][:, index], value, rtol=1e-9, atol=1e-12
            )
        assert set(run.trace.columns) == set(COLUMNS)
        on = cut.model.preactivations(cut.train_batch.x) >= 0
        for r in (0, 1):
            own = own_pairs(cut, r)
            for name, pairs in (("active_own", own), ("active_off", ~own)):
                share = on[r][pairs].double().mean()
                torch.testing.assert_close(run.trace.columns[name][r, index], share)


def own_pairs(run, r: int) -> torch.Tensor:
    """[n M], written out: is neuron m of the point's label or class?"""
    batch, k = run.train_batch, run.data.k
    rows = []
    for y, cluster in zip(batch.y[r], batch.cluster[r], strict=True):
        if run.model.class_signs is None:
            m = run.experiment.net.m
            rows.append([(y > 0) == (neuron < m) for neuron in range(2 * m)])
        else:
            h = run.experiment.net.h
            rows.append([neuron // h == cluster for neuron in range(k * h)])
    return torch.tensor(rows)


def test_training_lowers_the_loss_and_learns() -> None:
    for kind in ("two-layer", "k-class"):
        run = train(small(f"net.kind={kind}", "train.steps=300"))
        loss = run.trace.columns["loss"]
        assert (loss.diff(dim=1) < 0).all()
        assert run.model.accuracy(run.fresh(300)).min() > 0.97
        assert all(stop.reason == "steps" and stop.step == 300 for stop in run.trace.stops)


@pytest.mark.parametrize("engine", ENGINES)
def test_no_steps_keep_the_start(engine: str) -> None:
    run = train(small("train.steps=0", f"train.engine={engine}"))
    assert run.trace.steps == (0,)
    assert run.trace.diverged == ()
    for name, p in run.params.items():
        assert torch.equal(p, run.initial[name])
    assert {c.shape for c in run.trace.columns.values()} == {(2, 1)}


def test_no_training_keeps_the_start_too() -> None:
    run = still(TwoLayer(m=2), Clusters(k=4, d=32), seeds=(3, 1))
    assert run.trace.steps == (0,)
    for name, p in run.params.items():
        assert torch.equal(p, run.initial[name])
    assert run.trace.columns["loss"][:, 0].tolist() == pytest.approx([0.6931] * 2, abs=1e-3)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("at", [0, 1, 10, 59])
def test_a_resumed_training_equals_a_calm_one(engine: str, at: int) -> None:
    saved: list[Checkpoint] = []
    asked = iter(range(10**6))
    hooks = Hooks(wants_checkpoint=lambda: next(asked) == at, checkpoint=saved.append)
    params, trace = descent(fast(engine), spoil=WILD_SCALE).run(hooks)
    (state,) = saved
    assert state.step == at
    kept = [stop for stop in state.stops if stop is not None]
    assert len(kept) == int(trace.stops[1].step <= at)
    # What was saved is not touched by what came after it.
    copy = Checkpoint(state.step, {n: t.clone() for n, t in state.tensors.items()}, [*state.stops])
    other = descent(fast(engine), spoil=WILD_SCALE)
    other.resume(copy)
    heard: list[int] = []
    again, again_trace = other.run(Hooks(progress=heard.append))
    assert heard[0] == at
    assert again_trace.stops == trace.stops
    for mine, wanted in (
        (again, params),
        (again_trace.columns, trace.columns),
        (again_trace.final, trace.final),
    ):
        assert mine.keys() == wanted.keys()
        assert all(torch.equal(mine[name], wanted[name]) for name in wanted)


def test_progress_is_told_after_every_step() -> None:
    heard: list[int] = []
    descent(fast("gram", steps=9)).run(Hooks(progress=heard.append))
    assert heard == list(range(10))


def test_weights_that_are_no_numbers_stop_at_the_start() -> None:
    broken = descent(fast("reference"))
    params = {n: p.clone() for n, p in broken.engine.params().items()}
    params["w"][1, 0, 0] = float("nan")
    broken.engine.restore(params)
    _, trace = broken.run(Hooks())
    assert trace.diverged == (1,)
    assert trace.stops[1].step == 0
    assert trace.stops[0] == replace(trace.stops[0], reason="steps", step=60)
