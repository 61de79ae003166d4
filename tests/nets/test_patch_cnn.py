"""The patch CNN: its formula, its hand-made gradient, ties, and the paper's two minima."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from lab import patched
from unmix.data.patches import Patches
from unmix.nets.patch_cnn import NonRobustMinimum, PatchCnn, PatchModel, RobustMinimum

DATA = Patches(k=3, d=12, patches=4, robust=2, sigma_n=0.3)


def drawn(scale: float = 0.7) -> PatchModel:
    made = torch.Generator().manual_seed(0)
    w = scale * torch.randn(2, 3, 5, 12, generator=made, dtype=torch.float64)
    return PatchModel(PatchCnn(m=5, rho=0.6), DATA, {"w": w})


def test_outputs_are_sums_over_filters_and_patches() -> None:
    model, x = drawn(), DATA.sample((0, 1), 6, "test").x
    f = model.outputs(x)
    for r in range(2):
        for n in range(6):
            for i in range(3):
                total = 0.0
                for w in model.w[r, i]:
                    for z in (x[r, n] @ w).tolist():
                        t = min(max(z, 0.0), 0.6)
                        total += t**3 / (3 * 0.36) + max(z - 0.6, 0.0)
                assert float(f[r, n, i]) == pytest.approx(total, rel=1e-12)


def test_the_gradient_is_autograds() -> None:
    model, batch = drawn(), DATA.sample((0, 1), 6, "test")
    side = torch.randn(2, 6, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    x = batch.x.clone().requires_grad_()
    (wanted,) = torch.autograd.grad((side * model.outputs(x)).sum(), x)
    torch.testing.assert_close(model.ascent(batch.x, side), wanted, rtol=1e-12, atol=1e-14)


def test_a_tie_is_no_class_and_an_error() -> None:
    model = PatchModel(PatchCnn(m=5), DATA, {"w": torch.zeros(1, 3, 5, 12).double()})
    batch = DATA.sample((0,), 6, "test")
    assert (model.predict(batch.x) == -1).all()
    assert model.accuracy(batch).tolist() == [0.0]
    assert (model.margin(batch.x, batch.y) == 0).all()


def test_the_margin_is_own_minus_the_best_other() -> None:
    model, batch = drawn(), DATA.sample((0, 1), 30, "test")
    margin = model.margin(batch.x, batch.y)
    assert torch.equal(margin > 0, model.predict(batch.x) == batch.y)
    f = model.outputs(batch.x)
    wrong = f.masked_fill(nn.functional.one_hot(batch.y, 3).bool(), -torch.inf).amax(-1)
    own = f.gather(-1, batch.y.unsqueeze(-1))[..., 0]
    assert torch.equal(margin, own - wrong)


@pytest.mark.parametrize("net", [RobustMinimum(gamma=9.0), NonRobustMinimum(gamma=9.0)])
def test_the_minima_hold_one_feature_each(net) -> None:
    batch = DATA.sample((0, 1), 40, "train")
    model = net.classifier(DATA, net.start(DATA, (0, 1), batch))
    assert model.w.shape == (2, 3, 1, 12)
    robust = isinstance(net, RobustMinimum)
    kept, lost = ("robust", "non-robust") if robust else ("non-robust", "robust")
    quiet = DATA.override("sigma_n=0.0")
    clean = quiet.sample((0, 1), 40, "train")
    assert model.accuracy(quiet.only(clean, kept)).tolist() == [1.0, 1.0]
    assert model.accuracy(quiet.only(clean, lost)).tolist() == [0.0, 0.0]
    axis = model.w[0, :, 0].argmax(-1)
    assert axis.tolist() == ([0, 1, 2] if robust else [3, 4, 5])


def test_a_start_has_its_scale_and_any_device() -> None:
    net = PatchCnn(m=400, sigma_0=0.2)
    w = net.start(DATA, (0,), DATA.sample((0,), 3, "train"))["w"]
    assert float(w.std()) == pytest.approx(0.2, rel=0.02)
    model = PatchModel(net, DATA, {"w": w.to("meta")})
    x = torch.empty(1, 5, 4, 12, dtype=torch.float64, device="meta")
    assert model.outputs(x).shape == (1, 5, 3)
    assert (
        model.ascent(x, torch.empty(1, 5, 3, dtype=torch.float64, device="meta")).shape == x.shape
    )


def test_it_learns_and_keeps_its_precision() -> None:
    run = patched("train.steps=300", "data.sigma_n=0.05")
    assert run.classifier.accuracy(run.test_batch).mean() > 0.9
    assert patched("dtype=float32").params["w"].dtype == torch.float32
