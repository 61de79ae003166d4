"""Runs small enough for a test, and what it means for two of them to be the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from unmix.claims import Verdict
from unmix.data.base import Batch, Distribution
from unmix.data.clusters import Clusters
from unmix.data.sparse_code import SparseCode
from unmix.experiment import Experiment, Run, Samples
from unmix.nets.base import Network, Params
from unmix.nets.symmetric import Symmetric
from unmix.nets.two_layer import TwoLayer
from unmix.train.base import Record, Start, Trainer, Training
from unmix.train.descent import GradientDescent
from unmix.train.engines.symmetric import Schedule
from unmix.train.noisy_descent import NoisyDescent
from unmix.train.purification import Purification

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


def small_purified(*changes: str) -> Experiment:
    """Sparse codes, Algorithm 1 and then 2: large enough for some neurons to win a feature."""
    d, b_max = 24, 0.25
    clean = NoisyDescent(
        eta=d / 25,
        steps=120,
        batch=200,
        opening=60,
        opening_eta=d / 50,
        opening_batch=500,
        schedule=Schedule(b_max=b_max, decay=0.01 / d),
    )
    return Experiment(
        data=SparseCode(d=d, k=4.0, w_seed=0),
        net=Symmetric(m=200, b=b_max / 2),
        train=Purification(
            clean=clean, steps=60, batch=200, eta=d / 25, tau=0.3, record=Record(points=6)
        ),
        samples=Samples(train=8, test=40),
        seeds=(3, 1),
        dtype="float32",
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


def started(
    training: Training,
    net: Network,
    data: Distribution,
    params: Params,
    batch: Batch,
    seeds: tuple[int, ...] | None = None,
) -> Trainer:
    """A training from given weights on given points."""
    seeds = seeds or tuple(range(len(batch.x)))
    return training.begin(Start(net, data, params, batch, seeds, (training,)))
