"""pReLU nets: the paper's formula, its symmetries, tiny weights, and the reference classifiers."""

from __future__ import annotations

import pytest
import torch

from unmix.data.clusters import Clusters
from unmix.errors import DataError, SpecError
from unmix.nets.base import Model
from unmix.nets.prelu import PReLU
from unmix.nets.prelu_constructed import PReLUAveraging, PReLUSubclasses

DATA = Clusters(k=4, d=12, scale="unit", sigma=0.1, positive=(0, 1, 3))
POWERS = [1.0, 1.5, 2.0, 3.0, 4.0]


def points(n: int = 60, d: int = 12, replicas: int = 2) -> torch.Tensor:
    made = torch.Generator().manual_seed(1)
    return torch.randn(replicas, n, d, dtype=torch.float64, generator=made)


def written_out(w: torch.Tensor, v: torch.Tensor, x: torch.Tensor, p: float) -> torch.Tensor:
    """sum_j v_j relu(<x, w_j>)^p / |w_j|^(p-1), one neuron after the other."""
    total = torch.zeros(x.shape[:2], dtype=x.dtype)
    for j in range(w.shape[1]):
        a = torch.einsum("rnd,rd->rn", x, w[:, j]).clamp_min(0)
        total += v[:, j : j + 1] * a**p / w[:, j].norm(dim=-1, keepdim=True) ** (p - 1)
    return total


@pytest.mark.parametrize("p", POWERS)
def test_it_is_the_papers_formula(p: float) -> None:
    net = PReLU(p=p, h=7, sigma=0.5)
    model = Model(net, DATA, net.init(DATA, (0, 5), torch.float64))
    x = points()
    torch.testing.assert_close(
        model.decision(x), written_out(model.w, model.params["v"], x, p), rtol=1e-12, atol=1e-14
    )


@pytest.mark.parametrize("p", POWERS)
def test_scaling_a_neuron_against_its_output_changes_nothing_and_doubling_both_gives_four(
    p: float,
) -> None:
    net = PReLU(p=p, h=7, sigma=0.5)
    params = net.init(DATA, (0, 5), torch.float64)
    f = Model(net, DATA, params).decision(points())
    turned = {"w": 3.7 * params["w"], "v": params["v"] / 3.7}
    torch.testing.assert_close(Model(net, DATA, turned).decision(points()), f)
    doubled = {name: 2 * value for name, value in params.items()}
    torch.testing.assert_close(Model(net, DATA, doubled).decision(points()), 4 * f)


@pytest.mark.parametrize("p", [1.0, 3.0, 4.0])
def test_tiny_weights_lose_no_digits_in_single_precision(p: float) -> None:
    # a^p is about 1e-32 here, and |w|^(p-1) as small.
    net = PReLU(p=p, h=50, sigma=1e-8)
    params = net.init(DATA, (0, 5), torch.float64)
    single = Model(net, DATA, {name: value.float() for name, value in params.items()})
    wanted = Model(net, DATA, params).decision(points())
    error = (single.decision(points().float()).double() - wanted).abs().max()
    assert error < 1e-5 * wanted.abs().max()


@pytest.mark.parametrize("p", [1.0, 3.0])
def test_a_zero_neuron_is_silent(p: float) -> None:
    net = PReLU(p=p, h=3, sigma=1.0)
    params = net.init(DATA, (0, 5), torch.float64)
    params["w"][:, 1] = 0
    model = Model(net, DATA, params)
    kept = {"w": params["w"][:, [0, 2]], "v": params["v"][:, [0, 2]]}
    torch.testing.assert_close(
        model.decision(points()), written_out(kept["w"], kept["v"], points(), p)
    )
    assert model.slope(model.preactivations(points())).isfinite().all()
    assert model.lipschitz.isnan().sum() == 0


def test_the_balanced_start_is_balanced_and_bounded() -> None:
    net = PReLU(h=400, initial="balanced", sigma=1e-3)
    params = net.init(DATA, (0, 5), torch.float64)
    length = params["w"].norm(dim=-1)
    assert torch.equal(params["v"].abs(), length)
    assert length.max() < 1e-3
    assert length.square().mean().sqrt() == pytest.approx(1e-3 / 3**0.5, rel=0.03)
    assert (params["v"] > 0).double().mean() == pytest.approx(0.5, abs=0.1)


def test_the_gaussian_start_is_that_of_the_papers_code() -> None:
    params = PReLU(h=400).init(DATA, (0, 5), torch.float64)
    assert params["w"].std() == pytest.approx(1e-7, rel=0.03)
    assert params["v"].std() == pytest.approx(1e-7, rel=0.1)
    wide = PReLU(h=500).init(DATA, (0, 5), torch.float64)
    assert all(torch.equal(wide[name][:, :400], params[name]) for name in params)


def test_its_second_layer_is_found_in_the_form_alone() -> None:
    net = PReLU(h=3)
    model = Model(net, DATA, net.init(DATA, (0, 5), torch.float64))
    for ask in (lambda: model.readout, lambda: model.neuron_signs):
        with pytest.raises(DataError, match="second layer") as caught:
            ask()
        assert "run.model.form.readout" in caught.value.hint
    q = model.params["v"] * model.w.norm(dim=-1)
    torch.testing.assert_close(model.form.readout[..., 0], q)
    with pytest.raises(DataError, match=r"pre-activations \[R points M\] of 2 nets"):
        model.decide(torch.ones(5, 3, dtype=torch.float64))


GROUPS = {
    "plain": ((0, 1), (2,), None, None),
    "shared": ((4, 0), (2, 5, 1), (1.0, 2.0, 0.3, 1.0, 5.0), 8),
}


@pytest.mark.parametrize("label", GROUPS)
@pytest.mark.parametrize("scale", ["unit", "sqrt-d"])
def test_averaging_is_realised_exactly(label: str, scale: str) -> None:
    plus, minus, lam, h = GROUPS[label]
    data = DATA.model_copy(update={"scale": scale})
    net = PReLUAveraging(plus=plus, minus=minus, lam=lam, h=h)
    model = Model(net, data, net.init(data, (0, 5), torch.float64))
    x, mu = points(), data.centres((0, 5)) / data.unit
    inside = torch.einsum("rnd,rkd->rnk", x, mu)
    wanted = inside[..., [0, 1, 3]].sum(-1).clamp_min(0) - inside[..., 2].clamp_min(0)
    torch.testing.assert_close(model.decision(x), wanted, rtol=1e-12, atol=1e-14)
    assert model.w.shape[1] == (h or 3)
    torch.testing.assert_close(model.params["v"].abs(), model.w.norm(dim=-1))
    assert model.lipschitz.tolist() == pytest.approx([3**0.5 + 1] * 2)


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("shared", [False, True])
def test_subclasses_are_realised_exactly(p: float, shared: bool) -> None:
    groups = ((6,), (0, 3), (1,), (5, 2, 4)) if shared else None
    lam = (1.0, 2.0, 3.0, 1.0, 0.5, 4.0, 1.0) if shared else None
    net = PReLUSubclasses(p=p, groups=groups, lam=lam, h=9 if shared else None)
    model = Model(net, DATA, net.init(DATA, (0, 5), torch.float64))
    x = points()
    inside = torch.einsum("rnd,rkd->rnk", x, DATA.centres((0, 5))).clamp_min(0) ** p
    wanted = inside[..., 0] + inside[..., 1] - inside[..., 2] + inside[..., 3]
    torch.testing.assert_close(model.decision(x), wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PReLUAveraging(plus=(0,), minus=(0,)), "no neuron may be in two"),
        (lambda: PReLUAveraging(plus=()), "each group needs a neuron"),
        (lambda: PReLUAveraging(h=1), "neuron 1 does not fit into h=1"),
        (lambda: PReLUAveraging(lam=(1.0,)), "lam must be 2 positive numbers"),
        (lambda: PReLU(p=0.5), "greater than or equal to 1"),
        (lambda: PReLUSubclasses(groups=((0,), (1,))).neurons(DATA), "one for each of the 4"),
    ],
)
def test_what_cannot_be_is_refused(make, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        make()
