"""What all two-layer nets share: decisions, slopes, ties, signs and the Lipschitz bound."""

from __future__ import annotations

import pytest
import torch

from lab import by_hand, gaussian, still
from unmix.data.clusters import Clusters
from unmix.nets.base import sign
from unmix.nets.constructed import FeatureAveraging, FeatureDecoupling, NonRobustMultiClass
from unmix.nets.k_class import KClass
from unmix.nets.tops import ReluTop
from unmix.nets.two_layer import TwoLayer

DATA = Clusters(k=4, d=8, positive=(1, 3))
NETS = [
    TwoLayer(m=3),
    KClass(h=2),
    KClass(h=2, labels=2),
    FeatureAveraging(bias_plus=0.1),
    FeatureDecoupling(),
    NonRobustMultiClass(),
]
IDS = ["two-layer", "k-class", "two labels", "averaging", "decoupling", "non-robust"]


def drawn(net, seeds: tuple = (0, 1)):
    """A model of a net with standard normal weights."""
    return gaussian(still(net, DATA, seeds=seeds)).model


def points(n: int, seed: int = 3) -> torch.Tensor:
    return torch.randn(2, n, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("net", NETS, ids=IDS)
def test_the_slope_is_that_of_autograd(net) -> None:
    model = drawn(net)
    z = model.preactivations(points(50)).requires_grad_()
    (wanted,) = torch.autograd.grad(model.decide(z).sum(), z)
    assert wanted.abs().sum() > 0
    torch.testing.assert_close(model.slope(z.detach()), wanted, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("net", NETS, ids=IDS)
def test_the_slope_at_zero_is_that_of_an_active_neuron(net) -> None:
    model = drawn(net)
    # With half of the pre-activations 0 and 1e-300 above, slopes must agree: relu'(0) = 1.
    z = model.preactivations(points(20))
    at, above = z.clone(), z.clone()
    at[..., ::2], above[..., ::2] = 0.0, 1e-300
    torch.testing.assert_close(model.slope(at), model.slope(above), rtol=0, atol=0)
    assert (model.slope(at)[..., ::2] != 0).any()


@pytest.mark.parametrize("net", NETS, ids=IDS)
def test_the_lipschitz_bound_holds_and_is_not_idle(net) -> None:
    model = drawn(net)
    x, y = 3 * points(4000), 3 * points(4000, seed=4)
    steps = torch.cat([y, x + 1e-3 * y], 1) - torch.cat([x, x], 1)
    change = model.decision(torch.cat([x, x], 1) + steps) - model.decision(torch.cat([x, x], 1))
    ratio = (change.abs() / steps.norm(dim=-1)).amax(1)
    assert (ratio <= model.lipschitz * (1 + 1e-9)).all()
    assert (ratio >= 0.1 * model.lipschitz).all()


@pytest.mark.parametrize("net", NETS, ids=IDS)
def test_decisions_are_functions_of_outputs_and_labels(net) -> None:
    model, x = drawn(net), points(30)
    outputs = model.outputs(x)
    if outputs.shape[-1] == 1:
        wanted = outputs[..., 0]
    else:
        # Probabilities of the clusters' labels, by the textbook's formula.
        p = outputs.exp() / outputs.exp().sum(-1, keepdim=True)
        signs = torch.tensor([float(s) for s in model.class_signs])
        positive, negative = p[..., signs > 0].sum(-1), p[..., signs < 0].sum(-1)
        wanted = (positive / negative).log()
    torch.testing.assert_close(model.decision(x), wanted, rtol=1e-9, atol=1e-12)
    assert set(model.predict(x).flatten().tolist()) <= {-1.0, 1.0}


def test_outputs_of_classes_vote_for_their_clusters_label() -> None:
    fine, coarse = drawn(KClass(h=2)), drawn(KClass(h=3, labels=2))
    # J+ = {1, 3} holds the first two classes, whatever the numbers of its clusters.
    assert fine.class_signs.tolist() == [1, 1, -1, -1]
    assert fine.net.classes(DATA).tolist() == [2, 0, 3, 1]
    assert fine.neuron_signs.tolist() == [1, 1, 1, 1, -1, -1, -1, -1]
    assert coarse.class_signs.tolist() == [1, -1]
    assert coarse.neuron_signs.tolist() == [1, 1, 1, -1, -1, -1]
    assert drawn(TwoLayer(m=2)).class_signs is None
    assert drawn(TwoLayer(m=2)).neuron_signs.tolist() == [1, 1, -1, -1]
    assert drawn(FeatureDecoupling()).neuron_signs.tolist() == [-1, 1, -1, 1]


def test_the_log_form_has_the_sign_of_the_probabilities_and_never_saturates() -> None:
    model = drawn(KClass(h=2))
    x = points(2000)
    p = model.outputs(x).softmax(-1)
    gap = p @ model.class_signs
    assert gap.abs().max() < 1
    assert torch.equal(sign(gap), model.predict(x))
    assert (model.predict(x) > 0).double().mean() == pytest.approx(0.5, abs=0.3)
    large = model.decision(1e6 * x)
    saturated = model.outputs(1e6 * x).softmax(-1) @ model.class_signs
    assert (saturated.abs() == 1).double().mean() > 0.9
    assert large.isfinite().all()
    assert large.abs().max() > 1e5
    assert model.slope(model.preactivations(1e6 * x)).isfinite().all()


def test_a_tie_is_a_minus_one() -> None:
    model = by_hand(TwoLayer(m=1), Clusters(k=2, d=2), w=torch.eye(2), b=torch.zeros(2))
    x = torch.tensor([[[1.0, 1.0], [-1.0, -1.0], [2.0, 1.0], [1.0, 2.0]]]).double()
    assert model.decision(x)[0].tolist() == [0.0, 0.0, 1.0, -1.0]
    assert model.predict(x)[0].tolist() == [-1.0, -1.0, 1.0, -1.0]
    assert sign(torch.tensor([0.0, -0.0, 1e-30])).tolist() == [-1.0, -1.0, 1.0]


def test_accuracy_is_the_share_of_right_labels() -> None:
    data = Clusters(k=2, d=2, sigma=0.0)
    model = by_hand(TwoLayer(m=1), data, w=torch.zeros(2, 2), b=torch.tensor([1.0, 0.0]))
    batch = data.sample((0,), 50, "test")
    assert model.accuracy(batch)[0] == pytest.approx(float((batch.y > 0).double().mean()))


@pytest.mark.parametrize(("slope_at_zero", "wanted"), [(1, [0, 1, 1]), (0, [0, 0, 1])])
def test_the_slope_of_relu_at_zero_is_a_choice(slope_at_zero: int, wanted: list) -> None:
    z = torch.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    top = ReluTop(torch.ones(1, 1, dtype=z.dtype), slope_at_zero)
    value = top.outputs(z.reshape(1, 1, -1), torch.ones(1, 1, dtype=z.dtype), {}).flatten()
    assert value.tolist() == [0.0, 0.0, 2.0]
    (slope,) = torch.autograd.grad(value.sum(), z)
    assert slope.tolist() == wanted
