"""A batch is what it says, or it is refused."""

from __future__ import annotations

import pytest
import torch

from unmix.data.base import Batch
from unmix.errors import DataError

X, Y, C = torch.zeros(2, 3, 4), torch.ones(2, 3), torch.zeros(2, 3, dtype=torch.int64)


def test_a_batch_counts_its_points() -> None:
    assert Batch(X, -Y, C).points == 3


# Types and shapes are refused before the constructor when annotations are checked, as here;
# what follows are the refusals that users see: wrong values in right shapes.
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_points_must_be_finite(bad: float) -> None:
    x = X.clone()
    x[1, 2, 3] = bad
    with pytest.raises(DataError, match="NaN or infinite"):
        Batch(x, Y, C)


def test_points_whose_sum_overflows_are_points() -> None:
    huge = torch.full_like(X, 3e38)
    assert not torch.isfinite(huge.sum())
    assert Batch(huge, Y, C).points == 3


@pytest.mark.parametrize("bad", [0.0, 2.0, float("nan")])
def test_labels_must_be_signs(bad: float) -> None:
    y = Y.clone()
    y[0, 0] = bad
    with pytest.raises(DataError, match=r"labels must be -1 or \+1"):
        Batch(X, y, C)


def test_a_batch_needs_a_point() -> None:
    with pytest.raises(DataError, match=r"at least one point\n.*samples\.train"):
        Batch(X[:, :0], Y[:, :0], C[:, :0])
