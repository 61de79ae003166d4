"""Interval radii of patch CNNs: sound against attacks, exact where they say so."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lab import patched, put, trained, unchecked_shapes
from unmix.attacks.patch_suite import PatchPlan, PatchSuite
from unmix.certify.patches import bracket, interval, worst
from unmix.data.patches import Patches
from unmix.errors import CertificateError
from unmix.experiment import Experiment, Samples, run
from unmix.nets.patch_cnn import NonRobustMinimum, PatchCnn, PatchModel, RobustMinimum
from unmix.train.patches import PatchDescent

DATA = Patches(k=3, d=8, patches=3)


def drawn(seed: int, scale: float) -> PatchModel:
    made = torch.Generator().manual_seed(seed)
    w = scale * torch.randn(2, 3, 4, 8, generator=made, dtype=torch.float64)
    return PatchModel(PatchCnn(m=4), DATA, {"w": w})


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.1, 1.0, 30.0]))
def test_nothing_within_the_radius_changes_a_class(seed: int, scale: float) -> None:
    model, batch = drawn(seed, scale), DATA.sample((seed, seed + 1), 6, "test")
    with unchecked_shapes():
        y = model.predict(batch.x).clamp_min(0)
        found = bracket(model, batch.x, y)
        made = torch.Generator().manual_seed(seed)
        for _ in range(30):
            corner = torch.randn(batch.x.shape, generator=made, dtype=torch.float64).sign()
            moved = batch.x + found.lower[..., None, None] * corner
            right = found.lower > 0
            assert (model.predict(moved) == y)[right].all()


def test_the_bound_is_the_formula_and_falls_with_the_radius() -> None:
    model, batch = drawn(0, 1.0), DATA.sample((0, 1), 5, "test")
    eps = torch.full((2, 5), 0.2).double()
    found = worst(model, batch.x, batch.y, eps)
    s = model.net.activation()
    for r in range(2):
        for n in range(5):
            z = batch.x[r, n] @ model.w[r].flatten(0, 1).T
            move = 0.2 * model.w[r].flatten(0, 1).abs().sum(-1)
            low, high = (s.value(z + t * move).sum(0).unflatten(0, (3, 4)).sum(1) for t in (-1, 1))
            y = int(batch.y[r, n])
            for j in range(3):
                if j != y:
                    assert float(found[r, n, j]) == pytest.approx(float(low[y] - high[j]))
    assert (worst(model, batch.x, batch.y, eps * 2) <= found).all()


@pytest.mark.parametrize(("net", "share"), [(RobustMinimum, "robust"), (NonRobustMinimum, "other")])
def test_the_minima_have_closed_forms(net, share: str) -> None:
    """alpha n_R/(n_R + P) and beta n_NR/(n_NR + P) for filters in the linear part."""
    data = Patches(k=3, d=12, patches=4, robust=1, sigma_n=0.0)
    e = Experiment(
        data=data,
        net=net(gamma=1e6),
        train=PatchDescent(steps=0),
        samples=Samples(train=3, test=5),
    )
    found = interval(run(e))
    wanted = 2 * 1 / 5 if share == "robust" else 3 / 7
    torch.testing.assert_close(found.lower, torch.full((1, 5), wanted).double(), rtol=1e-4, atol=0)
    assert found.closed.all()
    assert ((found.upper - found.lower) / found.lower).max() < 2e-6


def test_attacks_do_not_beat_it() -> None:
    mine = patched("train.steps=300")
    found = interval(mine, 6)
    plan = PatchPlan(
        PatchSuite(attacks=("all-features", "patch-strong", "in-place")),
        tuple(0.02 * i for i in range(1, 30)),
        points=6,
    )
    radius = plan.curve(mine).smallest
    assert (found.lower <= radius).all()
    assert found.lower.max() > 0
    wrong = mine.classifier.predict(mine.fresh(6).x) != mine.fresh(6).y
    assert (found.lower[wrong] == 0).all()


def test_the_scale_of_linear_filters_does_not_matter_and_others_are_refused() -> None:
    mine = patched()
    big = put(mine, w=1e4 * mine.params["w"])
    bigger = put(mine, w=1e5 * mine.params["w"])
    torch.testing.assert_close(interval(big).lower, interval(bigger).lower, rtol=1e-3, atol=1e-9)
    with pytest.raises(CertificateError, match="patch CNNs"):
        interval(trained())
    with pytest.raises(CertificateError, match="NaN"):
        interval(put(mine, w=torch.full_like(mine.params["w"], torch.nan)))
