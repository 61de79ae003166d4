"""The distance to the promised weights, of those weights and of some that are a known bit off."""

from __future__ import annotations

import pytest
import torch

from lab import put, still, trained, trained_fine
from unmix.data.clusters import Clusters
from unmix.nets.k_class import KClass
from unmix.nets.two_layer import TwoLayer
from unmix.probes.weight_error import weight_error

DATA = Clusters(k=4, d=32)
UNIT = Clusters(k=4, d=32, scale="unit")


def sums(run) -> torch.Tensor:
    return torch.stack([run.centres[:, list(s)].sum(1) for s in (run.data.plus, run.data.minus)], 1)


@pytest.mark.parametrize("data", [DATA, UNIT], ids=["sqrt-d", "unit"])
def test_the_promised_weights_have_no_error(data: Clusters) -> None:
    run = still(TwoLayer(m=1, sigma_w=0.0, sigma_b=0.0), data)
    probe = weight_error(put(run, w=1.7 / data.unit**2 * sums(run), b=torch.zeros(1, 2)))
    assert probe["lambda"].item() == pytest.approx(1.7)
    for name in ("error", "relative", "L1", "L2", "L3", "L4"):
        assert probe[name].item() == pytest.approx(0, abs=1e-12)


def test_classes_promise_one_centre_each() -> None:
    run = still(KClass(h=2, sigma_w=0.0), DATA)
    w = 5.4 / 32 * run.centres.repeat_interleave(2, 1)
    probe = weight_error(put(run, w=w))
    assert probe["lambda"].item() == pytest.approx(5.4)
    assert probe["error"].item() == pytest.approx(0, abs=1e-12)


def test_every_piece_is_its_own_deviation() -> None:
    run = still(TwoLayer(m=1, sigma_w=0.0, sigma_b=0.0), DATA)
    mu, root = run.centres[0], 32**0.5
    # Own lambdas 3 and 1 (mean 2), one off-class -0.4, and a part outside all centres.
    outside = torch.randn(32, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    outside -= mu.T @ (mu @ outside) / 32
    outside *= 0.7 / root / outside.norm()
    plus = (3 * mu[0] + 1 * mu[1] - 0.4 * mu[2]) / 32 + outside
    minus = (3 * mu[2] + 1 * mu[3]) / 32
    probe = weight_error(put(run, w=torch.stack([plus, minus])[None], b=torch.zeros(1, 2)))
    assert probe["lambda"].item() == pytest.approx(2)
    # Means over the two neurons; lengths of mu-coefficients (1, -1), of 0.4 and of 0.7.
    assert probe["L1"].item() == 0
    assert probe["L2"].item() == pytest.approx(2**0.5)
    assert probe["L3"].item() == pytest.approx(0.2)
    assert probe["L4"].item() == pytest.approx(0.35)
    wanted = ((2 + 0.16 + 0.49) ** 0.5 + 2**0.5) / 2
    assert probe["error"].item() == pytest.approx(wanted)
    assert probe["relative"].item() == pytest.approx(wanted / 2)


@pytest.mark.parametrize("make", [trained, trained_fine])
def test_the_pieces_bound_the_whole(make) -> None:
    run = make("train.steps=100")
    probe = weight_error(run)
    assert (probe["error"] <= probe["L1"] + probe["L2"] + probe["L3"] + probe["L4"]).all()
    assert (probe["error"] > 0).all()
    assert probe["L1"].tolist() == pytest.approx(
        (32**0.5 * run.initial["w"].norm(dim=-1).mean(1)).tolist()
    )


def test_lambda_without_a_record_is_read_off_the_weights() -> None:
    with_record = weight_error(trained())["lambda"]
    without = weight_error(trained("train.record.coefficients=[]"))["lambda"]
    # They differ by the noise's overlap with the centres (B.11), of order sqrt(k/(n d)) lambda.
    assert not torch.equal(with_record, without)
    torch.testing.assert_close(with_record, without, rtol=0.2, atol=0)


def test_lambda_does_not_depend_on_the_signal_scale() -> None:
    run = trained("data.alpha=2.0", "train.steps=100")
    lam = weight_error(run)["lambda"]
    w = run.params["w"].mean(1)
    # <w, mu> of the mean own direction, measured on the positive neurons.
    plus = run.params["w"][:, :2].mean(1)
    along = torch.einsum("rd,rkd->rk", plus, run.centres)[:, :2].mean(1)
    assert w.shape == (2, 32)
    torch.testing.assert_close(lam, along, rtol=0.2, atol=0)
