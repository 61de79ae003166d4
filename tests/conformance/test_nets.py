"""What every net must do; a new one is tested as soon as the catalog lists it."""

from __future__ import annotations

import pytest
import torch

from lab import gaussian, still
from unmix import catalog
from unmix.data.clusters import Clusters
from unmix.nets.base import Model, Net, sign

NAMES = catalog.names("nets")
WORLDS = [Clusters(k=4, d=16), Clusters(k=3, d=16, positive=(2,), scale="unit")]
ROWS = [(name, data) for name in NAMES for data in WORLDS]
IDS = [f"{name}, {len(data.plus)} of {data.k}" for name, data in ROWS]


def net(name: str) -> Net:
    made: Net = catalog.load("nets", name)()
    return made


@pytest.mark.parametrize(("name", "data"), ROWS, ids=IDS)
def test_shapes_and_types(name: str, data: Clusters) -> None:
    mine = net(name)
    width = mine.neurons(data)
    for dtype in (torch.float32, torch.float64):
        params = mine.init(data, (0, 7), dtype)
        assert set(params) <= {"w", "b"}
        assert params["w"].shape == (2, width, 16)
        assert all(p.dtype == dtype and p.isfinite().all() for p in params.values())
        if "b" in params:
            assert params["b"].shape == (2, width)
    readout = mine.readout(data)
    assert readout.shape[0] == width
    classes = mine.classes(data)
    outputs = 1 if classes is None else int(classes.max()) + 1
    assert readout.shape[1] == outputs
    assert (readout != 0).any(1).all()


@pytest.mark.parametrize(("name", "data"), ROWS, ids=IDS)
def test_the_start_is_a_function_of_the_seed(name: str, data: Clusters) -> None:
    mine = net(name)
    both = mine.init(data, (0, 7), torch.float64)
    for p, q in zip(both.values(), mine.init(data, (7,), torch.float64).values(), strict=True):
        assert torch.equal(p[1:], q)
    batch = data.sample((0, 7), 30, "train")
    start = mine.start(data, (0, 7), batch)
    assert start.keys() == both.keys()
    assert all(start[n].shape == both[n].shape for n in both)


@pytest.mark.parametrize(("name", "data"), ROWS, ids=IDS)
def test_classes_never_mix_labels(name: str, data: Clusters) -> None:
    mine, batch = net(name), data.sample((0,), 30, "train")
    classes = mine.classes(data)
    targets = mine.targets(data, batch)
    if classes is None:
        assert torch.equal(targets, batch.y)
        return
    assert classes.shape == (data.k,)
    assert sorted(set(classes.tolist())) == list(range(int(classes.max()) + 1))
    for label in set(classes.tolist()):
        assert len(set(data.signs[classes == label].tolist())) == 1
    assert torch.equal(targets, classes[batch.cluster])


@pytest.mark.parametrize(("name", "data"), ROWS, ids=IDS)
def test_decisions_slopes_and_bounds_fit_together(name: str, data: Clusters) -> None:
    model = gaussian(still(net(name), data, seeds=(0, 7))).model
    made = torch.Generator().manual_seed(0)
    x = torch.randn(2, 400, 16, generator=made, dtype=torch.float64)
    z = model.preactivations(x).requires_grad_()
    f = model.decide(z)
    (wanted,) = torch.autograd.grad(f.sum(), z)
    z, f = z.detach(), f.detach()
    torch.testing.assert_close(model.slope(z), wanted, rtol=1e-11, atol=1e-13)
    torch.testing.assert_close(model.decision(x), f)
    assert torch.equal(model.predict(x), sign(f))
    assert set(model.neuron_signs.tolist()) == {1.0, -1.0}
    y = torch.randn(2, 400, 16, generator=made, dtype=torch.float64)
    ratio = (model.decision(y) - f).abs() / (y - x).norm(dim=-1)
    assert (ratio <= model.lipschitz[:, None] * (1 + 1e-12)).all()


@pytest.mark.parametrize(("name", "data"), ROWS, ids=IDS)
def test_a_positive_neuron_pushes_towards_plus(name: str, data: Clusters) -> None:
    model = gaussian(still(net(name), data)).model
    slope = model.slope(torch.ones(1, 5, len(model.neuron_signs), dtype=torch.float64))
    assert torch.equal(slope.sign(), model.neuron_signs.expand_as(slope))


@pytest.mark.parametrize("name", NAMES)
def test_doubling_keeps_the_model_and_raises_its_precision(name: str) -> None:
    data = WORLDS[0]
    single = Model(net(name), data, net(name).init(data, (0,), torch.float32))
    double = single.double()
    assert double.w.dtype == torch.float64
    assert torch.equal(double.w.float(), single.w)
    assert single.w.dtype == torch.float32
    x = data.sample((0,), 5, "test", torch.float32).x
    torch.testing.assert_close(
        double.decision(x.double()).float(), single.decision(x), rtol=1e-4, atol=1e-4
    )
