"""Clusters: exact geometry, partitions, sizes, scales, and refusals that say what is wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from unmix.attacks.gradient import PGD
from unmix.attacks.suite import SuiteL2
from unmix.data.clusters import Clusters
from unmix.errors import SpecError
from unmix.experiment import Experiment, Run, Samples
from unmix.experiment import run as train
from unmix.nets.constructed import FeatureAveraging
from unmix.nets.k_class import KClass
from unmix.train.descent import GradientDescent, NoTraining


@pytest.mark.parametrize("scale", ["sqrt-d", "unit"])
@pytest.mark.parametrize("cosine", [0.0, 1e-5, 0.3, 0.999, -0.15])
@pytest.mark.parametrize(("k", "d"), [(4, 32), (5, 5), (2, 2), (6, 500)])
def test_centres_have_their_lengths_and_cosines(k: int, d: int, cosine: float, scale: str) -> None:
    data = Clusters(k=k, d=d, cosine=cosine, scale=scale)
    wanted = (1 - cosine) * torch.eye(k, dtype=torch.float64) + cosine
    length = math.sqrt(d) if scale == "sqrt-d" else 1.0
    assert data.unit == pytest.approx(length, rel=1e-15)
    for mu in data.centres((0, 7)):
        torch.testing.assert_close(mu @ mu.T / length**2, wanted, rtol=0, atol=1e-10)


def test_every_seed_has_its_own_centres() -> None:
    one, other = Clusters(k=4, d=32).centres((0, 1))
    assert (one @ other.T / 32).abs().max() < 0.9


def test_centres_are_uniform_not_aligned_with_axes() -> None:
    first = Clusters(k=2, d=3).centres(range(400))[:, 0]
    # Mean 0 and covariance I of a uniform direction of length sqrt(3); sd of an entry's mean 0.05.
    assert first.mean(0).abs().max() < 0.2
    assert (first.T @ first / 400 - torch.eye(3)).abs().max() < 0.25


@pytest.mark.parametrize(
    ("given", "plus", "minus", "balance"),
    [
        ({}, (0, 1), (2, 3), 1.0),
        ({"positive": (1, 3)}, (1, 3), (0, 2), 1.0),
        ({"negative": (0,)}, (1, 2, 3), (0,), 3.0),
        ({"positive": (2,), "negative": (3, 0, 1)}, (2,), (3, 0, 1), 3.0),
    ],
)
def test_partitions(given, plus, minus, balance) -> None:
    data = Clusters(k=4, d=8, **given)
    assert (data.plus, data.minus, data.balance) == (plus, minus, balance)
    assert data.signs.tolist() == [1.0 if j in plus else -1.0 for j in range(4)]
    batch = data.sample((0,), 200, "train")
    assert torch.equal(batch.y, data.signs[batch.cluster])


def test_an_odd_number_of_clusters_leaves_one_more_on_the_negative_side() -> None:
    assert (Clusters(k=5, d=8).plus, Clusters(k=5, d=8).minus) == ((0, 1), (2, 3, 4))


@pytest.mark.parametrize("n", [1, 3, 4, 40, 43])
def test_balanced_sizes_are_exact(n: int) -> None:
    batch = Clusters(k=4, d=8, sizes="balanced").sample((0, 1), n, "train")
    for cluster in batch.cluster:
        counts = torch.bincount(cluster, minlength=4)
        assert counts.tolist() == [n // 4 + (j < n % 4) for j in range(4)]


@pytest.mark.parametrize("weights", [(0.5, 0.25, 0.25), (7.0, 2.0, 1.0), (0.61, 0.3, 0.09)])
def test_balanced_sizes_follow_the_weights_to_less_than_one_point(weights) -> None:
    data = Clusters(k=3, d=8, sizes="balanced", weights=weights)
    cluster = data.sample((0,), 300, "train").cluster[0].numpy()
    share = np.array(weights) / sum(weights)
    for n in range(1, 301):
        counts = np.bincount(cluster[:n], minlength=3)
        assert np.abs(counts - n * share).max() < 1


def test_weights_of_any_sum_are_probabilities() -> None:
    counts = torch.zeros(3)
    data = Clusters(k=3, d=3, weights=(6.0, 3.0, 1.0))
    for cluster in data.sample(range(10), 1000, "train").cluster:
        counts += torch.bincount(cluster, minlength=3)
    # sd of a share over 10000 points is at most 0.005.
    torch.testing.assert_close(counts / 10_000, torch.tensor([0.6, 0.3, 0.1]), rtol=0, atol=0.02)


@pytest.mark.parametrize("scale", ["sqrt-d", "unit"])
def test_signal_and_noise_have_their_scales(scale: str) -> None:
    data = Clusters(k=4, d=400, alpha=0.5, sigma=2.0, scale=scale)
    batch = data.sample((0,), 100, "train")
    noise = data.noise(batch, (0,))
    # |s sigma xi| is sigma |mu| to 1/sqrt(2d) = 3.5 %; its mean over 100 points to 0.4 %.
    assert noise.norm(dim=-1).mean() == pytest.approx(2.0 * data.unit, rel=0.02)
    own = data.centres((0,))[0, batch.cluster[0]]
    torch.testing.assert_close(batch.x[0] - noise[0], 0.5 * own)
    # Noise of a point is a standard normal over its scale: kurtosis 3, no mean.
    z = noise / (2.0 * data.unit / 20)
    assert z.mean().abs() < 0.02
    assert (z**4).mean() == pytest.approx(3, rel=0.1)


def test_without_noise_points_are_centres() -> None:
    data = Clusters(k=4, d=8, sigma=0.0, alpha=3.0)
    batch = data.sample((0,), 20, "test")
    torch.testing.assert_close(batch.x[0], 3 * data.centres((0,))[0, batch.cluster[0]])
    assert data.noise(batch, (0,)).abs().max() < 1e-12


@pytest.mark.parametrize("cosine", [0.0, 0.3, -0.2])
def test_the_best_radius_is_half_way_to_an_opposite_centre(cosine: float) -> None:
    data = Clusters(k=4, d=32, alpha=1.5, cosine=cosine, scale="unit")
    mu = 1.5 * data.centres((0,))[0]
    assert data.best_radius == pytest.approx(float((mu[0] - mu[3]).norm() / 2), rel=1e-12)


SQRT = Clusters(k=4, d=32, sigma=0.7, alpha=1.3)
UNIT = Clusters(k=4, d=32, sigma=0.7, alpha=1.3, scale="unit")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_both_papers_normalisations_are_one_class(dtype: torch.dtype) -> None:
    one, other = (data.sample((0, 1), 60, "train", dtype) for data in (SQRT, UNIT))
    assert torch.equal(one.cluster, other.cluster)
    assert torch.equal(one.y, other.y)
    digits = 4 * torch.finfo(dtype).eps
    torch.testing.assert_close(other.x, one.x / math.sqrt(32), rtol=0, atol=digits)
    mu = [data.centres((0, 1), dtype) for data in (SQRT, UNIT)]
    torch.testing.assert_close(mu[1], mu[0] / math.sqrt(32), rtol=0, atol=digits)


def both(net, other_net, training, other_training) -> list[Run]:
    rest = {"samples": Samples(train=60, test=12), "seeds": (0, 1)}
    return [
        train(Experiment(data=data, net=n, train=t, **rest))
        for data, n, t in ((SQRT, net, training), (UNIT, other_net, other_training))
    ]


@pytest.mark.parametrize("engine", ["reference", "gram"])
def test_training_is_the_same_in_both_normalisations(engine: str) -> None:
    """w' = sqrt(d) w and eta' = d eta. Without biases: theirs would need a step of their own."""
    d = 32
    one, other = both(
        KClass(labels=2, h=3, sigma_w=1e-3),
        KClass(labels=2, h=3, sigma_w=1e-3 * math.sqrt(d)),
        GradientDescent(eta=0.05, steps=60, engine=engine),
        GradientDescent(eta=0.05 * d, steps=60, engine=engine),
    )
    torch.testing.assert_close(other.params["w"], math.sqrt(d) * one.params["w"], rtol=1e-9, atol=0)
    decisions = [run.model.decision(run.fresh(500).x) for run in (one, other)]
    torch.testing.assert_close(decisions[1], decisions[0], rtol=1e-9, atol=1e-12)
    assert 0.9 < float(one.model.accuracy(one.fresh(500)).mean()) <= 1


@pytest.mark.usefixtures("unchecked")
def test_radii_are_the_same_in_both_normalisations() -> None:
    nets = [KClass(labels=2, h=3, sigma_w=s) for s in (1e-3, 1e-3 * math.sqrt(32))]
    training = [GradientDescent(eta=eta, steps=60) for eta in (0.05, 0.05 * 32)]
    suite = SuiteL2(pgd=PGD(steps=10, restarts=4))
    relative = []
    for run in both(*nets, *training):
        found = suite.curve(run, [r * run.data.unit for r in (0.2, 0.4, 0.8, 1.2)], points=3)
        relative.append(found.smallest / found.unit)
    assert relative[0].isfinite().all()
    torch.testing.assert_close(relative[1], relative[0], rtol=1e-6, atol=0)


def test_constructed_nets_are_the_same_in_both_normalisations() -> None:
    biased = FeatureAveraging(bias_plus=0.2, bias_minus=-0.1)
    one, other = both(biased, biased, NoTraining(), NoTraining())
    scale = SQRT.unit**2 / UNIT.unit**2
    decisions = [run.model.decision(run.test_batch.x) for run in (one, other)]
    torch.testing.assert_close(scale * decisions[1], decisions[0])


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"k": 9, "d": 8}, r"k=9 orthogonal centres do not fit into d=8: need k <= d"),
        ({"positive": ()}, "empty partition: each of positive and negative needs a cluster"),
        ({"positive": (0, 1, 2, 3)}, "empty partition"),
        ({"positive": (0, 1), "negative": (1, 2, 3)}, r"overlapping partition: \[1\]"),
        ({"positive": (0,), "negative": (1, 2)}, r"must hold each of 0\.\.3 once and nothing"),
        ({"positive": (0, 9)}, r"must hold each of 0\.\.3 once and nothing else"),
        ({"positive": (-1,)}, r"must hold each of 0\.\.3 once and nothing else"),
        ({"positive": (0, 0, 1)}, r"must hold each of 0\.\.3 once and nothing else"),
        ({"cosine": -1 / 3}, r"cosine must exceed -1/\(k-1\) = -0\.3333"),
        ({"cosine": 1.0}, "cosine: Input should be less than 1"),
        ({"weights": (1.0, 2.0)}, "weights must be k=4 positive numbers"),
        ({"weights": (1.0, 2.0, 0.0, 1.0)}, "weights must be k=4 positive numbers"),
        ({"weights": (1.0, 2.0, -1.0, 1.0)}, "weights must be k=4 positive numbers"),
        ({"k": 1}, "k: Input should be greater than or equal to 2"),
        ({"alpha": 0.0}, "alpha: Input should be greater than 0"),
    ],
)
def test_what_cannot_be_is_refused(fields: dict, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        Clusters(**({"k": 4, "d": 8} | fields))


def test_groups_of_all_labels_are_the_clusters() -> None:
    assert Clusters(k=6, d=8).groups(6).tolist() == [0, 1, 2, 3, 4, 5]
    assert Clusters(k=6, d=8).groups(2).tolist() == [0, 0, 0, 1, 1, 1]
    assert Clusters(k=6, d=8).groups(4).tolist() == [0, 0, 1, 2, 2, 3]


def test_groups_stay_within_their_side() -> None:
    data = Clusters(k=6, d=8, positive=(5, 1))
    assert data.groups(3).tolist() == [1, 0, 1, 2, 2, 0]
    assert data.groups(6).tolist() == [2, 1, 3, 4, 5, 0]
    for labels in (3, 6):
        group = data.groups(labels)
        for label in range(labels):
            assert len(set(data.signs[group == label].tolist())) == 1


@pytest.mark.parametrize(("k", "labels"), [(6, 3), (6, 5), (10, 12), (10, 11), (6, 7)])
def test_labels_that_cannot_be_shared_out_are_refused(k: int, labels: int) -> None:
    with pytest.raises(SpecError, match=f"{labels} labels cannot be shared fairly"):
        Clusters(k=k, d=12).groups(labels)
    with pytest.raises(SpecError, match="cannot be shared fairly"):
        Experiment(data=Clusters(k=k, d=12), net=KClass(labels=labels), train=NoTraining())
