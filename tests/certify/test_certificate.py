"""What a certificate refuses, and the law that it and an attack obey."""

from __future__ import annotations

import pytest
import torch
from small_nets import question

from lab import gaussian, still, trained, trained_fine
from unmix import certificate
from unmix.attacks.suite import SuiteL2
from unmix.certify.base import (
    BOUND,
    EXACT,
    TIMEOUT,
    UNSUPPORTED,
    Certificate,
    Question,
    sandwich,
)
from unmix.certify.bounds import Lipschitz
from unmix.certify.brute import BruteForce
from unmix.certify.exact import ExactL2
from unmix.certify.subsets import Subsets
from unmix.data.clusters import Clusters
from unmix.errors import CertificateError
from unmix.nets.activations import Power, Relu
from unmix.nets.constructed import FeatureAveraging, FeatureDecoupling
from unmix.nets.form import Form

ONE = torch.ones(1, 2, dtype=torch.float64)
CODES = torch.zeros(1, 2, dtype=torch.int64)
WAY = torch.zeros(1, 2, 3, dtype=torch.float64)


def test_crossed_ends_are_refused() -> None:
    with pytest.raises(CertificateError, match=r"lower 2.0 above upper 1.0"):
        Certificate(2 * ONE, ONE, CODES, WAY, method="mine")
    with pytest.raises(CertificateError):
        Certificate(torch.nan * ONE, ONE, CODES, WAY)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f, x, y: (f, x * torch.nan, y), "points hold NaN"),
        (lambda f, x, y: (_with(f, w=f.w * torch.inf), x, y), "net holds NaN"),
        (lambda f, x, y: (f, x[:, :0], y[:, :0]), "expected points"),
        (lambda f, x, y: (f, x[..., :1], y), "expected points"),
        (lambda f, x, y: (f, x, y[:, :1]), "expected labels"),
        (lambda f, x, y: (f, x, 0.5 * y), "labels must be"),
        (lambda f, x, y: (f, x.float(), y), "float64"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_questions_are_refused(change: object, message: str) -> None:
    good = question(1, d=3)
    with pytest.raises(CertificateError, match=message):
        Question(*change(good.form, good.x, good.y))


def _with(form: Form, w: torch.Tensor) -> Form:
    return Form(w, form.b, form.readout, form.activation)


def test_bad_upper_bounds_and_radii_are_refused() -> None:
    asked = question(1)
    for above in (torch.full(asked.shape, -1.0), torch.full(asked.shape, torch.nan)):
        with pytest.raises(CertificateError, match="known upper bounds"):
            ExactL2().answer(asked, above.double())
    with pytest.raises(CertificateError, match="radius"):
        ExactL2().answer(asked).certified_accuracy([-1.0])
    with pytest.raises(CertificateError, match="at least one point"):
        certificate(trained(), points=0)


def test_an_attack_below_a_certificate_is_an_error() -> None:
    sandwich(ONE, ONE * (1 - 1e-10))
    with pytest.raises(CertificateError, match=r"pgd found 0.9 below a certified radius of 1"):
        sandwich(ONE, 0.9 * ONE, "pgd")
    asked = question(2)
    steep = Lipschitz().answer(asked)
    with pytest.raises(CertificateError, match="below a certified radius"):
        Lipschitz().answer(asked, torch.where(asked.lost, torch.inf, 0.5 * steep.lower))


def test_the_nodes_run_out_honestly() -> None:
    asked = question(7, most=60, points=6, d=40)
    asked = question(11, most=60, points=6, d=40) if asked.form.w.shape[1] < 20 else asked
    cut, whole = ExactL2(nodes=1).answer(asked), ExactL2().answer(asked)
    assert (cut.lower <= whole.upper * (1 + 1e-9)).all()
    assert (cut.upper >= whole.lower * (1 - 1e-9)).all()
    assert set(cut.status.unique().tolist()) <= {EXACT, TIMEOUT, BOUND}
    assert cut.counts["timeout"] > 0


@pytest.mark.parametrize("method", [BruteForce(), Subsets()], ids=lambda m: m.kind)
def test_oracles_say_what_they_cannot_do(method: object) -> None:
    asked = question(3, Power(3.0))
    found = method.answer(asked)
    assert (found.status[~asked.lost] == UNSUPPORTED).all()
    assert "piecewise linear" in found.why
    assert "unsupported" in str(found)
    with pytest.raises(CertificateError, match="neurons"):
        type(method)(most=1).answer(_opposed())


def _opposed() -> Question:
    """Two neurons for the label and three against it."""
    w = torch.eye(5, dtype=torch.float64)[None]
    a = torch.tensor([1.0, 1, -1, -1, -1], dtype=torch.float64)[None, :, None]
    form = Form(w, torch.zeros(1, 5).double(), a, Relu())
    x = torch.tensor([[[3.0, 3, 0, 0, 0]]], dtype=torch.float64)
    return Question(form, x, torch.ones(1, 1).double())


def test_a_run_is_certified_in_its_own_units() -> None:
    world = Clusters(k=4, d=64)
    run = still(FeatureDecoupling(), world, test=8)
    found = certificate(run)
    assert found.counts["exact"] == 8
    assert found.unit == world.unit
    assert 0.3 < found.mean_radius().item() < 0.75
    assert "exact-l2" in str(found)
    assert found.certified_accuracy([0.0, 0.1 * world.unit])[0, 1] == 1.0
    fine = certificate(trained_fine(), points=2)
    assert fine.method == "softmax-exact"
    assert (fine.lower > 0).all()


def test_closed_forms_at_the_centres() -> None:
    """Averaging: |mu|/sqrt(k); decoupling with beta = 1/2: 1/2 (y = 1), 1/sqrt 2 (y = -1)."""
    world = Clusters(k=6, d=24)
    mu = world.centres((0,), torch.float64)
    y = world.signs.double()[None]
    for net, radii in (
        (FeatureAveraging(), torch.full((6,), 6**-0.5).double()),
        (FeatureDecoupling(), torch.where(world.signs > 0, 0.5, 0.5**0.5).double()),
    ):
        form = still(net, world).model.double().form
        found = ExactL2().answer(Question(form, mu, y))
        assert found.counts["exact"] == 6
        torch.testing.assert_close(found.lower[0] / world.unit, radii, rtol=2e-4, atol=0)
        torch.testing.assert_close(found.upper[0] / world.unit, radii, rtol=2e-4, atol=0)


def test_a_linear_net_has_the_distance_to_its_plane() -> None:
    w = torch.tensor([[[3.0, 4.0], [-3.0, -4.0]]], dtype=torch.float64)
    form = Form(w, torch.zeros(1, 2).double(), torch.tensor([[[1.0], [-1.0]]]).double(), Relu())
    x = torch.tensor([[[1.0, 1.0], [-2.0, 0.0]]], dtype=torch.float64)
    found = ExactL2().answer(Question(form, x, torch.tensor([[1.0, -1.0]]).double()))
    torch.testing.assert_close(
        found.lower, torch.tensor([[7 / 5, 6 / 5]]).double(), rtol=1e-6, atol=0
    )


@pytest.mark.parametrize("run", [trained, lambda: gaussian(trained(), seed=3)])
def test_the_bracket_holds_what_attacks_find(run: object) -> None:
    run = run()
    radii = [0.25 * run.data.unit, 0.75 * run.data.unit]
    attacked = SuiteL2().curve(run, radii, points=4)
    found = certificate(run, points=4, above=attacked.smallest)
    sandwich(found.lower, attacked.smallest)
    assert (found.certified_accuracy(radii) <= attacked.robust_accuracy() + 1e-12).all()
