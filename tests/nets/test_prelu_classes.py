"""The pReLU net on images: its formula, written plainly, and what its readings mean."""

from __future__ import annotations

import math

import pytest
import torch

from pictures import install
from unmix.attacks.objectives import objective
from unmix.attacks.target import Target
from unmix.data.images.distribution import Images
from unmix.nets.prelu_classes import PowerClassifier, PReLUClasses

POWERS = (1.0, 1.5, 2.0, 3.0, 4.0)
INPUTS = ("cosine", "unit", "raw")


def drawn(p: float, inputs: str = "cosine", replicas: int = 2) -> PowerClassifier:
    """A small net with random weights; its first neuron is 0."""
    made = torch.Generator().manual_seed(0)
    shapes = {"w": (5, 6), "v": (5, 3), "b": (3,), "centre": (6,)}
    params = {
        n: torch.randn(replicas, *s, generator=made, dtype=torch.float64) for n, s in shapes.items()
    }
    params["w"][:, 0] = 0
    return PowerClassifier(params, p, PReLUClasses(p=p, inputs=inputs).degree())


def points(net: PowerClassifier, n: int = 7) -> torch.Tensor:
    made = torch.Generator().manual_seed(1)
    return torch.randn(len(net.params["w"]), n, 6, generator=made, dtype=torch.float64)


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("p", POWERS)
def test_outputs_are_the_formula(p: float, inputs: str) -> None:
    net = drawn(p, inputs)
    x, found = points(net), net.outputs(points(net))
    q = net.params
    for r in range(2):
        for i in range(7):
            centred = x[r, i] - q["centre"][r]
            for c in range(3):
                f = q["b"][r, c].item()
                for j in range(1, 5):
                    w = q["w"][r, j]
                    cos = (centred @ w / (centred.norm() * w.norm())).clamp_min(0)
                    length = {"cosine": 1.0, "unit": 0.0, "raw": p}[inputs]
                    f += q["v"][r, j, c] * w.norm() * centred.norm() ** length * cos**p
                assert found[r, i, c].item() == pytest.approx(float(f), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("p", POWERS)
def test_features_are_homogeneous_in_the_centred_point(p: float, inputs: str) -> None:
    net = drawn(p, inputs)
    x, centre = points(net), net.params["centre"].unsqueeze(1)
    twice = net.features(centre + 2 * (x - centre))
    torch.testing.assert_close(twice, 2**net.degree * net.features(x))


def test_p_1_is_the_relu_net_on_centred_points() -> None:
    net = drawn(1.0)
    x = points(net) - net.params["centre"].unsqueeze(1)
    wanted = (x @ net.params["w"].transpose(1, 2)).relu() @ net.params["v"]
    torch.testing.assert_close(net.outputs(points(net)), wanted + net.params["b"].unsqueeze(1))


@pytest.mark.parametrize("p", POWERS)
def test_preparation_is_undone_and_the_centre_is_no_trap(p: float) -> None:
    net = drawn(p)
    x = points(net)
    torch.testing.assert_close(net.restore(*net.prepare(x)), x)
    at_centre = net.params["centre"].unsqueeze(1).clone().requires_grad_()
    outputs = net.outputs(at_centre)
    torch.testing.assert_close(outputs[:, 0], net.params["b"])
    assert outputs.isfinite().all()


def test_tiny_weights_do_not_underflow() -> None:
    net = drawn(4.0)
    small = {n: t.float() for n, t in net.params.items()}
    small["w"] = small["w"] * 1e-20
    found = PowerClassifier(small, 4.0, 1.0).features(points(net).float())
    torch.testing.assert_close(found.double() * 1e20, net.features(points(net)), rtol=1e-4, atol=0)


def test_the_start_is_uniform_within_its_bounds(tmp_path, monkeypatch) -> None:
    install(monkeypatch, tmp_path, 60, 30)
    data = Images()
    batch = data.sample((0, 3), 60, "train")
    for fan, count in (("hidden", 50), ("inputs", 784)):
        start = PReLUClasses(h=50, fan=fan).start(data, (0, 3), batch)
        bound = math.sqrt(6 / count)
        assert 0.99 * bound < float(start["w"].abs().max()) <= bound
        assert float(start["v"].abs().max()) <= 1 / math.sqrt(50)
        assert start["v"].shape == (2, 50, 10)
        torch.testing.assert_close(start["centre"], batch.x.mean(1))
    silent = PReLUClasses(h=50, offset="none")
    assert silent.trained == ("w", "v")
    assert (silent.start(data, (0,), data.sample((0,), 60, "train"))["b"] == 0).all()
    assert PReLUClasses().start(Images(labels="parity"), (0,), batch)["b"].shape == (1, 2)


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("p", POWERS)
def test_slopes_by_hand_are_those_of_autograd(p: float, inputs: str) -> None:
    """Relative 1e-10 in float64; 1e-4 in float32."""
    for dtype, tolerance in ((torch.float64, 1e-10), (torch.float32, 1e-4)):
        net = drawn(p, inputs, replicas=1)
        lone = PowerClassifier({n: t.to(dtype) for n, t in net.params.items()}, p, net.degree)
        target, x = lone.target(), points(net)[0].to(dtype)
        assert isinstance(target, Target)
        assert target.dtype == dtype
        leaf = x.clone().requires_grad_()
        scores = lone.outputs(leaf.unsqueeze(0))[0]
        for loss in ("margin", "ce"):
            lowered = objective(loss, torch.arange(7) % 3)
            value, slopes = lowered(scores.detach())
            (wanted,) = torch.autograd.grad(scores, leaf, slopes, retain_graph=True)
            mine, same, gradient = target.pull(x, lowered)
            torch.testing.assert_close(mine, scores.detach(), rtol=tolerance, atol=tolerance)
            torch.testing.assert_close(same, value, rtol=tolerance, atol=tolerance)
            torch.testing.assert_close(gradient, wanted, rtol=tolerance, atol=tolerance)
        torch.testing.assert_close(
            target.scores(x), scores.detach(), rtol=tolerance, atol=tolerance
        )


def test_the_double_of_a_target_is_the_net_in_float64() -> None:
    net = drawn(3.0, replicas=1)
    single = PowerClassifier({n: t.float() for n, t in net.params.items()}, 3.0, 1.0)
    x = points(net)[0]
    wanted = single.double().outputs(x.unsqueeze(0))[0]
    torch.testing.assert_close(single.target().double().scores(x), wanted, rtol=1e-12, atol=1e-12)


def test_a_point_at_the_centre_and_a_silent_neuron_give_no_nan() -> None:
    net = drawn(3.0, replicas=1)
    x = net.params["centre"].clone()
    for p, degree in ((1.0, 1.0), (3.0, 1.0), (3.0, 0.0), (3.0, 3.0)):
        target = PowerClassifier(net.params, p, degree).target()
        _, _, gradient = target.pull(x, objective("margin", torch.tensor([0])))
        assert target.scores(x).isfinite().all()
        assert not gradient.isnan().any()
