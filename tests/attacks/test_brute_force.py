"""Random binary nets in the plane: the suite against a dense grid of exact rays."""

from __future__ import annotations

import pytest

from exact import radius
from lab import gaussian, still
from unmix.attacks.suite import SuiteL2
from unmix.data.clusters import Clusters
from unmix.nets.two_layer import TwoLayer

PLANE = Clusters(k=2, d=2, sigma=0.6)
REACH = 3.0
SHARES = (0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0, 3.0)


@pytest.mark.parametrize("m", [1, 2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_the_suite_is_never_below_and_hardly_above_the_truth(seed: int, m: int) -> None:
    run = gaussian(still(TwoLayer(m=m), PLANE, test=12), seed=10 * m + seed)
    found = SuiteL2().curve(run, [r * PLANE.unit for r in SHARES])
    assert found.unverified == 0
    batch, reached = run.test_batch, 0
    right = run.model.predict(batch.x) == batch.y
    for i in range(12):
        mine = float(found.smallest[0, i])
        if not right[0, i]:
            assert mine == 0
            continue
        truth = radius(run.model, batch.x[0, i].numpy(), float(batch.y[0, i]), REACH * PLANE.unit)
        assert mine >= truth * (1 - 1e-6)
        if truth < 2.9 * PLANE.unit:
            assert mine <= truth * 1.02
            reached += 1
    assert reached > 0
