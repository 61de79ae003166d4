"""Cosines of nets whose neurons are known."""

from __future__ import annotations

import math

import pytest
import torch

from lab import put, still, trained_fine
from unmix.data.clusters import Clusters
from unmix.nets.constructed import FeatureAveraging, FeatureDecoupling, NonRobustMultiClass
from unmix.nets.k_class import KClass
from unmix.nets.two_layer import TwoLayer
from unmix.probes.alignment import cosines, equivalent, on_pairs

DATA = Clusters(k=5, d=32, positive=(0, 3, 4))


def test_averaging_shares_its_direction_among_its_centres() -> None:
    probe = cosines(still(FeatureAveraging(), DATA, seeds=(0, 1)))
    wanted = torch.zeros(5, 2, dtype=torch.float64)
    wanted[[0, 3, 4], 0] = 1 / math.sqrt(3)
    wanted[[1, 2], 1] = 1 / math.sqrt(2)
    for matrix in probe["matrix"]:
        torch.testing.assert_close(matrix, wanted)
    assert probe["on"].tolist() == pytest.approx([3 / 5 / 3**0.5 + 2 / 5 / 2**0.5] * 2)
    assert probe["on_min"].tolist() == pytest.approx([3**-0.5] * 2)
    assert probe["off"].abs().max() < 1e-14
    assert probe["off_max"].abs().max() < 1e-14
    assert probe["pair_plus"].isnan().all()


@pytest.mark.parametrize("cosine", [0.0, 0.3])
def test_decoupling_has_a_centre_a_neuron(cosine: float) -> None:
    data = Clusters(k=4, d=32, cosine=cosine)
    probe = cosines(still(FeatureDecoupling(), data))
    wanted = (1 - cosine) * torch.eye(4, dtype=torch.float64) + cosine
    torch.testing.assert_close(probe["matrix"][0], wanted, rtol=0, atol=1e-12)
    # A binary net: on pairs share the label, so half of them are centres of the side.
    assert probe["on"].item() == pytest.approx((1 + cosine) / 2)
    assert probe["on_sd"].item() == pytest.approx(torch.tensor([1.0, cosine] * 4).std().item())
    assert probe["off"].item() == pytest.approx(cosine)
    assert probe["pair_plus"].item() == pytest.approx(cosine)


def test_the_non_robust_net_points_at_its_side_twice_at_itself() -> None:
    probe = cosines(still(NonRobustMultiClass(), Clusters(k=4, d=32)))
    # mu_j + sum of the side = 2 mu_0 + mu_1: cosines 2/sqrt 5 and 1/sqrt 5.
    assert probe["on"].item() == pytest.approx(2 / 5**0.5)
    assert probe["off_max"].item() == pytest.approx(1 / 5**0.5)


def test_a_class_of_several_neurons_counts_as_their_mean() -> None:
    run = still(KClass(h=2), Clusters(k=2, d=8))
    mu = run.centres[0]
    w = torch.stack([mu[0], mu[1], 3 * mu[1], mu[1]])
    run = put(run, w=w[None])
    torch.testing.assert_close(equivalent(run.model)[0], torch.stack([mu.mean(0), 2 * mu[1]]))
    probe = cosines(run)
    assert probe["matrix"][0, 0].tolist() == pytest.approx([0.5**0.5, 0.0])
    assert probe["on_min"].item() == pytest.approx(0.5**0.5)


def test_on_pairs_follow_labels_or_classes() -> None:
    binary = still(TwoLayer(m=1), DATA).model
    assert on_pairs(binary)[:, 0].tolist() == [True, False, False, True, True]
    assert on_pairs(binary)[:, 1].tolist() == [False, True, True, False, False]
    coarse = still(KClass(labels=2), Clusters(k=4, d=8, positive=(1, 2))).model
    assert on_pairs(coarse).tolist() == [[False, True], [True, False], [True, False], [False, True]]
    assert torch.equal(on_pairs(trained_fine().model), torch.eye(4, dtype=torch.bool))


def test_scale_and_signal_do_not_matter() -> None:
    run = still(TwoLayer(m=2), Clusters(k=4, d=32, alpha=2.0))
    larger = put(run, **{n: 100 * p for n, p in run.params.items()})
    torch.testing.assert_close(cosines(run)["matrix"], cosines(larger)["matrix"])
