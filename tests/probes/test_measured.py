"""What a probe may return, and how it prints."""

from __future__ import annotations

import pytest
import torch

from lab import trained
from unmix.errors import DataError, UnknownName
from unmix.probes.alignment import cosines
from unmix.probes.base import Measured, masked_mean, probe


def test_values_and_arrays_are_looked_up_alike() -> None:
    measured = Measured({"a": torch.ones(2)}, {"m": torch.zeros(2, 3)})
    assert measured["a"].tolist() == [1, 1]
    assert measured["m"].shape == (2, 3)
    with pytest.raises(DataError, match="gave no 'b'"):
        measured["b"]


@pytest.mark.parametrize(
    ("values", "arrays", "words"),
    [
        ({"a": torch.ones(2)}, {"a": torch.ones(2, 3)}, "share the names"),
        ({"a": torch.ones(2), "b": torch.ones(3)}, {}, "one number per replica"),
        ({"a": torch.ones(2)}, {"m": torch.ones(3, 2)}, "one number per replica"),
    ],
)
def test_a_probe_cannot_return_nonsense(values: dict, arrays: dict, words: str) -> None:
    with pytest.raises(DataError, match=words):
        Measured(values, arrays)


def test_the_mean_over_a_mask() -> None:
    x = torch.arange(12.0).reshape(2, 2, 3)
    mask = torch.tensor([[True, False, False], [True, False, True]])
    assert masked_mean(x, mask).tolist() == pytest.approx([(0 + 3 + 5) / 3, (6 + 9 + 11) / 3])


def test_a_probe_is_found_by_name_and_prints_means() -> None:
    measured = probe(trained(), "cosines")
    assert torch.equal(measured["matrix"], cosines(trained())["matrix"])
    lines = str(measured).splitlines()
    assert len(lines) == len(measured.values)
    assert lines[0].startswith("on ")
    assert f"{measured['on'].mean():.5g}" in lines[0]
    assert lines[0].endswith("R=2)")
    assert "sd 0, R=1" in str(Measured({"a": torch.ones(1)}))
    with pytest.raises(UnknownName, match="cosines"):
        probe(trained(), "cosine")
