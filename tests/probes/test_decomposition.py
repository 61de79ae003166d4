"""The decomposition of trained weights: exact, signed, and consistent with itself."""

from __future__ import annotations

import pytest
import torch

from lab import still, trained, trained_fine
from small_runs import small
from unmix.data.clusters import Clusters
from unmix.errors import DataError
from unmix.experiment import run as train
from unmix.nets.two_layer import TwoLayer
from unmix.probes.decomposition import decomposition, own_neurons

MAKERS = {"binary": trained, "k-class": trained_fine}
WORLDS = {
    "plain": (),
    "long": ("train.steps=300",),
    "scaled": ("data.alpha=1.5", "data.sigma=0.5"),
    "oblique": ("data.cosine=0.2",),
    "unit": ("data.scale=unit", "train.eta=1.0"),
    "lopsided": ("data.positive=[2]",),
    "torch's slope, zero start": ("net.sigma_w=0.0", "net.slope_at_zero=1"),
}


@pytest.mark.parametrize("changes", WORLDS.values(), ids=WORLDS)
@pytest.mark.parametrize("label", MAKERS)
def test_the_decomposition_is_exact(label: str, changes: tuple) -> None:
    run = MAKERS[label]("train.engine=reference", *changes)
    probe = decomposition(run)
    assert probe["error_paper"].max() <= 1e-12
    assert probe["eq4"].max() <= 1e-12
    # Rebuilt here from lambda and sigma, term by term, for one neuron.
    mu = run.data.alpha * run.centres[0]
    xi = run.data.noise(run.train_batch, run.experiment.seeds)[0]
    w = run.initial["w"][0, 1].clone()
    for j in range(4):
        w += probe["lambda"][0, 1, j] * mu[j] / mu[j].square().sum()
    for i in range(64):
        w += probe["sigma"][0, 1, i] * xi[i] / xi[i].square().sum()
    torch.testing.assert_close(w, run.params["w"][0, 1], rtol=1e-10, atol=1e-13)
    if label == "binary":
        scale = run.params["b"].abs().max()
        assert probe["bias_recursion"].max() <= 1e-12 * scale
        assert probe["bias_identity"].max() <= 1e-12 * scale
        assert torch.equal(probe["bias_max"], run.params["b"].abs().amax(1))


@pytest.mark.parametrize("label", MAKERS)
def test_signs_are_those_of_corollary_b5(label: str) -> None:
    run = MAKERS[label]("train.steps=300")
    probe = decomposition(run)
    assert probe["wrong_signs"].tolist() == [0.0, 0.0]
    own = own_neurons(run).T
    assert (probe["lambda"][:, own] > 0).all()
    assert (probe["lambda"][:, ~own] < 0).all()
    # Zeros are why the corollary is not strict.
    off = probe["sigma"][~probe["own_sigma"]]
    assert (off <= 0).all()
    assert 0.1 < (off == 0).double().mean() < 0.9
    torch.testing.assert_close(probe["lambda_own"], probe["lambda"][:, own].mean(1))
    torch.testing.assert_close(probe["lambda_off"], probe["lambda"][:, ~own].mean(1))
    for r in (0, 1):
        lam, sig = probe["lambda"][r][own], probe["sigma"][r][probe["own_sigma"][r]]
        assert probe["lambda_own_ratio"][r] == lam.max() / lam.min()
        assert probe["sigma_own_max"][r] == sig.max()
        assert probe["sigma_own_ratio"][r] == sig.max() / sig.min()
        torch.testing.assert_close(probe["sigma_own"][r], sig.mean())


def test_a_wrong_sign_is_counted() -> None:
    run = trained()
    sums = {name: s.clone() for name, s in run.trace.final.items()}
    sums["paper"][0, 3] *= -1e3
    broken = type(run)(
        run.experiment,
        run.params,
        type(run.trace)(run.trace.steps, run.trace.columns, run.trace.stops, sums),
    )
    assert decomposition(broken)["wrong_signs"][0] > 0
    assert decomposition(broken)["wrong_signs"][1] == 0
    assert decomposition(broken)["error_paper"][0] > 0.1


def test_own_neurons_of_labels_and_classes() -> None:
    assert (
        own_neurons(trained()).tolist()
        == [[True, True, False, False]] * 2 + [[False, False, True, True]] * 2
    )
    fine = own_neurons(trained_fine())
    assert fine.sum(1).tolist() == [2, 2, 2, 2]
    assert fine[1].tolist() == [False, False, True, True, False, False, False, False]


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (lambda: train(small("train.record.coefficients=[]")), "did not record the coefficients"),
        (lambda: train(small('train.record.coefficients=["label-free"]')), "did not record"),
        (lambda: train(small("train.steps=0")), "did not record the coefficients of any step"),
        (lambda: still(TwoLayer(), Clusters(k=4, d=32)), "did not record the coefficients"),
        (lambda: train(small("data.sigma=0.0")), "without noise"),
    ],
    ids=["none", "another reading", "no step", "not trained", "no noise"],
)
def test_what_cannot_be_decomposed_is_said(run, words: str) -> None:
    with pytest.raises(DataError, match=words):
        decomposition(run())
