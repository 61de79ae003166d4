"""Closed-form directions, along which the answer is one division."""

from __future__ import annotations

import pytest
import torch

from lab import still
from unmix.attacks.directions import (
    AverageDirection,
    LabelDirection,
    NearestOpposite,
    RandomDirections,
)
from unmix.attacks.problem import REACH, Problem, problems
from unmix.attacks.threat import Threat
from unmix.data.clusters import Clusters
from unmix.data.sparse_code import SparseCode
from unmix.nets.constructed import FeatureAveraging, FeatureDecoupling
from unmix.nets.symmetric import Symmetric


def problem(run, r: int = 0) -> Problem:
    return problems(run, Threat(), 1.0, run.experiment.samples.test)[r]


NOISY = Clusters(k=4, d=64, alpha=1.5, sigma=0.5)


def test_the_average_direction_is_multiplied_by_the_label() -> None:
    run = still(FeatureAveraging(), NOISY, test=20)
    found = AverageDirection().judged(problem(run), ())
    u = torch.einsum("k,kd->d", NOISY.signs, run.centres[0])
    u = u / u.norm()
    cosine = (found.delta @ u) / found.delta.norm(dim=-1)
    torch.testing.assert_close(cosine, -run.test_batch.y[0])
    # While both neurons are on, f = <s_+ - s_-, x> falls by |U| a unit length: radius f / |U|.
    z = run.model.preactivations(run.test_batch.x)[0]
    margin = (run.test_batch.y[0] * (z[:, 0] - z[:, 1])).abs()
    both = (z > 0).all(1)
    assert both.any()
    wanted = (margin / (4**0.5 * NOISY.unit))[both]
    torch.testing.assert_close(found.radius[both], wanted, rtol=1e-6, atol=0)


def test_the_nearest_opposite_tries_every_opposite_centre_and_no_own_one() -> None:
    run = still(FeatureDecoupling(beta=0.3), NOISY, test=20)
    found = NearestOpposite().judged(problem(run), ())
    mu, batch = run.centres[0], run.test_batch
    for i in range(20):
        own = mu[batch.cluster[0, i]]
        cosines = []
        for j in range(4):
            step = mu[j] - own
            cosines.append(
                float(found.delta[i] @ step / found.delta[i].norm() / (step.norm() + 1e-300))
            )
        best = max(range(4), key=lambda j: cosines[j])
        assert cosines[best] == pytest.approx(1, abs=1e-9)
        assert NOISY.signs[best] != batch.y[0, i]


def test_random_directions_differ_by_point_draw_and_seed() -> None:
    run = still(FeatureAveraging(), Clusters(k=2, d=4, sigma=0.0), test=30, seeds=(0, 1))
    one, more = (RandomDirections(draws=n).judged(problem(run), ()) for n in (1, 16))
    assert (more.radius <= one.radius * (1 + 1e-9)).all()
    assert (more.radius < one.radius).any()
    assert not torch.equal(one.radius, RandomDirections(draws=1).judged(problem(run, 1), ()).radius)
    # An unsuccessful direction is no perturbation.
    assert (one.delta[one.radius.isinf()] == 0).all()


@pytest.mark.parametrize("attack", [AverageDirection(), NearestOpposite(), RandomDirections()])
def test_nothing_is_followed_beyond_its_reach(attack) -> None:
    data = Clusters(k=4, d=64, sigma=0.0)
    # One class is never left: biases keep f positive everywhere near.
    run = still(FeatureAveraging(bias_plus=1e3), data, test=12)
    found = attack.judged(problem(run), ())
    positive = run.test_batch.y[0] > 0
    assert found.radius[positive].isinf().all()
    assert found.radius[~positive].max() <= REACH * data.unit * (1 + 1e-9)


def test_the_universal_direction_of_sparse_codes_lowers_the_label_score() -> None:
    data = SparseCode(d=30, k=4.0)
    run = still(Symmetric(m=30, initial="pure"), data, test=12)
    held = LabelDirection().judged(problem(run), ())
    u = data.dictionary([0])[0] @ data.label_vector([0])[0]
    found = held.radius.isfinite() & (held.radius > 0)
    assert found.any()
    cosine = held.delta[found] @ u / (u.norm() * held.radius[found])
    torch.testing.assert_close(cosine, -run.test_batch.y[0][found])
    moved = run.test_batch.x + held.delta
    assert (run.classifier.predict(moved)[0] != run.test_batch.y[0])[found].all()


@pytest.mark.parametrize("norm", ["linf", "l1"])
def test_in_other_norms_a_direction_is_tried_as_its_steepest_step_too(norm: str) -> None:
    run = still(FeatureAveraging(), NOISY, test=6)
    (mine,) = problems(run, Threat(norm=norm), 1.0, 6)
    compass, every = AverageDirection().tried(mine), torch.arange(6)
    plain, steep = (compass.of(every, torch.full((6,), side)) for side in (0, 1))
    lengths = mine.threat.length(torch.cat([plain, steep]))
    torch.testing.assert_close(lengths, torch.ones(12, dtype=torch.float64))
    u = -run.test_batch.y[0].unsqueeze(1) * (NOISY.signs @ run.centres[0])
    assert ((steep * u).sum(1) >= (plain * u).sum(1)).all()
