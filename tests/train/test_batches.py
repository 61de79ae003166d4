"""Mini-batches: every point once an epoch, and all engines take the same steps on them.

Tolerances as in test_engines: 1e-10 relative in float64 over 200 steps.
"""

from __future__ import annotations

import pytest
import torch

from small_runs import assert_same, small
from unmix.experiment import run as train
from unmix.train.base import Hooks
from unmix.train.descent import Order
from unmix.train.engines import ENGINES

FAST = sorted(set(ENGINES) - {"reference"})
NETS = {
    "two-layer": ("net.kind=two-layer",),
    "k-class": ("net.kind=k-class", "net.h=2"),
    "prelu": ("net.kind=prelu", "net.h=6", "net.sigma=0.3", "train.eta=0.001"),
    "prelu p=1": ("net.kind=prelu", "net.h=6", "net.sigma=0.3", "net.p=1.0"),
}
PLAIN = ("train.record.coefficients=[]", "train.steps=200", "train.batch=24")


@pytest.mark.parametrize("size", [1, 3, 7, 10, 12])
def test_every_epoch_sees_every_point_once(size: int) -> None:
    order = Order((0, 5), 10, size)
    per_epoch = -(-10 // size)
    for epoch in range(3):
        rows = [order.rows(epoch * per_epoch + turn) for turn in range(per_epoch)]
        assert [r.shape[1] for r in rows[:-1]] == [size] * (per_epoch - 1)
        for seed in (0, 1):
            assert sorted(torch.cat([r[seed] for r in rows]).tolist()) == list(range(10))


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    first = Order((0, 5), 30, 30)
    assert not torch.equal(first.rows(0)[0], first.rows(0)[1])
    assert not torch.equal(first.rows(0), first.rows(1))
    assert torch.equal(first.rows(1)[1], Order((5,), 30, 30).rows(1)[0])


@pytest.mark.parametrize("kind", NETS)
@pytest.mark.parametrize("engine", FAST)
def test_engines_agree_on_mini_batches(engine: str, kind: str) -> None:
    experiment = small(*PLAIN, *NETS[kind])
    wanted = train(experiment.with_("train.engine=reference"))
    mine = train(experiment.with_(f"train.engine={engine}"))
    for name, p in wanted.params.items():
        assert (mine.params[name] - p).abs().max() <= 1e-10 * p.abs().max()
    for name, column in wanted.trace.columns.items():
        torch.testing.assert_close(mine.trace.columns[name], column, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_batch_of_all_points_is_full_batch_descent(engine: str) -> None:
    every = "train.record.coefficients=[]"
    whole = train(small(every, f"train.engine={engine}"))
    batched = train(small(every, f"train.engine={engine}", "train.batch=64"))
    for name, p in whole.params.items():
        torch.testing.assert_close(batched.params[name], p, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_resumed_sgd_equals_a_calm_one(engine: str) -> None:
    from unmix.train.base import Start

    experiment = small(*PLAIN, "train.steps=40", f"train.engine={engine}")
    data, net = experiment.data, experiment.net

    def begin():
        batch = data.sample(experiment.seeds, 64, "train")
        params = net.start(data, experiment.seeds, batch)
        trainings = (experiment.train,)
        return experiment.train.begin(Start(net, data, params, batch, experiment.seeds, trainings))

    saved, asked = [], iter(range(10**6))
    hooks = Hooks(wants_checkpoint=lambda: next(asked) == 17, checkpoint=saved.append)
    params, trace = begin().run(hooks)
    other = begin()
    other.resume(saved[0])
    again, again_trace = other.run(Hooks())
    assert all(torch.equal(again[name], p) for name, p in params.items())
    for name, column in trace.columns.items():
        assert torch.equal(again_trace.columns[name], column)


def test_sgd_is_repeated_bit_for_bit() -> None:
    experiment = small(*PLAIN)
    assert_same(train(experiment), train(experiment))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_diverging_seed_of_sgd_is_put_back_and_stopped(engine: str) -> None:
    run = train(
        small(*PLAIN, "net.kind=prelu", "net.sigma=0.3", "train.eta=1e3", f"train.engine={engine}")
    )
    assert run.trace.diverged == (0, 1)
    assert all(p.isfinite().all() for p in run.params.values())
