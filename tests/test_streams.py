"""One random stream per purpose and per seed; asking for more never changes what came before."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from unmix import streams
from unmix.data.clusters import Clusters
from unmix.streams import normals, stream

DATA = [
    Clusters(k=4, d=16),
    Clusters(k=4, d=16, sizes="balanced"),
    Clusters(k=3, d=16, sizes="balanced", weights=(0.5, 0.3, 0.2), scale="unit"),
    Clusters(k=3, d=16, weights=(0.5, 0.3, 0.2)),
]
IDS = ["sampled", "balanced", "balanced, weighted", "weighted"]


def test_the_stream_of_a_seed_is_this_one() -> None:
    # Stored results rest on these numbers. Should they ever move, spec.FORMAT must move, too.
    expected = [0.3562160785452379, -1.300781675711595, -1.3127076890885596]
    assert stream(7, "train.noise").standard_normal(3).tolist() == expected


def test_purposes_and_seeds_have_streams_of_their_own() -> None:
    purposes = ("train.noise", "test.noise", "train.cluster", "centres", "init.w", "init.b")
    draws = [stream(s, p).standard_normal(2000) for p in purposes for s in (0, 1, 10**12)]
    together = np.corrcoef(draws) - np.eye(len(draws))
    # Independent: the largest of 153 correlations of 2000 draws stays near 3.5/sqrt(2000).
    assert np.abs(together).max() < 0.1


def test_a_longer_draw_begins_with_the_shorter_one() -> None:
    short, long = (normals((0, 1), "test.noise", (n, 5), torch.float64) for n in (3, 9))
    assert torch.equal(long[:, :3], short)


def test_a_draw_is_the_callers_own() -> None:
    first = normals((0, 1), "test.noise", (3, 5), torch.float64)
    kept = first.clone()
    first.zero_()
    assert torch.equal(normals((0, 1), "test.noise", (3, 5), torch.float64), kept)


def test_what_is_too_large_to_keep_is_drawn_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = normals((0, 1), "test.noise", (3, 5), torch.float64)
    monkeypatch.setattr(streams, "KEPT_BYTES", 0)
    assert torch.equal(normals((0, 1), "test.noise", (3, 5), torch.float64), kept)


def test_a_seed_does_not_know_its_neighbours() -> None:
    together = normals((4, 2, 9), "init.w", (6,), torch.float64)
    for row, seed in enumerate((4, 2, 9)):
        assert torch.equal(together[row], normals((seed,), "init.w", (6,), torch.float64)[0])


def test_both_dtypes_see_the_same_numbers() -> None:
    exact = normals((3,), "init.w", (50,), torch.float64)
    assert torch.equal(normals((3,), "init.w", (50,), torch.float32), exact.float())
    assert exact.dtype == torch.float64


def test_nobody_elses_generator_matters_or_is_touched() -> None:
    first = Clusters(k=4, d=16).sample((0,), 5, "train").x
    torch.manual_seed(1)
    np.random.seed(1)
    before = torch.get_rng_state(), np.random.get_state()[1]
    assert torch.equal(Clusters(k=4, d=16).sample((0,), 5, "train").x, first)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])


@pytest.mark.parametrize("data", DATA, ids=IDS)
def test_one_more_test_point_changes_nothing_else(data: Clusters) -> None:
    train, test = data.sample((0, 1), 30, "train"), data.sample((0, 1), 20, "test")
    more = data.sample((0, 1), 21, "test")
    assert torch.equal(more.x[:, :20], test.x)
    assert torch.equal(more.cluster[:, :20], test.cluster)
    assert torch.equal(more.y[:, :20], test.y)
    again = data.sample((0, 1), 30, "train")
    assert torch.equal(again.x, train.x)
    assert torch.equal(again.cluster, train.cluster)
    assert not torch.equal(train.x[:, :20], test.x)


@pytest.mark.parametrize("data", DATA, ids=IDS)
def test_more_seeds_do_not_change_earlier_ones(data: Clusters) -> None:
    few, many = data.sample((5,), 30, "train"), data.sample((5, 6, 0), 30, "train")
    assert torch.equal(many.x[:1], few.x)
    assert torch.equal(many.cluster[:1], few.cluster)
    assert torch.equal(data.centres((5, 6))[:1], data.centres((5,)))
    assert not torch.equal(many.x[0], many.x[1])


@pytest.mark.parametrize("data", DATA, ids=IDS)
def test_single_precision_is_the_rounded_double(data: Clusters) -> None:
    double, single = (data.sample((0,), 30, "train", t) for t in (torch.float64, torch.float32))
    assert torch.equal(double.cluster, single.cluster)
    assert single.x.dtype == single.y.dtype == torch.float32
    torch.testing.assert_close(single.x.double(), double.x, rtol=1e-6, atol=1e-6)
