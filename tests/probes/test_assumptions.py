"""Slacks of the theorems' conditions, computed here by their formulas."""

from __future__ import annotations

import math

import pytest
import torch

from lab import still, trained, trained_fine
from unmix.data.clusters import Clusters
from unmix.nets.constructed import FeatureAveraging
from unmix.probes.assumptions import assumptions, delta, epsilon
from unmix.probes.base import Measured


def test_epsilon_at_the_papers_baseline() -> None:
    # Section 2: max{1.71, 58, 0.1} = 58 and Delta = 1780.
    assert delta(3072) == pytest.approx(1780, abs=1)
    assert epsilon(10, 3072, 1000) == pytest.approx(58, abs=0.1)
    per = 100
    first = 2 * math.log(per) / (math.sqrt(per) - math.log(per))
    assert first == pytest.approx(1.71, abs=0.01)
    assert epsilon(10, 10**9, 1000) == pytest.approx(first)
    assert epsilon(10, 10**9, 5) == pytest.approx(20)


def test_hyper_parameters_by_hand() -> None:
    run = trained("train.eta=0.001", "net.sigma_w=0.01", "data.positive=[0]")
    probe = assumptions(run)
    wanted = {
        "d >= k^10": 32 / 4**10,
        "n >= k^7": 64 / 4**7,
        "n <= exp(ln^2 d)": math.exp(math.log(32) ** 2) / 64,
        "m within 4x of k": 4 * 2 / 4,
        "c <= 4": 4 / 3,
        "eta <= d^-2": 1 / 32**2 / 0.001,
        "sigma_w^2 <= eta k^-5": 0.001 / 4**5 / 0.0001,
        "T >= 1/eta": 30 * 0.001,
    }
    for name, value in wanted.items():
        assert probe[name].tolist() == pytest.approx([value] * 2), name


def test_the_training_set_by_loops() -> None:
    run = trained()
    probe, bound, d, n, k = assumptions(run), delta(32), 32, 64, 4
    batch, r = run.train_batch, 1
    x, xi, mu = batch.x[r], run.data.noise(batch, run.experiment.seeds)[r], run.centres[r]
    c = batch.cluster[r].tolist()
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    same = [float(x[i] @ x[j]) for i, j in pairs if c[i] == c[j]]
    sizes = [c.count(j) for j in range(k)]
    wanted = {
        "A.6.1": 2 * math.log(d) / max(abs(float(v.norm()) - d**0.5) for v in xi),
        "A.6.2": 3 * d**0.5 / max(float(v.norm()) for v in x),
        "A.6.3": bound / max(abs(float(xi[i] @ xi[j])) for i, j in pairs),
        "A.6.4": bound / max(abs(float(a @ b)) for a in mu for b in xi),
        "A.6.5": bound / max(abs(float(x[i] @ x[j])) for i, j in pairs if c[i] != c[j]),
        "A.6.6": min(min(same) / (d / 2), 2 * d / max(same)),
        "A.6.7": math.sqrt(2 * n / k) * math.log(n / k) / max(abs(s - n / k) for s in sizes),
    }
    for place, value in wanted.items():
        (name,) = [column for column in probe.values if column.startswith(place)]
        assert probe[name][r].item() == pytest.approx(value), name


def test_the_initialisation_by_hand() -> None:
    run = trained("net.sigma_w=0.01", "net.sigma_b=0.02")
    probe, w, b = assumptions(run), run.initial["w"][0], run.initial["b"][0]
    z = run.train_batch.x[0] @ w.T + b
    wanted = {
        "A.10 ||w0|": 2 * math.log(32) / max(abs(float(v.norm()) / 0.01 - 32**0.5) for v in w),
        "A.10 |b0|": 2 * 0.02 * math.sqrt(2 * math.log(2)) / float(b.abs().max()),
        "A.13": 0.05 * 32**0.5 / (64 * 2) / float(z.abs().max()),
    }
    cluster = run.train_batch.cluster[0]
    least = min(float((z[cluster == j] >= 0).sum(0).min()) for j in range(4))
    wanted["A.12"] = least / (64 / (3 * 4 * 2**2))
    for place, value in wanted.items():
        (name,) = [column for column in probe.values if column.startswith(place)]
        assert probe[name][0].item() == pytest.approx(value), name


def test_the_condition_on_a_k_class_start() -> None:
    run = trained_fine("net.sigma_w=0.01")
    probe, w = assumptions(run), run.initial["w"][1]
    on, cluster = run.train_batch.x[1] @ w.T >= 0, run.train_batch.cluster[1]
    least = min(int(on[cluster == j].sum(0).min()) for j in range(4))
    wanted = least / (64 / (3 * 4**3 * 2**2))
    assert probe["C.3 |T_srj| >= n/(3 k^3 h^2)"][1].item() == pytest.approx(wanted)
    assert not [name for name in probe.values if name.startswith(("A.12", "A.13"))]


def test_met_is_the_share_of_slacks_of_one_or_more() -> None:
    probe = assumptions(trained())
    slacks = torch.stack([v for name, v in probe.values.items() if name != "met"], 1)
    assert probe["met"].tolist() == (slacks >= 1).double().mean(1).tolist()
    assert 0 < probe["met"].min() < 1


def test_units_do_not_matter_to_the_training_set() -> None:
    one, other = (
        assumptions(trained(f"data.scale={scale}")).values for scale in ("sqrt-d", "unit")
    )
    names = [name for name in one if name.startswith("A.6")]
    assert len(names) == 7
    for name in names:
        torch.testing.assert_close(one[name], other[name], rtol=1e-9, atol=0)


def test_a_constructed_net_has_no_initialisation() -> None:
    probe: Measured = assumptions(still(FeatureAveraging(), Clusters(k=4, d=32)))
    assert not [name for name in probe.values if name.startswith(("A.10", "A.12", "A.13", "C.3"))]
    assert probe["eta <= d^-2"].isnan().all()
