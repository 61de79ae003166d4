"""Active pairs and dead neurons, counted where they are known."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from lab import put, still, trained, trained_fine
from unmix.data.clusters import Clusters
from unmix.nets.constructed import FeatureAveraging
from unmix.nets.k_class import KClass
from unmix.nets.two_layer import TwoLayer
from unmix.probes.activation import activation

DATA = Clusters(k=3, d=32, sigma=0.0, sizes="balanced")


def test_averaging_is_on_for_its_own_and_only_at_zero_for_others() -> None:
    run = still(FeatureAveraging(bias_plus=-0.1, bias_minus=-0.1), DATA, n=30)
    probe = activation(run)
    assert (probe["own"].item(), probe["off"].item()) == (1.0, 0.0)
    assert (probe["dead"].item(), probe["dead_classes"].item()) == (0.0, 0.0)
    # 10 points a cluster; each neuron holds all or none of one.
    assert probe["start_counts"][0].tolist() == [[10, 0, 0], [0, 10, 10]]
    assert (probe["start_min_count"].item(), probe["start_own_none"].item()) == (0.0, 0.0)


def test_a_neuron_against_its_own_cluster_is_dead() -> None:
    run = still(KClass(h=2), DATA, n=30)
    mu = run.centres[0]
    # Class 0: one dead of two. Class 1: both alive. Class 2: both dead, though on for others.
    w = torch.stack([mu[0], -mu[0], mu[1], mu[1] + mu[0], -mu[2], mu[0] - mu[2]])
    probe = activation(put(run, w=w[None]))
    assert probe["dead_neurons"][0].tolist() == [0, 1, 0, 0, 1, 1]
    assert probe["dead"].item() == pytest.approx(0.5)
    assert probe["dead_classes"].item() == 1
    assert probe["own"].item() == pytest.approx(0.5)


def test_a_side_without_a_living_neuron_is_a_dead_class() -> None:
    run = still(TwoLayer(m=2), DATA, n=30)
    mu = run.centres[0]
    w = torch.stack([-mu[0], mu[1], mu[2], mu[1]])
    probe = activation(put(run, w=w[None], b=torch.full((1, 4), -1.0)))
    assert probe["dead_neurons"][0].tolist() == [1, 1, 0, 0]
    assert probe["dead_classes"].item() == 1


@pytest.mark.parametrize(
    ("shares", "first"),
    [
        ([1.0, 1.0, 1.0, 1.0], 0),
        ([0.5, 1.0, 1.0, 1.0], 10),
        ([0.5, 1.0, 0.9, 1.0], 30),
        ([1.0, 1.0, 0.9, 1.0], 30),
        ([1.0, 1.0, 1.0, 0.9], math.nan),
    ],
)
def test_all_on_from_is_the_first_step_of_an_unbroken_rest(shares: list, first: float) -> None:
    run = trained("train.record.schedule=linear", "train.record.points=4")
    column = torch.tensor([shares, [1.0] * 4]).double()
    trace = replace(run.trace, columns=run.trace.columns | {"active_own": column})
    found = activation(replace(run, trace=trace))["all_on_from"].tolist()
    assert run.trace.steps == (0, 10, 20, 30)
    assert found == pytest.approx([first, 0], nan_ok=True)


def test_never_all_on_is_nan() -> None:
    run = still(TwoLayer(m=2, sigma_w=1.0), Clusters(k=4, d=8), n=60)
    assert activation(run)["all_on_from"].isnan().all()


def test_shares_at_the_start_are_uniform() -> None:
    # sd 1/sqrt 12 and P(none of 10) = 1/11, over 4000 (neuron, cluster) pairs: +-1.5 % and +-5 %.
    run = still(KClass(h=10), Clusters(k=4, d=64, sizes="balanced"), n=40, seeds=tuple(range(100)))
    probe = activation(run)
    assert probe["start_own_none"].mean() == pytest.approx(1 / 11, rel=0.2)
    sd = (probe["start_counts"] / 10).std()
    # Counts are uniform on 0..10, whose sd is sqrt(10 * 12 / 12).
    assert sd * 10 == pytest.approx(math.sqrt(10), rel=0.05)


def test_the_end_and_the_recorded_end_agree() -> None:
    for run in (trained(), trained_fine()):
        probe, columns = activation(run), run.trace.columns
        torch.testing.assert_close(probe["own"], columns["active_own"][:, -1])
        torch.testing.assert_close(probe["off"], columns["active_off"][:, -1])
