"""Probes of symmetric nets, beside plain computations on the same weights."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from lab import purified
from unmix import catalog
from unmix.attacks.base import attack
from unmix.errors import DataError
from unmix.experiment import run as train
from unmix.nets.activations import GaussianRelu
from unmix.papers.purification.measures.robust import linear_radii, oracle_radii
from unmix.perturbations.base import dense
from unmix.perturbations.gradient import FGM
from unmix.probes import coupling
from unmix.probes.base import probe
from unmix.probes.coded import Coded
from unmix.probes.lasso import lasso_path
from unmix.probes.tickets import C2
from unmix.train.engines.symmetric import SymmetricGemm
from unmix.train.engines.symmetric_reference import SymmetricReference


def test_activity_and_response_are_means_over_points() -> None:
    coded = Coded.of(purified("dtype=float64"))
    z, y = coded.points(200)
    x, b = z.dense(), coded.params["b"]
    s = x @ coded.u.transpose(1, 2)
    on = (s.abs() >= b[:, None, None]).double().mean(1)
    learner = SymmetricGemm.still(coded.params, reach=9.0)
    torch.testing.assert_close(learner.activity(z), on)
    relu = GaussianRelu(float(coded.params["sigma"][0]))
    g = relu.slope(s - b[:, None, None]) + relu.slope(-s - b[:, None, None])
    wanted = torch.einsum("rn,rnm,rnd->rmd", y, g, x) / 200
    torch.testing.assert_close(learner.response(z, y), wanted, rtol=1e-6, atol=1e-9)


def test_a_still_engine_is_the_trained_net() -> None:
    run = purified("dtype=float64")
    coded = Coded.of(run)
    z, _ = coded.points(50)
    f = run.classifier.decision(z.dense())
    exact = SymmetricGemm.still(coded.params, reach=9.0).outputs(z)
    torch.testing.assert_close(exact, f, rtol=1e-9, atol=1e-12)
    schedule = SymmetricGemm.still(coded.params).schedule
    plain = SymmetricReference(coded.params, schedule)
    torch.testing.assert_close(plain.outputs(z), f, rtol=1e-9, atol=1e-12)


def test_tickets_are_counted_by_their_definition() -> None:
    run = purified()
    found, d = probe(run, "tickets"), run.data.d
    w = run.initial["w"].double()
    labels = run.data.label_vector(run.experiment.seeds)
    net = run.experiment.net
    size = net.b / math.sqrt(net.c1 * math.log(d))
    for r in range(2):
        sure = potential = 0
        for row in w[r]:
            square = (row / size).square()
            above = int((square >= (net.c1 - C2) * math.log(d)).sum())
            potential += above
            j = int(square.argmax())
            high = float(square[j]) >= (net.c1 + C2) * math.log(d)
            sure += high and above == 1 and float(row[j] * labels[r, j]) > 0
        assert float(found["potential"][r]) == pytest.approx(potential / d)
        assert float(found["sure"][r]) == pytest.approx(sure / d)


def test_sums_over_pairs_of_neurons() -> None:
    run = purified()
    found = probe(run, "dense-mixture")
    w, first = run.params["w"].double(), run.initial["w"].double()
    pairs = torch.einsum("rid,rjd->rij", w, w).square().sum((1, 2))
    torch.testing.assert_close(
        found["Rij"], pairs / w.square().sum((1, 2)).square(), rtol=1e-4, atol=0
    )
    own = (w * first).sum(-1).square().sum(1)
    sizes = (w.square().sum(-1) * first.square().sum(-1)).sum(1)
    torch.testing.assert_close(found["R0"], own / sizes, rtol=1e-4, atol=0)


def test_a_rotation_of_the_input_changes_no_probe() -> None:
    plain, turned = purified("dtype=float64"), purified("dtype=float64", "data.basis=haar")
    # The starts differ (they are drawn in input space), so compare one net in both bases.
    coded = Coded.of(turned)
    u = turned.params["w"] @ turned.data.dictionary(turned.experiment.seeds)
    torch.testing.assert_close(coded.u, u)
    x = turned.fresh(30)
    f = turned.classifier.decision(x.x)
    torch.testing.assert_close(
        SymmetricGemm.still(coded.params, reach=9.0).outputs(x.z), f, rtol=1e-8, atol=1e-10
    )
    assert Coded.of(plain).scene.dictionary is None


def test_fewer_features_than_dimensions_are_attacked_and_probed_where_it_means_something() -> None:
    run = purified("data.D=18", "data.basis=transform")
    seeds, span = run.experiment.seeds, run.data.features(run.experiment.seeds)
    names = ("label-direction", "min-norm", "fgm")
    found = attack(run, [catalog.load("attacks", name)() for name in names], [0.2, 0.4], points=15)
    assert found.unverified == 0
    along = found.by_attack["label-direction"]
    assert along.isfinite().double().mean() > 0.5
    ahead = (run.data.dictionary(seeds) @ run.data.label_vector(seeds).unsqueeze(-1))[..., 0]
    torch.testing.assert_close((span.transpose(1, 2) @ span @ ahead[..., None])[..., 0], ahead)
    # The pure rule and the linear one have their exact radii there, too.
    assert (oracle_radii(run, 200).median(1).values > linear_radii(run, 200).median(1).values).all()
    assert (probe(run, "density")["on_support"] > 0).all()
    for name in ("sparsity", "mixtures"):
        assert all(value.isfinite().all() for value in probe(run, name).values.values())
    found, coded = probe(run, "dense-mixture"), Coded.of(run)
    u = run.params["w"] @ span.transpose(1, 2).float()
    torch.testing.assert_close(coded.u, u, rtol=1e-4, atol=1e-5)
    purity = u.abs().amax(-1) / run.params["w"].norm(dim=-1)
    torch.testing.assert_close(coded.mixture.purity, purity, rtol=1e-4, atol=1e-5)
    assert (found["covered"] <= 1).all()
    assert (probe(run, "growth")["lucky"] > 0).all()
    assert (probe(run, "purified")["nu_ratio"] < 0.8).all()
    assert (probe(run, "tickets")["sure_alive"] <= 1).all()
    with pytest.raises(DataError, match="D=18 features in d=24"):
        probe(run, "coupling")


def test_overlapping_features_are_attacked_and_probed() -> None:
    run = purified("data.basis=frame", "data.D=30")
    seeds, coded = run.experiment.seeds, Coded.of(run)
    m = run.data.features(seeds, torch.float32)
    torch.testing.assert_close(coded.u, run.params["w"] @ m.transpose(1, 2))
    # As a function of codes the net has the weights M^T w.
    batch = run.fresh(40)
    torch.testing.assert_close(
        coded.reader.outputs(batch.z), run.classifier.decision(batch.x), rtol=1e-3, atol=1e-5
    )
    found = attack(run, [catalog.load("attacks", "label-direction")()], [0.4, 2.0], points=15)
    assert found.smallest.isfinite().double().mean() > 0.5
    dense_before = probe(run, "density")
    assert (dense_before["participation"] < dense_before["participation_before"]).all()
    assert (dense_before["universal"] < dense_before["universal_before"]).all()
    assert (probe(run, "purified")["nu_ratio"] < 0.8).all()
    assert (probe(run, "growth")["lucky"] > 0).all()
    assert (probe(run, "tickets")["potential_over_law"] - 1).abs().max() < 0.3
    for name in ("dense-mixture", "sparsity"):
        assert all(value.isfinite().all() for value in probe(run, name).values.values())
    for name, message in (("coupling", "basis=frame with D=30"), ("mixtures", "not unique")):
        with pytest.raises(DataError, match=message):
            probe(run, name)


def test_the_rule_that_knows_the_support_breaks_at_its_radius() -> None:
    run = purified("data.basis=frame", "data.D=30")
    radii, seeds = oracle_radii(run, 30), run.experiment.seeds
    z = run.data.codes(seeds, 30, "test")[0].dense()
    w, m = run.data.label_vector(seeds), run.data.dictionary(seeds)
    for r in range(2):
        for code, radius in zip(z[r], radii[r], strict=True):
            on = code.nonzero()[:, 0]
            if len(on):
                rule = w[r, on] @ torch.linalg.pinv(m[r][:, on])
                wanted = (w[r] @ code).abs() / rule.norm()
                assert float(radius) == pytest.approx(float(wanted), rel=1e-9)
    with pytest.raises(DataError, match="orthonormal features only"):
        linear_radii(run, 5)


def test_perturbations_become_sparser_and_the_mixture_goes() -> None:
    run = purified()
    dense = probe(run, "density")
    assert (dense["participation"] < dense["participation_before"]).all()
    assert (dense["on_support"] > dense["on_support_before"]).all()
    changed = probe(run, "purified")
    assert (changed["nu_ratio"] < 0.8).all()
    torch.testing.assert_close(
        changed["own"] + changed["along"] + changed["rest"],
        torch.ones(2).double(),
        rtol=1e-5,
        atol=0,
    )


def test_the_growth_race_is_a_mean_over_the_distribution() -> None:
    run = purified()
    found = probe(run, "growth")
    assert (found["lucky"] > 3 * found["unlucky"]).all()
    assert (found["pull"] > 0).all()
    assert (found["pull"] < 0.5).all()


def test_couplings_are_the_definitions_with_the_noise_averaged() -> None:
    run = purified("dtype=float64")
    found, (clean, net) = probe(run, "coupling"), (Coded.of(run, w) for w in ("before", "after"))
    x = dense(net.points(coupling.POINTS)[0])
    delta = FGM().perturb(net.scene, *net.points(coupling.POINTS), run.experiment.train.tau)

    def linear(coded: Coded, mu: torch.Tensor, there: torch.Tensor) -> torch.Tensor:
        """E_rho of Defs D.3 and F.10, branch by branch."""
        b, sigma = coded.params["b"][:, None, None], float(coded.params["sigma"][0])
        s, q = x @ coded.u.transpose(1, 2), there @ mu.transpose(1, 2)
        total = torch.zeros_like(q)
        for sign in (1, -1):
            t = (sign * s - b) / sigma
            bell = torch.exp(-t * t / 2) * sigma / math.sqrt(2 * math.pi)
            total += sign * ((sign * q - b) * torch.special.ndtr(t) + bell)
        return total.sum(-1)

    pure = clean.u.where(clean.mixture.large, 0.0)
    exact = (SymmetricGemm.still(c.params, reach=9.0) for c in (net, clean))
    there, before = (f.outputs(at) for f, at in zip(exact, (x + delta, x), strict=True))
    for name, mu, aim in (("robust_gap", net.u, there), ("kept_gap", pure, before)):
        wanted = (linear(net, mu, x + delta) - aim).abs().mean(1) / aim.abs().mean(1)
        torch.testing.assert_close(found[name], wanted, rtol=1e-4, atol=1e-5)
    mu, w = coupling.stand_ins(clean), clean.label_vector
    # At the winners of a feature mu* adds up to w*_j, and there is nothing else.
    each = mu.sum(1)
    torch.testing.assert_close(each, torch.where(each == 0, each, w))
    assert ((mu != 0).sum(-1) <= 1).all()
    score, nothing = (x @ w.unsqueeze(-1))[..., 0], linear(clean, 0 * mu, x)
    brought = linear(clean, mu, x) - nothing
    cosine = torch.nn.functional.cosine_similarity(brought, score)
    torch.testing.assert_close(found["main_correlation"], cosine, rtol=1e-5, atol=0)
    off = linear(clean, clean.u - pure, x) - nothing
    share = off.abs().mean(1) / before.abs().mean(1)
    torch.testing.assert_close(found["small_share"], share, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(
        found["main_bias"], nothing.std(1) / score.std(1), rtol=1e-4, atol=1e-6
    )


def test_lasso_solves_its_problem() -> None:
    made = torch.Generator().manual_seed(0)
    columns = torch.nn.functional.normalize(torch.randn(7, 5, generator=made).double(), dim=1)
    x = torch.randn(2, 5, generator=made).double()
    path = lasso_path(x, columns)
    assert (path.error.diff(dim=0) <= 1e-6).all()
    top = (x @ columns.T).abs().amax(1)
    weight = float(torch.logspace(0, -3, 16)[6])

    def objective(pair: np.ndarray, r: int) -> float:
        y = torch.from_numpy(pair[:7] - pair[7:])
        gap = x[r] - y @ columns
        return float(gap @ gap) + 2 * weight * float(top[r]) * pair.sum()

    for r in range(2):
        best = minimize(objective, np.zeros(14), args=(r,), bounds=[(0, None)] * 14, tol=1e-12)
        y = torch.from_numpy(best.x[:7] - best.x[7:])
        gap = x[r] - y @ columns
        assert float(path.error[6, r]) == pytest.approx(
            float(gap @ gap / (x[r] @ x[r])), rel=0.02, abs=1e-4
        )
    needed = path.needed(0.05)
    assert ((needed >= 1) & (needed <= 7)).all()


def test_what_was_not_trained_adversarially_has_no_before() -> None:
    run = purified()
    clean = run.experiment.with_("train.kind=noisy-descent", "train.steps=2")

    with pytest.raises(DataError, match="no adversarial part"):
        probe(train(clean), "purified")
    with pytest.raises(DataError, match="only a random start"):
        probe(train(clean.with_("net.initial=pure", "net.m=48")), "tickets")
