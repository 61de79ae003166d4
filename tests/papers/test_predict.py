"""Closed forms against integration, simulation and brute force that do not know them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from scipy.stats import norm

from exact import radius
from lab import put, still
from unmix.attacks.suite import SuiteL2
from unmix.data.clusters import Clusters
from unmix.experiment import Experiment, Samples
from unmix.nets.constructed import FeatureAveraging, FeatureDecoupling
from unmix.nets.k_class import KClass
from unmix.nets.two_layer import TwoLayer
from unmix.papers.averaging import predict
from unmix.train.descent import GradientDescent


def experiment(net=None, n: int = 1000, eta: float = 1e-3, **data) -> Experiment:
    return Experiment(
        data=Clusters(**({"k": 10, "d": 3072} | data)),
        net=net or TwoLayer(),
        train=GradientDescent(eta=eta),
        samples=Samples(train=n),
    )


CASES = {
    "B0": experiment(),
    "k-class": experiment(KClass()),
    "k-class, h=3": experiment(KClass(h=3)),
    "few points, weak signal": experiment(n=200, alpha=0.5, sigma=2.0),
    "unit": experiment(eta=3.0, scale="unit"),
    "four classes": experiment(KClass(), n=400, k=4, d=500),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_margins_solve_their_equation(case: Experiment) -> None:
    data, n = case.data, case.samples.train
    width = case.net.h if isinstance(case.net, KClass) else case.net.m
    rivals = data.k - 1 if isinstance(case.net, KClass) else 1
    # A point is pushed by its n/k companions along the centre and by itself along its noise.
    energy = data.alpha**2 * data.unit**2 / data.k + data.sigma**2 * data.unit**2 / n
    kappa = case.train.eta / width * energy
    assert predict.growth(case) == pytest.approx(kappa)
    times = np.array([1.0, 10.0, 100.0, 1000.0, 3000.0])
    path = solve_ivp(
        lambda t, q: kappa * rivals / (rivals + np.exp(q)),
        (0, times[-1]),
        [0.0],
        t_eval=times,
        rtol=1e-10,
        atol=1e-12,
    )
    found = [predict.margin(case, t) for t in times]
    assert found == pytest.approx(path.y[0].tolist(), rel=1e-6)
    assert predict.margin(case, 0) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_lambda_is_the_margin_without_the_points_own_noise(case: Experiment) -> None:
    data = case.data
    share = data.alpha**2 + data.sigma**2 * data.k / case.samples.train
    wanted = predict.margin(case, 50) * data.alpha**2 / share
    assert predict.own_lambda(case, 50) == pytest.approx(wanted)


@pytest.mark.parametrize("level", [0.5, 1.7, 5.4])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_steps_for_inverts_own_lambda(case: Experiment, level: float) -> None:
    steps = predict.steps_for(case, level)
    assert isinstance(steps, int)
    assert predict.own_lambda(case, steps - 1) <= level <= predict.own_lambda(case, steps + 1)
    around = abs(predict.own_lambda(case, steps) - level)
    assert all(around <= abs(predict.own_lambda(case, steps + s) - level) + 1e-9 for s in (-1, 1))


def test_at_least_one_step_is_asked_for() -> None:
    assert predict.steps_for(experiment(eta=1e3), 0.1) == 1


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        # Section 2, off-class law.
        (experiment(), 0.0620),
        (experiment(KClass()), 0.0179),
        (experiment(d=768), 0.102),
        (experiment(d=12288), 0.036),
        (experiment(k=20), 0.080),
        (experiment(k=4), 0.0436),
    ],
)
def test_off_ratios(case: Experiment, expected: float) -> None:
    u = predict.off_ratio(case)
    assert u == pytest.approx(expected, abs=6e-4)
    rivals = case.data.k - 1 if isinstance(case.net, KClass) else 1
    own = 1 if rivals > 1 else case.data.k // 2
    spread = math.sqrt(own / case.data.d)
    assert u == pytest.approx(norm.cdf(-u / spread) / rivals, rel=1e-9)


def test_the_cosine_is_that_of_a_vector_with_these_parts() -> None:
    case, level = experiment(TwoLayer(sigma_w=3e-4), k=4, d=2000, n=500), 1.7
    data, u = case.data, predict.off_ratio(case)
    made = torch.Generator().manual_seed(0)
    mu = data.centres((0,))[0]
    w = level / data.unit**2 * (mu[0] + mu[1] - u * (mu[2] + mu[3]))
    # Noise: sigma = (k/n) lambda on n/k points of each own cluster, and the initial weights.
    noise = torch.randn(250, 2000, generator=made, dtype=torch.float64)
    w += 4 / 500 * level * (noise / noise.square().sum(1, keepdim=True)).sum(0)
    w += 3e-4 * torch.randn(2000, generator=made, dtype=torch.float64)
    cosine = float((mu[:2] @ w).mean() / w.norm() / data.unit)
    assert cosine == pytest.approx(predict.cosine_on(case, level), rel=0.02)
    target = level / data.unit**2 * (mu[0] + mu[1])
    error = float(data.unit * (w - target).norm()) / level
    assert error == pytest.approx(predict.weight_error(case, level), rel=0.05)


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        # B.25, balanced clusters: pred .263, .468, .178, .109, .514, .320.
        (experiment(), 0.263),
        (experiment(n=250), 0.468),
        (experiment(n=4000), 0.178),
        (experiment(k=4), 0.109),
        (experiment(k=20), 0.514),
        (experiment(d=768), 0.320),
    ],
)
def test_weight_errors(case: Experiment, expected: float) -> None:
    assert predict.weight_error(case, 1.7) == pytest.approx(expected, abs=1.5e-3)


@pytest.mark.parametrize("beta", [0.0, 0.1, 0.2929, 0.4, 0.5])
@pytest.mark.parametrize("label", [1, -1])
def test_decoupling_in_the_plane_against_brute_force(beta: float, label: int) -> None:
    data = Clusters(k=2, d=2, sigma=0.0)
    run = still(FeatureDecoupling(beta=beta), data)
    centre = run.centres[0, 0 if label > 0 else 1].numpy()
    truth = radius(run.model, centre, float(label), 3.0) / data.unit
    assert predict.decoupling_radius(beta, 1, label) == pytest.approx(truth, abs=1e-5)


@pytest.mark.parametrize(
    ("beta", "k", "plus", "minus"),
    [
        # Table 1.6 at k = 10.
        (0.5, 10, 0.5, 0.7071),
        (0.2929, 10, 0.7071, 0.7071),
        (0.0, 10, 0.4082, 0.4082),
    ],
)
def test_decoupling_at_ten_clusters(beta: float, k: int, plus: float, minus: float) -> None:
    assert predict.decoupling_radius(beta, k // 2, 1) == pytest.approx(plus, abs=6e-5)
    assert predict.decoupling_radius(beta, k // 2, -1) == pytest.approx(minus, abs=6e-5)


def test_averaging_in_the_plane_against_brute_force() -> None:
    data = Clusters(k=2, d=2, sigma=0.0)
    run = still(FeatureAveraging(), data)
    truth = radius(run.model, run.centres[0, 0].numpy(), 1.0, 3.0) / data.unit
    assert predict.averaging_radius(data) == pytest.approx(truth, abs=1e-5)
    assert predict.averaging_radius(Clusters(k=10, alpha=2.0)) == pytest.approx(2 / 10**0.5)


@pytest.mark.parametrize("labels", [2, 4, 8])
def test_granular_radii_against_attacks(labels: int) -> None:
    # f_g = relu(lambda <sum of the group, x>/d) with a large lambda: log-sum-exp is a maximum.
    data = Clusters(k=8, d=32, sigma=0.0)
    run = still(KClass(labels=labels), data, test=4)
    group = data.groups(labels)
    w = torch.stack([run.centres[0, group == g].sum(0) for g in range(labels)])
    run = put(run, w=(60 / 32 * w)[None])
    found = SuiteL2().curve(run, [0.1 * i * data.unit for i in range(1, 9)])
    assert found.mean_radius().item() == pytest.approx(
        predict.granular_radius(data, labels), rel=0.02
    )


def test_small_closed_forms() -> None:
    assert predict.non_robust_radius(10) == 0.5
    # 4.6: .0099 at n/k = 100, .0385 at 25.
    assert predict.none_active(1000, 10) == pytest.approx(0.0099, abs=5e-5)
    assert predict.none_active(1000, 40) == pytest.approx(0.0385, abs=5e-5)
