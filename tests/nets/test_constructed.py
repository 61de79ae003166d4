"""The constructed classifiers equal the paper's formulas, written with its sums and means."""

from __future__ import annotations

import pytest
import torch

from lab import still
from unmix.data.clusters import Clusters
from unmix.nets.constructed import FeatureAveraging, FeatureDecoupling, NonRobustMultiClass

WORLDS = [
    Clusters(k=4, d=16),
    Clusters(k=5, d=16, positive=(4, 1, 0)),
    Clusters(k=3, d=16, negative=(1,), cosine=0.2, scale="unit", alpha=1.5),
]
IDS = ["plain", "three to two", "unit, oblique"]


def points(run) -> torch.Tensor:
    """Clean points, and points far from everything."""
    batch = run.test_batch.x
    return torch.cat([batch, 3 * batch.flip(-1)], 1)


@pytest.mark.parametrize("data", WORLDS, ids=IDS)
def test_averaging_is_the_size_of_a_side_times_its_mean(data: Clusters) -> None:
    run = still(FeatureAveraging(), data, seeds=(0, 3))
    x, mu = points(run), run.centres
    wanted = 0
    for sign, side in ((1, data.plus), (-1, data.minus)):
        mean = torch.stack([mu[:, j] for j in side]).mean(0)
        wanted = wanted + sign * len(side) * torch.einsum("rnd,rd->rn", x, mean).clamp_min(0)
    torch.testing.assert_close(run.model.decision(x), wanted)


@pytest.mark.parametrize("data", WORLDS, ids=IDS)
def test_biases_of_averaging_are_in_units_of_a_squared_centre(data: Clusters) -> None:
    run = still(FeatureAveraging(bias_plus=0.3, bias_minus=-0.2), data)
    x, mu = points(run), run.centres[0]
    sums = [mu[list(side)].sum(0) for side in (data.plus, data.minus)]
    b = [0.3 * data.unit**2, -0.2 * data.unit**2]
    wanted = (x[0] @ sums[0] + b[0]).clamp_min(0) - (x[0] @ sums[1] + b[1]).clamp_min(0)
    torch.testing.assert_close(run.model.decision(x)[0], wanted)


@pytest.mark.parametrize("beta", [0.0, 0.2929, 0.5])
@pytest.mark.parametrize("data", WORLDS, ids=IDS)
def test_decoupling_is_a_signed_sum_over_centres(data: Clusters, beta: float) -> None:
    run = still(FeatureDecoupling(beta=beta), data)
    x, mu = points(run)[0], run.centres[0]
    wanted = torch.zeros(len(x), dtype=torch.float64)
    for j in range(data.k):
        part = (x @ mu[j] - beta * float(mu[j] @ mu[j])).clamp_min(0)
        wanted += part if j in data.plus else -part
    torch.testing.assert_close(run.model.decision(x[None])[0], wanted)


@pytest.mark.parametrize("data", WORLDS, ids=IDS)
def test_the_non_robust_net_adds_its_sides_centres_to_its_own(data: Clusters) -> None:
    run = still(NonRobustMultiClass(), data)
    x, mu = points(run)[0], run.centres[0]
    outputs = run.model.outputs(x[None])[0]
    for j in range(data.k):
        side = data.plus if j in data.plus else data.minus
        weight = mu[j] + sum(mu[i] for i in side)
        torch.testing.assert_close(outputs[:, j], (x @ weight).clamp_min(0))
    assert run.experiment.net.classes(data).tolist() == list(range(data.k))


@pytest.mark.parametrize("net", [FeatureAveraging(), FeatureDecoupling(), NonRobustMultiClass()])
def test_all_of_them_classify_the_data(net) -> None:
    run = still(net, Clusters(k=4, d=256), test=500, seeds=(0, 1))
    assert run.model.accuracy(run.test_batch).min() == 1
