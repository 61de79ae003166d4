"""Residual nets: their formulas written plainly, their known sizes, and what they refuse."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn import functional as f

from pictures import install
from unmix.data.images import datasets
from unmix.data.images.distribution import Images
from unmix.errors import SpecError
from unmix.experiment import Experiment, Samples
from unmix.nets.deep import DeepClassifier, DeepNet, ResNet, WideResNet, encoder, planes
from unmix.train.deep import DeepDescent

SMALL = (ResNet(width=3, blocks=(2, 1)), WideResNet(depth=16, widen=1))


@pytest.fixture(autouse=True)
def _tiny(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, tmp_path / "data", 40, 20, "cifar10")


def drawn(net: DeepNet, data: Images, seeds: tuple = (0, 3)) -> DeepClassifier:
    """The net at its start, with norms that do something."""
    made = torch.Generator().manual_seed(0)
    params = net.start(data, seeds, data.sample(seeds, 20, "train"))
    for name, value in params.items():
        if value.ndim == 2 and name not in ("centre", "scale"):
            params[name] = torch.rand(value.shape, generator=made, dtype=value.dtype) + 0.5
    return net.classifier(data, params)


def norm(p: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    """Batch norm as at test time, by its formula."""
    mean, var, w, b = (p[f"{name}.{n}"][:, None, None] for n in ("mean", "var", "weight", "bias"))
    return (x - mean) / (var + 1e-5).sqrt() * w + b


def plainly(net: DeepNet, data: Images, p: dict[str, Tensor], x: Tensor) -> Tensor:
    """Outputs, written from the formulas alone."""
    plan, turn, before = net.plan(data), 0, isinstance(net, WideResNet)
    x = (x - p["centre"][:, None, None]) / p["scale"][:, None, None]
    x = f.conv2d(x, p["stem.weight"], stride=plan.stride, padding=1)
    x = x if before else f.relu(norm(p, "norm", x))
    for stage, count in enumerate(plan.blocks):
        for block in range(count):
            at, stride = f"blocks.{turn}", 2 if stage and not block else 1
            a = f.relu(norm(p, f"{at}.n1", x)) if before else x
            z = f.conv2d(a, p[f"{at}.c1.weight"], stride=stride, padding=1)
            z = f.relu(norm(p, f"{at}.{'n2' if before else 'n1'}", z))
            z = f.conv2d(z, p[f"{at}.c2.weight"], padding=1)
            short = x
            if f"{at}.short.weight" in p:
                short = f.conv2d(a, p[f"{at}.short.weight"], stride=stride)
                short = short if before else norm(p, f"{at}.n3", short)
            x = z + short if before else f.relu(norm(p, f"{at}.n2", z) + short)
            turn += 1
    x = f.relu(norm(p, "norm", x)) if before else x
    return x.mean((2, 3)) @ p["top.weight"].T + p["top.bias"]


@pytest.mark.parametrize("net", SMALL, ids=["resnet", "wide-resnet"])
def test_outputs_are_the_formula(net: DeepNet) -> None:
    data = Images(dataset="cifar10")
    found = drawn(net, data)
    x = data.sample((0, 3), 6, "test").x
    for r in range(2):
        mine = {name: t[r] for name, t in found.params.items()}
        wanted = plainly(net, data, mine, planes(x[r], data))
        torch.testing.assert_close(found.outputs(x)[r], wanted, rtol=1e-10, atol=1e-10)
        lone = found.replica(r)
        assert torch.equal(lone.outputs(x[r : r + 1])[0], found.outputs(x)[r])
        below = lone.features(x[r : r + 1])[0]
        torch.testing.assert_close(encoder(found, r)(x[r]), below)
        top = below @ mine["top.weight"].T + mine["top.bias"]
        torch.testing.assert_close(top, found.outputs(x)[r])


@pytest.mark.parametrize("net", SMALL, ids=["resnet", "wide-resnet"])
def test_layouts_agree_and_points_do_not_see_each_other(net: DeepNet) -> None:
    flat, stacked = Images(dataset="cifar10"), Images(dataset="cifar10", layout="planes")
    one, other = drawn(net, flat), drawn(net, stacked)
    x, planar = (data.sample((0, 3), 6, "test").x for data in (flat, stacked))
    torch.testing.assert_close(one.outputs(x), other.outputs(planar))
    torch.testing.assert_close(one.outputs(x)[:, :1], one.outputs(x[:, :1]))


@pytest.mark.parametrize(
    ("net", "parameters", "multiplications"),
    [
        # As counted by others: the usual ResNet18 for CIFAR-10, and TRADES' WideResNet-34-10.
        (ResNet(width=64, blocks=(2, 2, 2, 2), stride=1), 11_173_962, 555_422_720),
        (WideResNet(depth=34, widen=10), 46_160_474, None),
    ],
    ids=["resnet18", "wrn-34-10"],
)
def test_the_papers_nets_have_their_known_sizes(
    net: DeepNet, parameters: int, multiplications: int | None
) -> None:
    data = Images(dataset="cifar10")
    module = net.module(data)
    assert all(p.is_meta for p in module.parameters())
    assert sum(p.numel() for p in module.parameters()) == parameters
    if multiplications is not None:
        assert net.load(data).multiplications == multiplications


def test_inputs_are_centred_and_scaled_channel_by_channel() -> None:
    data = Images(dataset="cifar10")
    batch = data.sample((0, 3), 20, "train")
    params = SMALL[0].start(data, (0, 3), batch)
    pixels = planes(batch.x[0], data)
    torch.testing.assert_close(params["centre"][1], pixels.mean((0, 2, 3)))
    torch.testing.assert_close(params["scale"][1], pixels.movedim(1, 0).flatten(1).std(1))
    black = replace(batch, x=torch.zeros_like(batch.x))
    assert torch.equal(SMALL[0].start(data, (0,), black)["scale"], torch.ones(2, 3).double())


def test_images_of_any_size_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    small = replace(datasets.DATASETS["cifar10"], shape=(8, 8))
    monkeypatch.setitem(datasets.DATASETS, "cifar10", small)
    load = SMALL[0].load(Images(dataset="cifar10"))
    assert load.numbers == 4 * 4 * 3 * 5 + 2 * 2 * 6 * 3 + 10
    assert SMALL[0].neurons(Images(dataset="cifar10")) == load.numbers


def test_what_cannot_be_built_is_refused() -> None:
    with pytest.raises(SpecError, match="6 n \\+ 4 layers, got 12"):
        WideResNet(depth=12)
    with pytest.raises(SpecError, match="at least one block in each stage"):
        ResNet(blocks=(1, 0))
    with pytest.raises(SpecError, match="takes images data, got clusters"):
        Experiment.parse(
            {
                "data": {"kind": "clusters"},
                "net": {"kind": "resnet"},
                "train": {"kind": "deep-descent"},
            }
        )
    with pytest.raises(SpecError, match="cannot train a 'prelu-classes' net"):
        Experiment(
            data=Images(), net={"kind": "prelu-classes"}, train=DeepDescent(), samples=Samples()
        )
