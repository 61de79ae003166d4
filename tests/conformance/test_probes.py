"""What every probe must do; a new one is tested as soon as the catalog lists it."""

from __future__ import annotations

import pytest
import torch

from lab import patched, pictured, purified, still, trained, trained_fine
from unmix import catalog
from unmix.data.clusters import Clusters
from unmix.errors import UnmixError
from unmix.experiment import Run
from unmix.nets.constructed import FeatureAveraging, NonRobustMultiClass
from unmix.probes.base import Measured

NAMES = catalog.names("probes")
RUNS = {
    "binary": trained,
    "k-class": trained_fine,
    "single precision": lambda: trained("dtype=float32"),
    "two coarse labels": lambda: trained_fine("net.labels=2"),
    "unit, lopsided": lambda: trained("data.scale=unit", "train.eta=1.0", "data.positive=[1]"),
    "no bias to speak of": lambda: trained("net.m=1", "net.sigma_b=0.0"),
    "patches": patched,
    "patches, adversarial": lambda *c: patched("train.kind=patch-adversarial", *c),
    "purified": purified,
    "pictured": pictured,
    "averaging": lambda: still(FeatureAveraging(), Clusters(k=4, d=32), seeds=(0, 1)),
    "non-robust": lambda: still(NonRobustMultiClass(), Clusters(k=4, d=32), seeds=(0, 1)),
}


def probed(name: str, run: Run) -> Measured | UnmixError:
    """What a probe says of a run, or its error where it does not apply."""
    try:
        measured: Measured = catalog.load("probes", name)(run)
    except UnmixError as error:
        return error
    return measured


BASELINES = ("binary", "patches", "purified", "pictured")


def baseline(name: str) -> Run:
    """The first baseline that a probe reads."""
    runs = [RUNS[label]() for label in BASELINES]
    return next(run for run in runs if isinstance(probed(name, run), Measured))


@pytest.mark.parametrize("name", NAMES)
def test_every_probe_measures_a_baseline(name: str) -> None:
    assert isinstance(probed(name, baseline(name)), Measured)


@pytest.mark.parametrize("label", RUNS)
@pytest.mark.parametrize("name", NAMES)
def test_a_probe_returns_numbers_a_replica_and_changes_nothing(name: str, label: str) -> None:
    run = RUNS[label]()
    before = {n: p.clone() for n, p in run.params.items()}
    state = torch.get_rng_state()
    measured = probed(name, run)
    if isinstance(measured, UnmixError):
        # Where a probe does not apply, it says what to do.
        assert measured.hint
        return
    assert measured.values
    for value, column in measured.values.items():
        assert column.shape == (2,), value
        assert column.is_floating_point(), value
        assert not column.requires_grad, value
    assert all(array.shape[0] == 2 for array in measured.arrays.values())
    assert all(torch.equal(run.params[n], p) for n, p in before.items())
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    "label", ["binary", "k-class", "patches", "patches, adversarial", "purified"]
)
@pytest.mark.parametrize("name", NAMES)
def test_a_probe_sees_each_replica_alone(name: str, label: str) -> None:
    both, alone = RUNS[label](), RUNS[label]("seeds=[1]")
    whole, part = probed(name, both), probed(name, alone)
    assert type(whole) is type(part)
    if isinstance(part, UnmixError):
        return
    for value, column in part.values.items():
        torch.testing.assert_close(
            whole[value][1:], column, rtol=1e-6, atol=1e-9, equal_nan=True, msg=value
        )


@pytest.mark.parametrize("name", NAMES)
def test_a_probe_is_repeatable_and_prints(name: str) -> None:
    one, other = (probed(name, baseline(name)) for _ in range(2))
    for value, column in one.values.items():
        assert torch.equal(column.nan_to_num(7.0), other[value].nan_to_num(7.0))
        assert value in str(one)
