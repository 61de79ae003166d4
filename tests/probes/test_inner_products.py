"""How well coefficients stand for inner products: against the inner products themselves."""

from __future__ import annotations

import pytest
import torch

from lab import trained, trained_fine
from unmix.probes.decomposition import decomposition
from unmix.probes.inner_products import approximate_margins, inner_products
from unmix.probes.margins import margins


@pytest.mark.parametrize("make", [trained, trained_fine])
def test_deviations_are_the_largest_over_all_pairs(make) -> None:
    run = make("data.alpha=1.5")
    probe, parts = inner_products(run), decomposition(run)
    xi = run.data.noise(run.train_batch, run.experiment.seeds)
    for r in (0, 1):
        worst = {"mu": 0.0, "xi": 0.0, "x": 0.0}
        for m, w in enumerate(run.params["w"][r]):
            lam, sig = parts["lambda"][r, m], parts["sigma"][r, m]
            for j in range(4):
                gap = w @ (1.5 * run.centres[r, j]) - lam[j]
                worst["mu"] = max(worst["mu"], abs(float(gap)))
            for i in range(64):
                c = run.train_batch.cluster[r, i]
                worst["xi"] = max(worst["xi"], abs(float(w @ xi[r, i] - sig[i])))
                gap = w @ run.train_batch.x[r, i] - lam[c] - sig[i]
                worst["x"] = max(worst["x"], abs(float(gap)))
        for name, value in worst.items():
            assert probe[name][r].item() == pytest.approx(value, rel=1e-9)
            assert value > 1e-3


def test_approximate_margins_average_over_own_neurons() -> None:
    run = trained("train.steps=300")
    parts = decomposition(run)
    mine = approximate_margins(run)
    for i in (0, 5, 63):
        c, y = run.train_batch.cluster[0, i], run.train_batch.y[0, i]
        rows = slice(0, 2) if y > 0 else slice(2, 4)
        wanted = (parts["lambda"][0, rows, c] + parts["sigma"][0, rows, i]).mean()
        assert mine[0, i].item() == pytest.approx(wanted.item())
    gap = (margins(run)["q"] - mine).abs().amax(1)
    torch.testing.assert_close(inner_products(run)["q"], gap)


def test_fresh_noise_is_that_of_points_never_trained_on() -> None:
    run = trained()
    probe = inner_products(run)
    spread = run.params["w"].norm(dim=-1)
    # <w, xi> of fresh standard normal xi has standard deviation |w|.
    torch.testing.assert_close(probe["fresh_sd"], spread.square().mean(1).sqrt(), rtol=0.05, atol=0)
    assert (probe["fresh_max"] > 2.5 * probe["fresh_sd"]).all()
    assert (probe["fresh_max"] < 6 * spread.amax(1)).all()
