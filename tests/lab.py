"""Runs whose weights a test chooses, and small trained ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache

import jaxtyping
import torch
from torch import Tensor

from small_runs import small, small_purified
from unmix.data.clusters import Clusters
from unmix.data.images.distribution import Images
from unmix.data.patches import Patches
from unmix.experiment import Experiment, Run, Samples
from unmix.experiment import run as train
from unmix.nets.base import Model, Net
from unmix.nets.k_class import KClass
from unmix.nets.patch_cnn import PatchCnn
from unmix.nets.prelu_classes import PReLUClasses
from unmix.nets.two_layer import TwoLayer
from unmix.train.adam import Adam
from unmix.train.base import Record
from unmix.train.descent import NoTraining
from unmix.train.patches import PatchDescent


def still(net: Net, data: Clusters, n: int = 40, test: int = 10, seeds: tuple = (0,)) -> Run:
    """A net as it was built or drawn, not trained."""
    samples = Samples(train=n, test=test)
    return train(Experiment(data=data, net=net, train=NoTraining(), samples=samples, seeds=seeds))


def put(run: Run, **params: Tensor) -> Run:
    """The same run with other weights."""
    return replace(run, params={name: p.double() for name, p in params.items()})


def times(run: Run, scale: float) -> Run:
    """The same run with all its weights multiplied."""
    return put(run, **{name: scale * p for name, p in run.params.items()})


READINGS = 'train.record.coefficients=["paper", "slides-divide", "label-free"]'


@cache
def trained(*changes: str) -> Run:
    """A small run with recorded coefficients; trained once, so it must not be changed."""
    return train(small(READINGS, *changes))


@cache
def trained_fine(*changes: str) -> Run:
    """The same with one label a cluster."""
    return trained("net.kind=k-class", "net.h=2", *changes)


@cache
def patched(*changes: str) -> Run:
    """A small patch CNN, trained on noisy patches; trained once, so it must not be changed."""
    start = Experiment(
        data=Patches(k=3, d=12, patches=5),
        net=PatchCnn(m=4, sigma_0=0.1),
        train=PatchDescent(steps=20, record=Record(schedule="linear", points=6)),
        samples=Samples(train=12, test=10),
        seeds=(0, 1),
    )
    return train(start.with_(*changes))


@cache
def pictured(*changes: str) -> Run:
    """A small pReLU net, trained on made-up digits; a test installs the images first."""
    start = Experiment(
        data=Images(),
        net=PReLUClasses(h=20),
        train=Adam(epochs=5, batch=40, watch=50, eta=0.01),
        samples=Samples(train=120, test=50),
        seeds=(0, 1),
    )
    return train(start.with_(*changes))


@cache
def purified(*changes: str) -> Run:
    """A small symmetric net, trained cleanly and then against FGM; it must not be changed."""
    return train(small_purified(*changes))


def by_hand(net: TwoLayer | KClass, data: Clusters, **params: Tensor) -> Model:
    """A model with weights as given: w [M d] and b [M]."""
    return Model(net, data, {name: p.double()[None] for name, p in params.items()})


def gaussian(model_run: Run, seed: int = 0) -> Run:
    """The same run with standard normal weights and biases."""
    made = torch.Generator().manual_seed(seed)
    drawn = {
        name: torch.randn(p.shape, generator=made, dtype=torch.float64)
        for name, p in model_run.params.items()
    }
    return put(model_run, **drawn)


@contextmanager
def unchecked_shapes() -> Iterator[None]:
    """Without the check of annotations, for tests that call small functions a million times."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", before)
