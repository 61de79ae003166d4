"""What every net must do, whatever its kind; a new one is tested as soon as it is listed."""

from __future__ import annotations

import pytest
import torch

from unmix import catalog
from unmix.data.base import Distribution
from unmix.data.clusters import Clusters
from unmix.data.images.distribution import Images
from unmix.data.patches import Patches
from unmix.data.sparse_code import SparseCode
from unmix.nets.base import Classifier, Network

NAMES = catalog.names("nets")
# The smallest distributions; a net is tried on each that it takes.
WORLDS: tuple[Distribution, ...] = (
    Clusters(k=4, d=16),
    Images(labels="parity"),
    Patches(k=3, d=16, patches=4),
    SparseCode(d=16, k=4.0),
)
ROWS = [
    (name, data)
    for name in NAMES
    for data in WORLDS
    if isinstance(data, catalog.load("nets", name).takes)
]
IDS = [f"{name} on {data.kind}" for name, data in ROWS]


def net(name: str) -> Network:
    made: Network = catalog.load("nets", name)()
    return made


def test_every_net_takes_some_distribution_here() -> None:
    assert {name for name, _ in ROWS} == set(NAMES)


@pytest.mark.parametrize(("name", "data"), ROWS, ids=IDS)
def test_the_start_is_a_function_of_the_seed_and_the_points(name: str, data: Distribution) -> None:
    mine = net(name)
    mine.check(data)
    both = mine.start(data, (0, 7), data.sample((0, 7), 30, "train"))
    lone = mine.start(data, (7,), data.sample((7,), 30, "train"))
    assert both.keys() == lone.keys()
    assert all(torch.equal(both[n][1:], lone[n]) for n in both)
    assert all(p.isfinite().all() and p.dtype == torch.float64 for p in both.values())
    assert mine.neurons(data) >= 1


@pytest.mark.parametrize(("name", "data"), ROWS, ids=IDS)
def test_a_classifier_says_labels_and_leaves_its_parameters(name: str, data: Distribution) -> None:
    mine, batch = net(name), data.sample((0, 7), 30, "train", torch.float32)
    found = mine.classifier(data, mine.start(data, (0, 7), batch))
    assert isinstance(found, Classifier)
    before = {n: p.clone() for n, p in found.params.items()}
    labels = found.predict(batch.x)
    assert labels.shape == batch.y.shape
    assert set(labels.unique().tolist()) <= set(batch.y.unique().tolist()) | {-1.0}
    share = (labels == batch.y).double().mean(1)
    torch.testing.assert_close(found.accuracy(batch), share)
    assert all(torch.equal(found.params[n], p) for n, p in before.items())
    assert all(p.dtype == torch.float64 for p in found.double().params.values())


@pytest.mark.parametrize("name", NAMES)
def test_a_net_refuses_data_that_it_does_not_take(name: str) -> None:
    mine = net(name)
    for data in WORLDS:
        if not isinstance(data, mine.takes):
            with pytest.raises(ValueError, match=f"'{name}' net takes"):
                mine.check(data)
