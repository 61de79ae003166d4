"""Replicas on shared points, and points that come by blocks of columns."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from unmix.data.clusters import Clusters
from unmix.errors import DataError, SpecError
from unmix.nets.k_class import KClass
from unmix.nets.prelu import PReLU
from unmix.nets.two_layer import TwoLayer
from unmix.train.engines import ENGINES
from unmix.train.engines.base import Problem
from unmix.train.engines.columns import Columns, Drawn, Held
from unmix.train.engines.gram import Gram
from unmix.train.losses import Loss

DATA = Clusters(k=4, d=12, sigma=1.5)
NETS = {
    "binary": TwoLayer(m=3, sigma_w=0.1, sigma_b=0.1),
    "k-class": KClass(h=2, sigma_w=0.1),
    "prelu": PReLU(h=4, sigma=0.3),
}
SETS, SHARE, POINTS = 2, 3, 30
ETAS = (0.01, 0.03, 0.002)


def problem(net, points: Columns | None = None) -> Problem:
    """Two data sets with three replicas on each, which differ in start and step size."""
    batch = DATA.sample((0, 1), POINTS, "train")
    starts = [net.init(DATA, (10 * q, 10 * q + 1), torch.float64) for q in range(SHARE)]
    params = {name: torch.stack([p[name] for p in starts], 1).flatten(0, 1) for name in starts[0]}
    targets = net.targets(DATA, batch).repeat_interleave(SHARE, 0)
    eta = torch.tensor(ETAS * SETS, dtype=torch.float64)
    return Problem(params, points or Held(batch.x), targets, net.top(DATA, batch.x), Loss(), eta)


def alone(whole: Problem, replica: int) -> Problem:
    """One of its replicas with its own data."""
    one = slice(replica, replica + 1)
    params = {name: p[one] for name, p in whole.params.items()}
    x = whole.x.whole()[replica // SHARE][None]
    return Problem(params, Held(x), whole.targets[one], whole.top, whole.loss, whole.eta[one])


def walked(name: str, given: Problem, rows: torch.Tensor | None = None, steps: int = 60):
    engine = ENGINES[name](given)
    for _ in range(steps):
        engine.forward(rows)
        engine.advance(torch.ones(len(given.eta), dtype=torch.bool))
    return engine.params()


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("kind", NETS)
@pytest.mark.parametrize("batch", [None, torch.tensor([[3, 1, 29, 8], [0, 7, 2, 11]])])
def test_replicas_on_shared_points_train_as_if_alone(name: str, kind: str, batch) -> None:
    whole = problem(NETS[kind])
    together = walked(name, whole, batch)
    for replica in range(SETS * SHARE):
        mine = None if batch is None else batch[replica // SHARE][None]
        for part, p in walked(name, alone(whole, replica), mine).items():
            torch.testing.assert_close(together[part][replica], p[0], rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("width", [1, 5, 12, 100])
@pytest.mark.parametrize("kind", NETS)
def test_blocks_of_columns_give_the_weights_of_the_whole(kind: str, width: int) -> None:
    x = DATA.sample((0, 1), POINTS, "train").x
    drawn = Drawn(tuple(x.shape), lambda first, last: x[:, :, first:last].clone(), width)
    assert torch.equal(drawn.whole(), x)
    wanted = walked("gram", problem(NETS[kind]))
    for part, p in walked("gram", problem(NETS[kind], drawn)).items():
        torch.testing.assert_close(p, wanted[part], rtol=1e-10, atol=1e-13)


def test_a_column_is_asked_for_twice_and_never_all_at_once() -> None:
    """Once for K and Z0, once for the weights at the end: the steps never see X."""
    x = DATA.sample((0, 1), POINTS, "train").x
    asked: list[tuple[int, int]] = []

    def draw(first: int, last: int) -> torch.Tensor:
        asked.append((first, last))
        return x[:, :, first:last]

    walked("gram", problem(NETS["binary"], Drawn(tuple(x.shape), draw, 4)))
    assert asked == [(0, 4), (4, 8), (8, 12)] * 2


def test_columns_may_be_slices_of_a_file(tmp_path: Path) -> None:
    x = DATA.sample((0, 1), POINTS, "train").x
    np.save(tmp_path / "x.npy", x.numpy())
    stored = np.load(tmp_path / "x.npy", mmap_mode="r")

    def read(first: int, last: int) -> torch.Tensor:
        return torch.from_numpy(stored[:, :, first:last].copy())

    wanted = walked("gram", problem(NETS["binary"]))
    for part, p in walked("gram", problem(NETS["binary"], Drawn(stored.shape, read, 5))).items():
        torch.testing.assert_close(p, wanted[part], rtol=1e-10, atol=1e-13)


def test_a_block_of_the_wrong_shape_is_refused() -> None:
    bad = Drawn((2, POINTS, 12), lambda first, last: torch.zeros(2, POINTS, 1, dtype=torch.float64))
    with pytest.raises(DataError, match="columns 0 to 12: expected"):
        Gram(problem(NETS["binary"], bad))


def test_replicas_must_stand_evenly_on_their_data() -> None:
    whole = problem(NETS["binary"])
    with pytest.raises(DataError, match="do not stand evenly"):
        dataclasses.replace(whole, eta=whole.eta[:5])
    params = {name: p[:5] for name, p in whole.params.items()}
    with pytest.raises(DataError, match="5 replicas"):
        dataclasses.replace(whole, params=params)


def test_coefficient_space_says_what_it_cannot_do() -> None:
    whole = problem(NETS["prelu"])
    biased = whole.params | {"b": torch.zeros(6, 4, dtype=torch.float64)}
    with pytest.raises(SpecError, match="norms of neurons with biases"):
        Gram(dataclasses.replace(whole, params=biased))
