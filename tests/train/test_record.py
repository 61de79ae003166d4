"""What is recorded, when, and that a trace holds together."""

from __future__ import annotations

import pytest
import torch

from unmix.errors import DataError
from unmix.train.base import Record, Stop, Trace


def test_a_linear_schedule_is_even() -> None:
    assert Record(schedule="linear", points=5).steps(100) == (0, 25, 50, 75, 100)
    assert Record(schedule="linear", points=40).steps(3) == (0, 1, 2, 3)


def test_a_logarithmic_schedule_is_dense_at_the_start() -> None:
    assert Record(points=5).steps(1000) == (0, 1, 10, 100, 1000)
    steps = Record(points=40).steps(100)
    assert steps[:4] == (0, 1, 2, 3)
    assert steps[-1] == 100
    assert len(steps) <= 40


@pytest.mark.parametrize("schedule", ["log", "linear"])
@pytest.mark.parametrize("last", [0, 1, 2, 3, 7, 1000])
@pytest.mark.parametrize("points", [2, 3, 40])
def test_both_ends_are_always_recorded(schedule, last: int, points: int) -> None:
    steps = Record(schedule=schedule, points=points).steps(last)
    assert (steps[0], steps[-1]) == (0, last)
    assert list(steps) == sorted(set(steps))
    assert len(steps) <= max(points, 2)


def test_a_trace_refuses_columns_of_another_shape() -> None:
    stops = (Stop("steps", 5), Stop("diverged", 2, "lower it"))
    trace = Trace((0, 5), {"loss": torch.zeros(2, 2)}, stops)
    assert trace.diverged == (1,)
    with pytest.raises(DataError, match=r"trace column 'loss' has shape \(2, 3\)"):
        Trace((0, 5), {"loss": torch.zeros(2, 3)}, stops)
