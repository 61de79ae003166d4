"""How many features a neuron mixes, on weights that are known."""

from __future__ import annotations

import math

import pytest
import torch

from lab import gaussian, put, still, times, trained, trained_fine
from unmix.data.clusters import Clusters
from unmix.data.patches import Patches
from unmix.data.sparse_code import SparseCode
from unmix.nets.constructed import FeatureAveraging, FeatureDecoupling
from unmix.nets.patch_cnn import RobustMinimum
from unmix.nets.symmetric import Symmetric
from unmix.probes.mixtures import mixtures, participation

DATA = Clusters(k=6, d=24, positive=(0, 1))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_equal_shares_of_n_features_count_as_n(n: int) -> None:
    held = torch.zeros(1, 1, 7, dtype=torch.float64)
    held[..., :n] = -3e-160
    assert participation(held).item() == pytest.approx(n)


def test_averaging_mixes_a_label_and_decoupling_nothing() -> None:
    averaging = mixtures(still(FeatureAveraging(), DATA))
    # Neurons of length sqrt(2) and 2 in units of |mu|, which mix two centres and four.
    weights = (math.sqrt(2), math.sqrt(4))
    mean = sum(n * v for n, v in zip((2, 4), weights, strict=True)) / sum(weights)
    assert averaging["features"].item() == pytest.approx(mean)
    assert averaging["in_span"].item() == pytest.approx(1)
    decoupling = mixtures(still(FeatureDecoupling(), DATA))
    assert decoupling["features"].item() == pytest.approx(1)
    assert decoupling["closest"].item() == pytest.approx(1)


def test_correlated_centres_are_told_apart() -> None:
    oblique = Clusters(k=6, d=24, cosine=0.5)
    assert mixtures(still(FeatureDecoupling(), oblique))["features"].item() == pytest.approx(1)


def test_it_agrees_with_plain_loops() -> None:
    run = gaussian(trained())
    found, mu = mixtures(run), run.centres / run.data.unit
    for r in range(run.replicas):
        total = weight = 0.0
        for neuron in range(run.params["w"].shape[1]):
            w = run.params["w"][r, neuron]
            a = [float(w @ m) for m in mu[r]]
            say = float(w.norm())
            total += say * sum(v**2 for v in a) ** 2 / sum(v**4 for v in a)
            weight += say
        assert found["features"][r].item() == pytest.approx(total / weight, rel=1e-10)


def test_scale_does_not_matter_and_silent_neurons_do_not_count() -> None:
    run = trained_fine()
    same = mixtures(times(run, 1e-3))
    torch.testing.assert_close(same["features"], mixtures(run)["features"])
    w = run.params["w"].clone()
    w[:, 0] = 0
    assert torch.isfinite(mixtures(put(run, w=w))["features"]).all()


def test_a_pure_net_on_sparse_codes_holds_one_feature_a_neuron() -> None:
    data = SparseCode(d=20, k=3, basis="haar")
    pure = still(Symmetric(m=40, initial="pure"), data, seeds=(0, 1))
    found = mixtures(pure)
    torch.testing.assert_close(found["features"], torch.ones(2).double())
    random = mixtures(still(Symmetric(m=40), data))["features"].item()
    # E|w|^4 / E sum w_j^4 = (d + 2)/3 for a Gaussian neuron.
    assert random == pytest.approx(22 / 3, rel=0.2)


def test_a_patch_net_of_robust_features_alone_holds_one() -> None:
    run = still(RobustMinimum(), Patches(k=2, d=12, patches=4))
    assert mixtures(run)["features"].item() == pytest.approx(1)


def test_training_on_two_labels_mixes_more_than_on_one_a_cluster() -> None:
    assert (mixtures(trained())["features"] > 1.8).all()
    assert (mixtures(trained_fine())["features"] < 1.2).all()
