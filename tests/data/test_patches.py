"""Patch data: features where they belong, the partition's laws, ratios, streams, refusals."""

from __future__ import annotations

import math

import pytest
import torch

from unmix.data.patches import Patches
from unmix.errors import SpecError

QUIET = Patches(k=3, d=10, patches=5, robust=2, sigma_n=0.0, alpha=(2.0, 3.0), beta=(0.5, 1.0))


def test_patches_hold_one_feature_of_their_class() -> None:
    sample = QUIET.sample((0, 1), 40, "train")
    assert sample.x.shape == (2, 40, 5, 10)
    axis = sample.x.argmax(-1)
    own = sample.y.unsqueeze(-1)
    assert torch.equal(axis, torch.where(sample.robust, own, own + 3))
    assert ((sample.x != 0).sum(-1) == 1).all()
    size = sample.x.amax(-1)
    for mask, low, high in ((sample.robust, 2.0, 3.0), (~sample.robust, 0.5, 1.0)):
        assert size[mask].min() >= low
        assert size[mask].max() <= high
        assert size[mask].mean() == pytest.approx((low + high) / 2, abs=0.1)


def test_constants_are_constant_and_noise_is_everywhere() -> None:
    data = Patches(k=2, d=30, patches=4, sigma_n=0.2)
    sample = data.sample((0,), 2000, "train")
    signal = torch.zeros_like(sample.x)
    axis = torch.where(sample.robust, 0, 2) + sample.y.unsqueeze(-1)
    height = torch.where(sample.robust, 2.0, 1.0).double()
    signal.scatter_(-1, axis.unsqueeze(-1), height.unsqueeze(-1))
    noise = (sample.x - signal).reshape(-1, 30)
    torch.testing.assert_close(noise.std(0), torch.full((30,), 0.2).double(), rtol=0.05, atol=0)
    assert noise.mean(0).abs().max() < 5 * 0.2 / math.sqrt(len(noise))


@pytest.mark.parametrize("partition", ["uniform", "fixed", "binomial"])
def test_partitions_follow_their_law(partition: str) -> None:
    data = Patches(patches=6, robust=2, partition=partition)
    robust = data.sample((0,), 3000, "train").robust[0]
    share = robust.double().mean(0)
    if partition == "fixed":
        assert torch.equal(robust, (torch.arange(6) < 2).expand(3000, -1))
        return
    # sd of a share is below 0.009.
    torch.testing.assert_close(share, torch.full((6,), 1 / 3).double(), rtol=0, atol=0.04)
    counts = robust.sum(-1)
    if partition == "uniform":
        assert (counts == 2).all()
    else:
        assert counts.double().var() == pytest.approx(6 * 2 / 9, rel=0.1)


def test_classes_are_uniform() -> None:
    y = Patches(k=4, d=10).sample((0,), 4000, "train").y[0]
    assert torch.bincount(y, minlength=4).double().div(4000).sub(0.25).abs().max() < 0.035


def test_the_ratios_of_the_papers_setting() -> None:
    # Fig. 3: neither is a robust classifier possible, nor does Assumption 2.3 hold by far.
    ratios = Patches().ratios(tau=3, eps=1.2)
    wanted = {"alpha/beta": 2, "S_tau": 8 / 15, "alpha/eps": 5 / 3, "eps/beta": 1.2,
              "beta/noise": 1, "eps/noise": 1.2, "alpha/2eps": 5 / 6,
              "robust margin": 0.8 / (16 * 1.2)}  # fmt: skip
    assert ratios == pytest.approx(wanted)


def test_s_tau_of_spread_signals_is_that_of_the_samples() -> None:
    data = QUIET.override("patches=7")
    sample = data.sample((0,), 20_000, "train")
    power = sample.x.amax(-1) ** 3
    s = power[sample.robust].sum() / power[~sample.robust].sum()
    assert data.ratios(tau=3, eps=1.0)["S_tau"] == pytest.approx(float(s), rel=0.02)
    assert data.ratios(tau=-1, eps=1.0)["S_tau"] == pytest.approx(
        2 * math.log(1.5) / (5 * math.log(2) / 0.5)
    )
    assert data.override("robust=7").ratios(tau=3, eps=1.0)["S_tau"] == math.inf


def test_more_points_or_seeds_change_no_others() -> None:
    data = Patches(k=3, d=10, patches=4, robust=2, alpha=(1.0, 2.0))
    few, more = data.sample((5,), 7, "train"), data.sample((5, 6), 30, "train")
    for name in ("x", "y", "robust"):
        assert torch.equal(getattr(more, name)[:1, :7], getattr(few, name)), name
    assert not torch.equal(data.sample((5,), 7, "test").x, few.x)
    assert torch.equal(data.sample((5,), 7, "train", torch.float32).x, few.x.float())


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"k": 8, "d": 10}, "2k=16 feature axes do not fit into d=10"),
        ({"robust": 17}, "robust=17 exceeds patches=16"),
        ({"alpha": (2.0, 1.0)}, "alpha: expected 0 < low <= high"),
        ({"beta": (0.0, 1.0)}, "beta: expected 0 < low <= high"),
    ],
)
def test_impossible_data_are_refused(values: dict, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Patches(**values)


def test_a_spec_survives_its_plain_form() -> None:
    assert Patches.parse(QUIET.plain()) == QUIET


@pytest.mark.parametrize("gone", ["feature", "patch"])
@pytest.mark.parametrize("kept", ["robust", "non-robust"])
def test_feature_only_versions_lose_the_other_feature(kept: str, gone: str) -> None:
    noisy = QUIET.override("sigma_n=0.3")
    sample = noisy.sample((0, 1), 40, "test")
    found = noisy.only(sample, kept, gone)
    lost = sample.robust if kept == "non-robust" else ~sample.robust
    axis = noisy.axis(sample.y, sample.robust).unsqueeze(-1)
    xi = sample.x.scatter_add(-1, axis, -sample.signal.unsqueeze(-1))
    assert torch.equal(found.x[~lost], sample.x[~lost])
    wanted = torch.zeros_like(xi[lost]) if gone == "patch" else xi[lost]
    torch.testing.assert_close(found.x[lost], wanted)
    assert (found.signal[lost] == 0).all()
    assert torch.equal(sample.x, noisy.sample((0, 1), 40, "test").x)


def test_balanced_classes_take_turns() -> None:
    y = QUIET.override("classes=balanced").sample((0, 1), 7, "train").y
    assert y.tolist() == [[0, 1, 2, 0, 1, 2, 0]] * 2


def test_features_are_axes_for_every_seed() -> None:
    both = QUIET.features((0, 1), torch.float32)
    assert torch.equal(both, torch.eye(6, 10).expand(2, -1, -1))
    assert torch.equal(QUIET.axes().flatten(0, 1).float(), both[0])
