"""Probes of patch CNNs on weights that are known: coefficients, drift, noise, shares."""

from __future__ import annotations

import pytest
import torch

from lab import patched, put, trained
from unmix.errors import DataError
from unmix.probes.base import probe
from unmix.probes.patch_weights import coefficients


def spelled() -> dict[str, torch.Tensor]:
    """Weights [R k m d] with 100 i + 10 r + axis on each axis of filter r of class i."""
    run = patched()
    r, k, m, d = run.params["w"].shape
    w = 100 * torch.arange(k)[:, None, None] + 10 * torch.arange(m)[:, None] + torch.arange(d)
    return {"w": w.double().expand(r, -1, -1, -1).clone()}


def test_coefficients_are_inner_products_with_their_features() -> None:
    run = put(patched(), **spelled())
    found = coefficients(run.classifier)
    for i in range(3):
        for r in range(4):
            row = 100 * i + 10 * r
            assert found["A"][0, i, r] == row + i
            assert found["B"][0, i, r] == row + 3 + i
            others = [j for j in range(3) if j != i]
            assert found["C"][0, i, r].tolist() == [row + j for j in others]
            assert found["D"][0, i, r].tolist() == [row + 3 + j for j in others]


def test_the_summary_takes_largest_filters_and_means_over_classes() -> None:
    run = put(patched(), **spelled())
    found = probe(run, "patch-weights")
    # The last filter is the largest: 100 i + 30 + i, and 100 i + 30 + 3 + i.
    assert found["A_max"].tolist() == pytest.approx([131.0, 131.0])
    assert found["B_max"].tolist() == pytest.approx([134.0, 134.0])
    assert found["C_max"].tolist() == pytest.approx([(32 + 132 + 231) / 3] * 2)
    powers = found["B_powers"][0]
    wanted = [sum((100 * i + 10 * r + 3 + i) ** 3.0 for r in range(4)) for i in range(3)]
    assert powers.tolist() == pytest.approx(wanted)
    assert found["B_power"][0] == pytest.approx(sum(wanted) / 3)


def test_drift_is_what_moved_outside_the_features() -> None:
    start = patched("train.steps=0")
    w = start.params["w"].clone()
    w[..., :6] += 5.0
    assert probe(put(start, w=w), "patch-weights")["drift"].max() < 1e-12
    w[..., 7] += 0.3
    assert probe(put(start, w=w), "patch-weights")["drift"].tolist() == pytest.approx([0.3, 0.3])


def test_what_leaves_the_span_of_the_start_is_seen() -> None:
    """Two filters, six orthogonal dimensions: the start spans at most six of them."""
    run = patched("train.steps=0", "net.m=1", "data.d=20")
    w = run.params["w"].clone()
    inside = put(run, w=w + 0.5 * w.flip(1))
    assert probe(inside, "patch-weights")["beyond"].max() < 1e-12
    outside = w.clone()
    outside[..., 19] += 1.0
    assert probe(put(run, w=outside), "patch-weights")["beyond"].min() > 0.1


def test_noise_correlations_are_those_of_the_noise_alone() -> None:
    run = patched("samples.train=4")
    batch, w = run.train_batch, run.params["w"].flatten(1, 2)
    quiet = run.experiment.with_("data.sigma_n=0.0").data.sample((0, 1), 4, "train")
    xi = (batch.x - quiet.x).flatten(1, 2)
    found = probe(run, "patch-weights")
    inner = xi @ w.transpose(1, 2)
    torch.testing.assert_close(found["noise_max"], inner.abs().amax((1, 2)))
    torch.testing.assert_close(found["noise_rms"], inner.square().mean((1, 2)).sqrt())
    outside = xi[..., 6:] @ w[..., 6:].transpose(1, 2)
    torch.testing.assert_close(found["noise_max_outside"], outside.abs().amax((1, 2)))


@pytest.mark.parametrize(("kept", "share"), [("robust", 1.0), ("non-robust", 0.0)])
def test_shares_and_accuracies_of_nets_that_hold_one_feature(kept: str, share: float) -> None:
    run = patched("data.sigma_n=0.0", "train.steps=0", "samples.test=30")
    w = torch.zeros_like(run.params["w"])
    for i in range(3):
        w[:, i, 0, i if kept == "robust" else 3 + i] = 2.0
    found = probe(put(run, w=w), "patch-features")
    assert found["share"].tolist() == [share] * 2
    assert found["share_patch"].tolist() == [share] * 2
    assert found["robust"].tolist() == [share] * 2
    assert found["non_robust"].tolist() == [1 - share] * 2
    assert found["test"].tolist() == found["train"].tolist() == [1.0, 1.0]


def test_noise_of_emptied_patches_tells_the_two_readings_apart() -> None:
    found = probe(patched("data.sigma_n=0.5"), "patch-features")
    assert (found["share"] != found["share_patch"]).any()


def test_the_two_variable_recursion_is_compared_at_every_record() -> None:
    found = probe(
        patched("train.kind=patch-adversarial", "train.attack.step=3.0"), "patch-recursions"
    )
    assert (found["A_worst"] >= found["A"]).all()
    assert found["A_path"].shape == (2, 6)
    assert float(found["A"].max()) < 0.5


def test_other_runs_are_refused() -> None:
    for name in ("patch-weights", "patch-features", "patch-phases", "patch-recursions"):
        with pytest.raises(DataError, match="reads runs on patches"):
            probe(trained(), name)
    alone = patched("train.kind=patch-recursion")
    with pytest.raises(DataError, match="train it by patch-descent"):
        probe(alone, "patch-recursions")
    assert probe(alone, "patch-phases")["loss"].isfinite().all()
