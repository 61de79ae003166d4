"""Experiments refuse what cannot run; runs are functions of their experiment alone."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from small_runs import assert_same, small
from unmix import experiment as module
from unmix.data.clusters import Clusters
from unmix.errors import SpecError
from unmix.experiment import Experiment, Samples, Supervisor, pick_device
from unmix.experiment import run as train
from unmix.nets.k_class import KClass
from unmix.nets.two_layer import TwoLayer
from unmix.train.descent import NoTraining


@pytest.mark.parametrize(
    ("seeds", "words"),
    [
        ((), "seeds: expected at least one seed, got none"),
        ((1, 1), "seeds: expected distinct non-negative integers"),
        ((-1,), "seeds: expected distinct non-negative integers"),
        ((0.5,), "seeds.0: Input should be a valid integer"),
    ],
)
def test_seeds_are_checked(seeds: tuple, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        Experiment(data=Clusters(), net=TwoLayer(), train=NoTraining(), seeds=seeds)


def test_a_range_or_a_list_of_seeds_will_do() -> None:
    for seeds in (range(3), [0, 1, 2], (0, 1, 2)):
        made = Experiment(data=Clusters(), net=TwoLayer(), train=NoTraining(), seeds=seeds)
        assert made.seeds == (0, 1, 2)


def test_labels_must_fit_the_clusters() -> None:
    with pytest.raises(SpecError, match="12 labels cannot be shared fairly"):
        Experiment(data=Clusters(k=10), net=KClass(labels=12), train=NoTraining())


@pytest.mark.parametrize("kind", ["two-layer", "k-class"])
def test_a_run_is_repeated_bit_for_bit(kind: str) -> None:
    experiment = small(f"net.kind={kind}")
    torch.manual_seed(123)
    one = train(experiment)
    torch.manual_seed(321)
    assert_same(one, train(experiment))


@pytest.mark.parametrize("engine", ["gram", "reference"])
def test_parts_that_fit_into_memory_agree_with_all_at_once(engine: str, monkeypatch) -> None:
    experiment = small("seeds=[3, 1, 4, 0, 5]", f"train.engine={engine}")
    whole = train(experiment)
    # Room for two replicas at a time: 2 (2 n d) 8 bytes, and coefficient space's n^2.
    monkeypatch.setattr(module, "MEMORY", 2 * 8 * (2 * 64 * 32 + 64 * 64))
    heard: list[tuple[int, int]] = []
    parts = train(
        experiment, supervisor=Supervisor(progress=lambda done, total: heard.append((done, total)))
    )
    assert len({total for _, total in heard}) == 1
    assert heard[-1] == (90, 90)
    assert [done for done, _ in heard] == sorted(done for done, _ in heard)
    assert parts.trace.stops == whole.trace.stops
    for mine, wanted in (
        (parts.params, whole.params),
        (parts.trace.columns, whole.trace.columns),
        (parts.trace.final, whole.trace.final),
    ):
        for name in wanted:
            torch.testing.assert_close(mine[name], wanted[name], rtol=1e-10, atol=1e-15)


def test_a_lone_seed_agrees_with_its_row() -> None:
    whole = train(small("seeds=[3, 1, 4]"))
    alone = train(small("seeds=[1]"))
    for name, p in alone.params.items():
        torch.testing.assert_close(whole.params[name][1:2], p, rtol=1e-10, atol=1e-15)
    assert torch.equal(whole.centres[1:2], alone.centres)
    assert torch.equal(whole.test_batch.x[1:2], alone.test_batch.x)


def test_single_precision_stays_single_and_near() -> None:
    double, single = train(small()), train(small("dtype=float32"))
    assert {p.dtype for p in single.params.values()} == {torch.float32}
    assert single.train_batch.x.dtype == torch.float32
    for name, p in single.params.items():
        scale = double.params[name].abs().max()
        assert (p.double() - double.params[name]).abs().max() <= 1e-4 * scale


def test_a_run_shows_its_data_and_its_start() -> None:
    run = train(small())
    assert run.replicas == 2
    assert run.train_batch.x.shape == (2, 64, 32)
    assert run.test_batch.x.shape == (2, 8, 32)
    assert torch.equal(run.fresh(30).x[:, :8], run.test_batch.x)
    start = run.experiment.net.init(run.data, (3, 1), torch.float64)
    assert all(torch.equal(run.initial[name], p) for name, p in start.items())
    assert run.centres.shape == (2, 4, 32)
    with pytest.raises(dataclasses.FrozenInstanceError):
        run.params = {}


def test_threads_are_given_back() -> None:
    before = torch.get_num_threads()
    train(small("train.steps=1"), threads=before + 1)
    assert torch.get_num_threads() == before
    with pytest.raises(ZeroDivisionError):
        train(
            small("train.steps=1"),
            threads=before + 1,
            supervisor=Supervisor(progress=lambda done, total: 1 // 0),
        )
    assert torch.get_num_threads() == before


def test_devices_are_checked() -> None:
    assert pick_device("cpu") == torch.device("cpu")
    assert pick_device("auto").type in ("cpu", "cuda")
    for name in ("gpu", "cuda:99", ""):
        with pytest.raises(SpecError, match=rf"device '{name}' cannot be used: .*\n.*--device cpu"):
            pick_device(name)


def test_samples_are_at_least_one() -> None:
    for field in ("train", "test"):
        with pytest.raises(SpecError, match=f"{field}: Input should be greater than or equal to 1"):
            Samples(**{field: 0})
    lone = train(small("samples.train=1", "samples.test=1", "train.engine=gram"))
    assert lone.trace.columns["loss"].isfinite().all()
