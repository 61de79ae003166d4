"""Contributions and alignment: by hand on nets whose neurons are known, and where it has no say."""

from __future__ import annotations

import pytest
import torch

from lab import put, still, trained_fine
from unmix.data.clusters import Clusters
from unmix.errors import DataError
from unmix.nets.constructed import FeatureAveraging
from unmix.probes.contributions import contributions

DATA = Clusters(k=4, d=12, positive=(0, 1, 3), scale="unit")


def test_averaging_is_all_mean_and_no_subclass() -> None:
    found = contributions(still(FeatureAveraging(), DATA, seeds=(0, 1)))
    assert found["dominant"].tolist() == [2, 2]
    torch.testing.assert_close(found["q"].abs(), torch.tensor([[3**0.5, 1.0]] * 2).double())
    torch.testing.assert_close(found["to_mean"], torch.ones(2).double())
    # The one negative subclass is its label's mean; the positive mean has cosine 1/sqrt(3) to each.
    assert found["covered"].tolist() == [1, 1]
    wanted = (3**0.5 / 3**0.5 + 1) / (3**0.5 + 1)
    assert found["to_subclass"].tolist() == pytest.approx([wanted] * 2)
    assert found["to_subclass_min"].tolist() == pytest.approx([3**-0.5] * 2)


def test_neurons_of_the_wrong_label_and_small_ones_do_not_cover() -> None:
    run = still(FeatureAveraging(), DATA)
    mu = run.centres
    # The negative neuron along a positive centre; then a positive one of 0.9 % of its size.
    swapped = contributions(put(run, w=mu[:, [1, 0]], b=torch.zeros(1, 2)))
    assert swapped["covered"].tolist() == [1]
    small = contributions(put(run, w=torch.stack([0.009 * mu[:, 1], mu[:, 2]], 1)))
    assert small["dominant"].tolist() == [1]
    assert small["covered"].tolist() == [1]
    assert small["total"].tolist() == pytest.approx([1.009])


def test_a_net_with_several_outputs_is_refused() -> None:
    with pytest.raises(DataError, match="several outputs"):
        contributions(trained_fine())
