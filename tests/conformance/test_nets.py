"""What every two-layer net with a normal form must do; for all nets see `test_networks`."""

from __future__ import annotations

import pytest
import torch

from unmix import catalog
from unmix.data.clusters import Clusters
from unmix.nets.base import Model, Net, sign

NAMES = [name for name in catalog.names("nets") if issubclass(catalog.load("nets", name), Net)]
WORLDS = [Clusters(k=4, d=16), Clusters(k=3, d=16, positive=(2,), scale="unit")]
ROWS = [(name, data) for name in NAMES for data in WORLDS]
IDS = [f"{name}, {len(data.plus)} of {data.k}" for name, data in ROWS]


def net(name: str) -> Net:
    made: Net = catalog.load("nets", name)()
    return made


def drawn(name: str, data: Clusters, seeds: tuple = (0,)) -> Model:
    """The net with standard normal parameters."""
    made = torch.Generator().manual_seed(0)
    shapes = {n: p.shape for n, p in net(name).init(data, seeds, torch.float64).items()}
    params = {n: torch.randn(s, generator=made, dtype=torch.float64) for n, s in shapes.items()}
    return Model(net(name), data, params)


@pytest.mark.parametrize(("name", "data"), ROWS, ids=IDS)
def test_shapes_and_types(name: str, data: Clusters) -> None:
    mine = net(name)
    width = mine.neurons(data)
    for dtype in (torch.float32, torch.float64):
        params = mine.init(data, (0, 7), dtype)
        assert set(params) in ({"w"}, {"w", "b"}, {"w", "v"})
        assert params["w"].shape == (2, width, 16)
        assert all(p.dtype == dtype and p.isfinite().all() for p in params.values())
        assert all(params[name].shape == (2, width) for name in params.keys() - {"w"})
    form = mine.form(data, mine.init(data, (0, 7), torch.float64))
    classes = mine.classes(data)
    outputs = 1 if classes is None else int(classes.max()) + 1
    assert form.w.shape == (2, width, 16)
    assert form.readout.shape == (2, width, outputs)
    assert (form.readout != 0).any(2).all()


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
    model = drawn(name, data, seeds=(0, 7))
    made = torch.Generator().manual_seed(0)
    x = torch.randn(2, 400, 16, generator=made, dtype=torch.float64)
    z = model.preactivations(x).requires_grad_()
    f = model.decide(z)
    (wanted,) = torch.autograd.grad(f.sum(), z)
    z, f = z.detach(), f.detach()
    torch.testing.assert_close(model.slope(z), wanted, rtol=1e-11, atol=1e-13)
    torch.testing.assert_close(model.decision(x), f)
    assert torch.equal(model.predict(x), sign(f))
    assert set(model.form.votes.flatten().tolist()) == {1.0, -1.0}
    y = torch.randn(2, 400, 16, generator=made, dtype=torch.float64)
    ratio = (model.decision(y) - f).abs() / (y - x).norm(dim=-1)
    assert (ratio <= model.lipschitz[:, None] * (1 + 1e-12)).all()


@pytest.mark.parametrize(("name", "data"), ROWS, ids=IDS)
def test_a_positive_neuron_pushes_towards_plus(name: str, data: Clusters) -> None:
    model = drawn(name, data)
    slope = model.slope(torch.ones(1, 5, model.w.shape[1], dtype=torch.float64))
    assert torch.equal(slope.sign(), model.form.votes.expand_as(slope))


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
