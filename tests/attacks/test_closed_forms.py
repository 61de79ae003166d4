"""The suite finds the closed-form radii of constructed nets at noiseless centres (spec 1.6).

Radii are over |mu|. Attacks give upper bounds, so they may exceed the truth by 1e-3, and by no more
than rounding fall below it.
"""

from __future__ import annotations

from functools import cache

import pytest
import torch

from lab import still, times
from unmix.attacks.base import Attacked, attack
from unmix.attacks.directions import AverageDirection
from unmix.attacks.suite import STANDARD, SuiteL2, robustness
from unmix.data.clusters import Clusters
from unmix.experiment import Run
from unmix.nets.base import Net
from unmix.nets.constructed import FeatureAveraging, FeatureDecoupling, NonRobustMultiClass

ABOVE, BELOW = 1e-3, 1e-9
BEST = 1 - 1 / 2**0.5


@cache
def attacked(net: Net, data: Clusters, points: int = 8) -> tuple[Run, Attacked]:
    run = still(net, data, test=points)
    return run, robustness(run, STANDARD.grid)


def radii(net: Net, data: Clusters) -> dict[float, torch.Tensor]:
    """Label -> radii over alpha |mu| of its points."""
    run, found = attacked(net, data)
    assert found.unverified == 0
    relative, y = found.smallest[0] / (data.alpha * data.unit), run.test_batch.y[0]
    return {label: relative[y == label] for label in (1.0, -1.0)}


def assert_is(found: torch.Tensor, truth: float) -> None:
    assert len(found) > 0
    assert found.min() >= truth - BELOW
    assert found.max() <= truth + ABOVE


def noiseless(k: int, positive: tuple = (), **fields) -> Clusters:
    return Clusters(k=k, d=32, sigma=0.0, positive=positive or None, **fields)


@pytest.mark.parametrize(
    "data",
    [
        noiseless(4),
        noiseless(4, (2,)),
        noiseless(10, (1, 4, 9)),
        noiseless(5, alpha=2.0, scale="unit"),
    ],
    ids=["2 of 4", "1 of 4", "3 of 10", "2 of 5, unit"],
)
def test_averaging_has_radius_one_over_root_k_for_any_partition(data: Clusters) -> None:
    for found in radii(FeatureAveraging(), data).values():
        assert_is(found, data.k**-0.5)


@pytest.mark.parametrize("k", [4, 10])
def test_decoupling_with_half_bias_dies_half_way_or_holds(k: int) -> None:
    found = radii(FeatureDecoupling(beta=0.5), noiseless(k))
    # y = +1: the own neuron is off at 1/2, f = 0 and sgn(0) = -1.
    assert_is(found[1.0], 0.5)
    assert_is(found[-1.0], 0.5**0.5)


@pytest.mark.parametrize("d", [32, 768])
def test_an_edge_on_a_grid_point_is_crossed_on_the_real_net(d: int) -> None:
    # With k = 4 all neurons switch at once at |mu| along the average direction, where a step of
    # the grid ends: rounding alone decides there whether y = -1 is fooled.
    data = Clusters(k=4, d=d, sigma=0.0)
    run = still(FeatureDecoupling(beta=0.5), data, test=8, seeds=tuple(range(5)))
    found = attack(run, [AverageDirection()], [data.unit])
    assert found.unverified == 0
    negative = run.test_batch.y < 0
    edge = found.by_attack["average-direction"][negative] / data.unit
    torch.testing.assert_close(edge, torch.ones_like(edge), rtol=1e-10, atol=0)


def test_decoupling_with_the_best_bias_reaches_the_best_radius_for_both_labels() -> None:
    data = noiseless(4)
    for found in radii(FeatureDecoupling(beta=BEST), data).values():
        assert_is(found, 0.5**0.5)
        assert_is(found, data.best_radius / data.unit)


@pytest.mark.parametrize(("k", "positive"), [(4, ()), (5, (0,))])
def test_decoupled_weights_without_bias_are_no_better_than_averages(k: int, positive) -> None:
    data = noiseless(k, positive)
    found = radii(FeatureDecoupling(beta=0.0), data)
    assert_is(found[1.0], (1 + len(data.minus)) ** -0.5)
    assert_is(found[-1.0], (1 + len(data.plus)) ** -0.5)


@pytest.mark.parametrize("k", [4, 10])
def test_the_non_robust_net(k: int) -> None:
    # The closed form is that of hard maxima; log-sum-exp over k outputs of size d moves it by
    # at most ln(k)/d.
    data = Clusters(k=k, d=3072, sigma=0.0)
    truth = 2 / (k + 6) ** 0.5
    for found in radii(NonRobustMultiClass(), data).values():
        assert len(found) > 0
        assert (found - truth).abs().max() <= ABOVE


def test_along_the_average_direction_the_non_robust_net_holds_a_little_longer() -> None:
    k = 10
    _, found = attacked(NonRobustMultiClass(), Clusters(k=k, d=3072, sigma=0.0))
    along = found.mean_radius("average-direction")
    assert along.item() == pytest.approx(2 * k**0.5 / (k + 2), abs=1e-3)


def test_the_average_direction_is_exact_for_averaging() -> None:
    _, found = attacked(FeatureAveraging(), noiseless(10, (1, 4, 9)))
    own = found.by_attack["average-direction"] / found.unit
    torch.testing.assert_close(own, torch.full_like(own, 10**-0.5), rtol=1e-7, atol=0)


def test_the_nearest_opposite_is_exact_for_the_best_decoupling() -> None:
    _, found = attacked(FeatureDecoupling(beta=BEST), noiseless(4))
    own = found.by_attack["nearest-opposite"] / found.unit
    torch.testing.assert_close(own, torch.full_like(own, 0.5**0.5), rtol=1e-6, atol=0)


def test_pgd_from_the_clean_point_is_blind_where_the_own_neuron_dies_first() -> None:
    # y = -1: at 1/2 the own neuron is off, f = 0 counts as right, and there is no gradient left.
    run, found = attacked(FeatureDecoupling(beta=0.5), noiseless(4))
    negative = run.test_batch.y < 0
    assert found.control["pgd-clean-start"][negative].isinf().all()
    assert found.smallest[negative].isfinite().all()


def test_random_directions_are_harmless() -> None:
    # In 32 dimensions a random step must be some 3 times as long as the average direction.
    _, found = attacked(FeatureAveraging(), noiseless(4))
    assert (found.control["random"] > 1.5 * found.smallest).all()


@pytest.mark.parametrize("scale", [1e-2, 1e3])
@pytest.mark.parametrize(
    ("net", "d"), [(FeatureDecoupling(beta=0.0), 32), (NonRobustMultiClass(), 3072)]
)
def test_the_scale_of_the_logits_does_not_matter(net: Net, d: int, scale: float) -> None:
    data = Clusters(k=4, d=d, sigma=0.0)
    run, found = attacked(net, data)
    scaled = SuiteL2().curve(times(run, scale), found.radii)
    # A binary net is the same classifier; softmax nets are up to ln(k) over the logits.
    slack = 1e-6 if run.model.class_signs is None else 1.4 / (d * min(scale, 1))
    assert (scaled.smallest - found.smallest).abs().max() / found.unit <= slack
    for name, radius in found.by_attack.items():
        mine, wanted = scaled.by_attack[name] / found.unit, radius / found.unit
        if name == "fgm" or (name == "pgd" and slack > 1e-6):
            # At the radii of a grid a step may pass by what one on another net meets.
            continue
        assert torch.equal(mine.isinf(), wanted.isinf())
        both = wanted.isfinite()
        # At a centre rounding decides between equal ways, and steps of 1/16 radius differ.
        tolerance = slack + (ABOVE if name == "pgd" else 0)
        assert (mine[both] - wanted[both]).abs().max() <= tolerance, name
