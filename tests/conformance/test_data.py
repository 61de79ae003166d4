"""What every distribution must do; a new one is tested as soon as the catalog lists it."""

from __future__ import annotations

import pytest
import torch

from unmix import catalog
from unmix.data.base import Batch, Distribution
from unmix.data.clusters import Clusters

NAMES = catalog.names("data")
CLUSTERS = [name for name in NAMES if issubclass(catalog.load("data", name), Clusters)]
SMALL = {"extractor": "pooled", "side": 32, "k": 4, "d": 16}


def small(name: str) -> Distribution:
    member = catalog.load("data", name)
    made: Distribution = member(
        **{field: v for field, v in SMALL.items() if field in member.model_fields}
    )
    return made


@pytest.mark.parametrize("name", NAMES)
def test_samples_are_batches_of_the_asked_size_and_type(name: str) -> None:
    data = small(name)
    for dtype in (torch.float32, torch.float64):
        batch = data.sample((0, 5), 30, "train", dtype)
        assert isinstance(batch, Batch)
        assert batch.x.shape == (2, 30, *data.shape)
        assert batch.x.dtype == dtype
        assert batch.y.dtype in (dtype, torch.int64)
        assert batch.cluster.min() >= 0
        assert data.size == batch.x[0, 0].numel()
        assert data.told


@pytest.mark.parametrize("name", CLUSTERS)
def test_labels_are_those_of_the_clusters(name: str) -> None:
    data = small(name)
    batch = data.sample((0, 5), 30, "train")
    assert batch.cluster.max() < data.k
    assert torch.equal(data.signs[batch.cluster], batch.y)


@pytest.mark.parametrize("name", NAMES)
def test_samples_are_functions_of_seed_and_purpose(name: str) -> None:
    data = small(name)
    batch = data.sample((0, 5), 30, "train")
    assert torch.equal(data.sample((0, 5), 30, "train").x, batch.x)
    assert torch.equal(data.sample((5,), 30, "train").x, batch.x[1:])
    assert torch.equal(data.sample((0, 5), 12, "train").x, batch.x[:, :12])
    assert not torch.equal(data.sample((0, 5), 30, "test").x, batch.x)


@pytest.mark.parametrize("name", CLUSTERS)
def test_points_are_signal_plus_noise(name: str) -> None:
    data = small(name)
    batch = data.sample((0, 5), 300, "train")
    mu = data.centres((0, 5))
    assert mu.shape == (2, data.k, 16)
    torch.testing.assert_close(mu.norm(dim=-1), torch.full((2, data.k), data.unit).double())
    own = torch.stack([m[c] for m, c in zip(mu, batch.cluster, strict=True)])
    torch.testing.assert_close(batch.x - data.noise(batch, (0, 5)), data.alpha * own)


@pytest.mark.parametrize("name", CLUSTERS)
def test_the_two_sides_share_out_the_clusters(name: str) -> None:
    data = small(name)
    assert sorted(data.plus + data.minus) == list(range(data.k))
    assert all(data.signs[j] == 1 for j in data.plus)
    assert all(data.signs[j] == -1 for j in data.minus)
    assert data.best_radius > 0
