"""Runs small enough for a test, and what it means for two of them to be the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from unmix.claims import Verdict
from unmix.data.base import Batch
from unmix.data.clusters import Clusters
from unmix.experiment import Experiment, Run, Samples
from unmix.nets.base import Net, Params
from unmix.nets.two_layer import TwoLayer
from unmix.train.base import Record, Start, Trainer, Training
from unmix.train.descent import GradientDescent

STEPS = 30


def small(*changes: str) -> Experiment:
    return Experiment(
        data=Clusters(k=4, d=32),
        net=TwoLayer(m=2),
        train=GradientDescent(
            eta=0.05, steps=STEPS, record=Record(points=6, coefficients=("paper", "label-free"))
        ),
        samples=Samples(train=64, test=8),
        seeds=(3, 1),
    ).with_(*changes)


def assert_same(one: Run, other: Run) -> None:
    """Bit for bit: NaN equals NaN, but 0.0 does not equal -0.0, and dtypes and orders count."""
    assert one.experiment == other.experiment
    assert (one.trace.steps, one.trace.stops) == (other.trace.steps, other.trace.stops)
    assert one.trace.times == other.trace.times
    pairs = [(one.params, other.params), (one.trace.columns, other.trace.columns)]
    for mine, theirs in [*pairs, (one.trace.final, other.trace.final)]:
        assert list(mine) == list(theirs)
        for a, b in zip(mine.values(), theirs.values(), strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            assert a.contiguous().numpy().tobytes() == b.contiguous().numpy().tobytes()


def leftovers(root: Path) -> list[Path]:
    return [*(root / ".tmp").glob("*"), *(root / ".partial").glob("*")]


def verdict(claim: str, **values: object) -> Verdict:
    return replace(Verdict(claim, "inconclusive", "why", "reduced", runs=("a", "b")), **values)


def started(training: Training, net: Net, data: Clusters, params: Params, batch: Batch) -> Trainer:
    """A training from given weights on given points."""
    seeds = tuple(range(len(batch.x)))
    return training.begin(Start(net, data, params, batch, seeds, (training,)))
