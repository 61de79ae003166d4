"""Margins and slopes of a net that is known."""

from __future__ import annotations

import math

import pytest
import torch

from lab import put, still, trained, trained_fine
from unmix.data.clusters import Clusters
from unmix.nets.k_class import KClass
from unmix.nets.two_layer import TwoLayer
from unmix.probes.margins import margins

DATA = Clusters(k=2, d=4, sigma=0.0)


def test_margins_at_noiseless_centres() -> None:
    run = still(TwoLayer(m=1), DATA)
    # f = 3/4 <mu_0, x> - 1/4 <mu_1, x>: margins 3 at mu_0 and 1 at mu_1.
    w = run.centres * torch.tensor([[[0.75], [0.25]]])
    probe = margins(put(run, w=w, b=torch.zeros(1, 2)))
    positive = float((run.train_batch.y > 0).double().mean())
    assert 0 < positive < 1
    assert probe["mean"].item() == pytest.approx(3 * positive + (1 - positive))
    assert (probe["gap"].item(), probe["min"].item()) == pytest.approx((2.0, 1.0))
    assert probe["ratio"].item() == pytest.approx((1 + math.e**3) / (1 + math.e))
    loss = positive * math.log1p(math.exp(-3)) + (1 - positive) * math.log1p(math.exp(-1))
    assert probe["loss"].item() == pytest.approx(loss)
    assert probe["pairs_in_bounds"].item() == 1


def test_negative_margins_leave_the_bounds_of_lemma_b6() -> None:
    run = still(TwoLayer(m=1), DATA)
    w = run.centres * torch.tensor([[[0.75], [0.25]]])
    # Against all labels, at margins -3 and -1, the slope ratio is below e^{D/2}.
    probe = margins(put(run, w=w.flip(1), b=torch.zeros(1, 2)))
    share = (run.train_batch.y > 0).double().mean()
    assert probe["min"].item() == pytest.approx(-3)
    # Pairs of two clusters in which the first has the larger margin fail.
    assert probe["pairs_in_bounds"].item() == pytest.approx(float(1 - share * (1 - share)))


def test_margins_of_classes_are_own_outputs() -> None:
    run = still(KClass(), DATA)
    w = run.centres * torch.tensor([[[0.5], [0.25]]])
    probe = margins(put(run, w=w))
    positive = float((run.train_batch.y > 0).double().mean())
    assert probe["mean"].item() == pytest.approx(2 * positive + (1 - positive))
    # Slopes 1 - p: other outputs are 0.
    assert probe["ratio"].item() == pytest.approx((1 + math.e**2) / (1 + math.e))
    assert "pairs_in_bounds" not in probe.values


@pytest.mark.parametrize("make", [trained, trained_fine])
def test_final_margins_are_those_the_training_recorded(make) -> None:
    run = make()
    probe, columns = margins(run), run.trace.columns
    torch.testing.assert_close(probe["mean"], columns["margin"][:, -1])
    torch.testing.assert_close(probe["loss"], columns["loss"][:, -1])
    torch.testing.assert_close(probe["gap"], (columns["margin_max"] - columns["margin_min"])[:, -1])
    assert probe["q"].shape == (2, 64)


def test_lemma_b6_holds_after_training() -> None:
    assert margins(trained("train.steps=200"))["min"].min() > 0
    assert margins(trained("train.steps=200"))["pairs_in_bounds"].tolist() == [1.0, 1.0]
