"""The distance to the nearest multiple of f_FA: zero at one, known next to one."""

from __future__ import annotations

import pytest
import torch

from lab import put, still, trained, trained_fine
from unmix.data.clusters import Clusters
from unmix.errors import DataError
from unmix.nets.two_layer import TwoLayer
from unmix.probes.averaging_distance import averaging_distance

DATA = Clusters(k=4, d=32)


def averaging(level: float = 1.7, data: Clusters = DATA, m: int = 2):
    run = still(TwoLayer(m=m, sigma_w=0.0, sigma_b=0.0), data)
    sides = [run.centres[0, list(s)].sum(0) for s in (data.plus, data.minus)]
    w = level / data.unit**2 * torch.stack(sides).repeat_interleave(m, 0)
    return put(run, w=w[None], b=torch.zeros(1, 2 * m))


@pytest.mark.parametrize("scale", ["sqrt-d", "unit"])
def test_a_multiple_of_averaging_is_at_no_distance(scale: str) -> None:
    probe = averaging_distance(averaging(data=Clusters(k=4, d=32, scale=scale)))
    assert probe["distance"].item() == pytest.approx(0, abs=1e-12)
    assert probe["bound"].item() == pytest.approx(0, abs=1e-12)
    assert probe["size"].item() == pytest.approx(1.7 * 2**0.5)


def test_a_bias_costs_at_most_itself() -> None:
    run = averaging()
    shifted = put(run, w=run.params["w"], b=torch.tensor([[0.3, 0.3, 0, 0]], dtype=torch.float64))
    probe = averaging_distance(shifted)
    assert probe["bound"].item() == pytest.approx(0.3)
    assert 0.1 < probe["distance"].item() <= 0.3 + 1e-12


def test_one_missing_centre_is_found() -> None:
    run = averaging(m=1)
    w = run.params["w"].clone()
    w[0, 0] = 1.7 / 32 * 2 * run.centres[0, 0]
    probe = averaging_distance(put(run, w=w, b=torch.zeros(1, 2)))
    # At x = mu_1: f = 0 and C f_FA = 1.7 C'; the search must see at least that at its best C'.
    assert probe["distance"].item() >= 1.7 * 0.85
    assert probe["distance"].item() <= probe["bound"].item() + 1e-9


def test_after_training_the_search_stays_below_the_proved_bound() -> None:
    probe = averaging_distance(trained("train.steps=200"))
    assert (probe["distance"] <= probe["bound"]).all()
    assert (probe["distance"] > 0.05).all()
    assert (probe["distance"] < probe["size"]).all()


def test_it_speaks_of_binary_nets_only() -> None:
    with pytest.raises(DataError, match=r"binary net\n.*two-layer"):
        averaging_distance(trained_fine())
