"""B0 of the papers' experiments, trained and attacked once a session for each learner."""

from __future__ import annotations

import pytest

from lab import unchecked_shapes
from unmix.attacks.base import Attacked
from unmix.attacks.suite import STANDARD, robustness
from unmix.data.clusters import Clusters
from unmix.experiment import Experiment, Run, Samples
from unmix.experiment import run as train
from unmix.nets.base import Net
from unmix.nets.k_class import KClass
from unmix.nets.two_layer import TwoLayer
from unmix.train.base import Record
from unmix.train.descent import GradientDescent

READINGS = ("paper", "slides-divide", "label-free")
POINTS = 30


@pytest.fixture(autouse=True)
def _unchecked(unchecked: None) -> None:
    """In every test of this folder."""


def baseline(net: Net) -> Experiment:
    """k=10, d=3072, n=1000, alpha=sigma=1, eta=1e-3, T=100; five seeds."""
    record = Record(coefficients=READINGS)
    return Experiment(
        data=Clusters(k=10, d=3072),
        net=net,
        train=GradientDescent(eta=1e-3, steps=100, engine="gram", record=record),
        samples=Samples(train=1000, test=POINTS),
        seeds=range(5),
    )


def trained(net: Net) -> Run:
    with unchecked_shapes():
        return train(baseline(net))


def attacked(run: Run) -> Attacked:
    with unchecked_shapes():
        return robustness(run, STANDARD.grid)


@pytest.fixture(scope="session")
def binary() -> Run:
    """Learner A: m = 5, sigma_w = sigma_b = 1e-5."""
    return trained(TwoLayer(m=5, sigma_w=1e-5, sigma_b=1e-5))


@pytest.fixture(scope="session")
def fine() -> Run:
    """Learner B: h = 1."""
    return trained(KClass(h=1, sigma_w=1e-5))


@pytest.fixture(scope="session")
def binary_attacked(binary: Run) -> Attacked:
    return attacked(binary)


@pytest.fixture(scope="session")
def fine_attacked(fine: Run) -> Attacked:
    return attacked(fine)
