"""The two-label net, by hand."""

from __future__ import annotations

import pytest
import torch

from lab import by_hand
from unmix.data.clusters import Clusters
from unmix.nets.two_layer import TwoLayer

DATA = Clusters(k=2, d=2)


def test_a_net_computed_by_hand() -> None:
    w = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0], [-1.0, 0.0]])
    model = by_hand(TwoLayer(m=2), DATA, w=w, b=torch.tensor([0.5, -1.0, 0.0, 3.0]))
    x = torch.tensor([[[1.0, 2.0], [-4.0, 0.0], [0.0, 0.0]]]).double()
    # (relu(x1 + .5) + relu(2 x2 - 1) - relu(x1 + x2) - relu(3 - x1)) / 2
    assert model.preactivations(x)[0, 0].tolist() == [1.5, 3.0, 3.0, 2.0]
    assert model.decision(x)[0].tolist() == [-0.25, -3.5, -1.25]
    assert model.lipschitz.tolist() == pytest.approx([(1 + 2 + 2**0.5 + 1) / 2])


def test_the_start_has_the_stated_spread() -> None:
    data = Clusters(k=2, d=400)
    params = TwoLayer(m=50, sigma_w=0.3, sigma_b=2.0).init(data, (0, 1), torch.float64)
    assert {n: tuple(p.shape) for n, p in params.items()} == {"w": (2, 100, 400), "b": (2, 100)}
    assert params["w"].std() == pytest.approx(0.3, rel=0.02)
    assert params["b"].std() == pytest.approx(2.0, rel=0.15)
    assert not torch.equal(params["w"][0], params["w"][1])


def test_a_wider_net_begins_with_the_narrower_one() -> None:
    narrow, wide = (TwoLayer(m=m).init(DATA, (0,), torch.float64)["w"] for m in (2, 3))
    assert torch.equal(wide[:, :4], narrow)


def test_a_zero_start_is_zero() -> None:
    params = TwoLayer(sigma_w=0.0, sigma_b=0.0).init(DATA, (0,), torch.float32)
    assert all((p == 0).all() and p.dtype == torch.float32 for p in params.values())
