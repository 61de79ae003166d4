"""Transfer: what fools one net is tried on another, and judged there."""

from __future__ import annotations

import pytest
import torch

from lab import gaussian, put, still, times, trained, trained_fine
from unmix.attacks.base import attack
from unmix.attacks.minimum import MinimumNorm
from unmix.attacks.problem import problems
from unmix.attacks.threat import Threat
from unmix.attacks.transfer import Transfer, lent, transferred
from unmix.data.clusters import Clusters
from unmix.errors import AttackError
from unmix.nets.constructed import FeatureAveraging, FeatureDecoupling

RADII = (1.0, 2.0, 4.0)
SMALL = Clusters(k=4, d=32)
FINDER = MinimumNorm(steps=6, hops=0)
ATTACKS = (Transfer(by=FINDER),)


def test_a_net_that_lends_to_itself_gets_back_its_own_perturbations() -> None:
    run = trained()
    own = attack(run, [FINDER], RADII, points=4).smallest
    found = transferred(run, run, RADII, points=4, attacks=ATTACKS)
    assert found.names == ("transfer",)
    torch.testing.assert_close(found.smallest, own, rtol=1e-6, atol=0)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_what_is_reported_fools_the_attacked_net_along_the_lenders_direction(norm) -> None:
    run, source = still(FeatureDecoupling(), SMALL, test=6), still(FeatureAveraging(), SMALL)
    threat = Threat(norm=norm)
    (problem,) = lent(problems(run, threat, 4.0, 6), source)
    held = ATTACKS[0].judged(problem, RADII)
    assert held.unverified == 0
    assert held.radius.isfinite().any()
    reported = held.radius.isfinite() & (held.radius > 0)
    x, y = run.fresh(6).x.double(), run.fresh(6).y
    wrong = run.model.double().predict(x + held.delta) != y
    assert wrong[0][reported].all()
    torch.testing.assert_close(threat.length(held.delta)[reported], held.radius[reported])
    if norm == "l2":
        # Of the averaging net the shortest way is the average direction, for every point.
        u = problem.data.signs @ problem.centres
        cosine = torch.cosine_similarity(held.delta[reported], u.expand_as(held.delta[reported]))
        assert (cosine.abs() > 0.99).all()


def test_it_never_beats_the_same_search_on_the_net_itself() -> None:
    run, source = trained("train.steps=300"), gaussian(trained(), seed=2)
    found = transferred(run, source, RADII, points=6, attacks=ATTACKS, control=[MinimumNorm()])
    own = found.control["min-norm"]
    assert (own <= found.smallest * (1 + 1e-6)).all()


def test_one_seed_may_lend_to_all_and_replicas_share_nothing() -> None:
    run, source = trained(), gaussian(trained("seeds=[1]"), seed=2)
    both = transferred(run, source, RADII, points=4, attacks=ATTACKS).smallest
    alone = transferred(trained("seeds=[1]"), source, RADII, points=4, attacks=ATTACKS).smallest
    torch.testing.assert_close(both[1:], alone, rtol=1e-6, atol=0)


def test_the_scale_of_either_net_does_not_matter() -> None:
    run, source = gaussian(trained(), seed=5), gaussian(trained(), seed=6)
    one = transferred(run, source, RADII, points=3, attacks=ATTACKS)
    other = transferred(times(run, 1e3), times(source, 1e-2), RADII, points=3, attacks=ATTACKS)
    torch.testing.assert_close(other.smallest, one.smallest, rtol=1e-6, atol=0)


def test_a_lender_that_is_wrong_everywhere_lends_nothing() -> None:
    run = still(FeatureAveraging(), SMALL, test=6)
    against = put(run, w=run.params["w"].flip(1), b=run.params["b"])
    found = transferred(run, against, RADII, attacks=ATTACKS)
    assert found.smallest.isinf().all()
    assert found.unverified == 0


def test_sources_that_do_not_fit_are_refused() -> None:
    run = trained()
    with pytest.raises(AttackError, match="3 seeds, the attacked run 2"):
        transferred(run, trained("seeds=[0, 1, 2]"), RADII)
    with pytest.raises(AttackError, match=r"shape \(32,\) here and \(16,\) at the source"):
        transferred(run, still(FeatureAveraging(), Clusters(k=4, d=16)), RADII)
    torn = put(run, w=torch.full_like(run.params["w"], torch.nan), b=run.params["b"])
    with pytest.raises(AttackError, match="NaN or infinite"):
        transferred(run, torn, RADII)
    with pytest.raises(AttackError, match="at least one point"):
        transferred(run, run, RADII, points=0)
    with pytest.raises(AttackError, match="none of these attacks fits"):
        attack(run, [Transfer()], RADII)
    assert transferred(run, trained_fine(), RADII, points=2, attacks=ATTACKS).names
