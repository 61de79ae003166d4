"""Sweeps: the same store whoever does the work, and nothing lost when it is stopped."""

from __future__ import annotations

import multiprocessing
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from small_runs import STEPS, leftovers, small
from unmix import store as store_module
from unmix import sweep
from unmix.attacks.gradient import PGD
from unmix.attacks.suite import AttackPlan, SuiteL2
from unmix.errors import AttackError, Interrupted, SpecError, StoreError, UnmixError
from unmix.store import Store
from unmix.sweep import Job, execute

PLAN = AttackPlan(SuiteL2(pgd=PGD(steps=3, restarts=2)), (0.2, 0.5), points=4)
ATTACKED = Job.of(small(), PLAN)
JOBS = (ATTACKED, Job(small("net.kind=k-class")), Job(small("dtype=float32")))
SAME = ("experiment.json", "trace.parquet", "stops.json", "params.safetensors", "attacked-*")


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


class Ear:
    """Hears of progress; stops the work at the call that `stop` names."""

    def __init__(self, stop: int | None = None) -> None:
        self.heard: list[tuple[int, int, str]] = []
        self.stop = stop

    def __call__(self, done: int, total: int, what: str) -> None:
        self.heard.append((done, total, what))
        if len(self.heard) == self.stop:
            raise KeyboardInterrupt


def contents(root: Path) -> dict[str, bytes]:
    """What must not depend on who did the work."""
    paths = [path for name in SAME for path in root.glob(f"*/{name}")]
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A store filled in one go, in this process."""
    root = tmp_path_factory.mktemp("whole")
    execute(root, JOBS)
    return root


def test_one_process_fills_the_store(whole: Path) -> None:
    store = Store(whole)
    assert store.digests() == sorted(job.experiment.digest() for job in JOBS)
    attacks = [store.find_attacked(store.find(job.experiment), PLAN) for job in JOBS]
    assert [attack is not None for attack in attacks] == [True, False, False]
    assert attacks[0].smallest.shape == (2, 4)
    assert len(contents(whole)) == 4 * len(JOBS) + 1


def test_two_workers_give_the_same_bytes(tmp_path: Path, whole: Path) -> None:
    ear = Ear()
    execute(tmp_path, JOBS, workers=2, progress=ear)
    assert contents(tmp_path) == contents(whole)
    assert leftovers(tmp_path) == []
    assert [what for _, _, what in ear.heard[1:]] != []
    assert {what for _, _, what in ear.heard[1:]} == {job.experiment.digest() for job in JOBS}
    assert (ear.heard[0][0], ear.heard[-1][0]) == (0, ear.heard[-1][1])


def test_what_is_done_is_not_done_again(whole: Path, monkeypatch) -> None:
    monkeypatch.setattr(store_module, "train", None)
    monkeypatch.setattr(SuiteL2, "curve", None)
    ear = Ear()
    execute(whole, JOBS, workers=2, progress=ear)
    total = sum(job.cost() for job in JOBS)
    assert ear.heard == [(total, total, "")]


def test_an_attack_is_added_to_a_finished_run(tmp_path: Path, monkeypatch) -> None:
    execute(tmp_path, [Job(small())])
    monkeypatch.setattr(store_module, "train", None)
    assert list(tmp_path.glob("*/attacked-*")) == []
    execute(tmp_path, [ATTACKED])
    assert len(list(tmp_path.glob("*/attacked-*"))) == 1


def test_equal_jobs_run_once_and_attack_if_one_of_them_does(tmp_path: Path, monkeypatch) -> None:
    trained = []
    train = store_module.train

    def counted(experiment, **options):
        trained.append(experiment)
        return train(experiment, **options)

    monkeypatch.setattr(store_module, "train", counted)
    execute(tmp_path, [Job(small()), ATTACKED, Job(small())])
    assert trained == [[small()]]
    assert len(list(tmp_path.glob("*/attacked-*"))) == 1


def test_progress_grows_within_a_run_and_ends_at_the_total(tmp_path: Path) -> None:
    ear = Ear()
    execute(tmp_path, JOBS[1:], progress=ear)
    done = [d for d, _, _ in ear.heard]
    total = sum(job.cost() for job in JOBS[1:])
    assert done == sorted(done)
    assert (done[0], done[-1]) == (0, total)
    assert {t for _, t, _ in ear.heard} == {total}
    assert len(set(done)) > 2 * STEPS - 2


def test_costs_grow_with_the_work() -> None:
    cost = Job(small()).cost()
    assert Job(small("seeds=[1,2,3,4]")).cost() == 2 * cost
    assert Job(small("train.steps=300")).cost() > 3 * cost
    assert Job(small("net.m=8")).cost() > cost
    assert ATTACKED.cost() > cost


def test_relative_radii_are_in_units_of_the_centres() -> None:
    experiment = small("data.alpha=2.0")
    assert PLAN.radii(experiment) == pytest.approx((0.2 * 2 * 32**0.5, 0.5 * 2 * 32**0.5))
    assert replace(PLAN, unit="input").radii(experiment) == (0.2, 0.5)


def test_equal_jobs_are_attacked_by_every_plan_of_theirs(tmp_path: Path) -> None:
    other = replace(PLAN, grid=(0.1,))
    execute(tmp_path, [ATTACKED, Job.of(small(), other), Job.of(small(), PLAN)])
    store = Store(tmp_path)
    kept = [store.find_attacked(store.find(small()), plan) for plan in (PLAN, other)]
    assert [len(found.radii) for found in kept] == [2, 1]
    assert len(list(tmp_path.glob("*/attacked-*"))) == 2


@pytest.mark.parametrize("stop", [1, 10, STEPS + 3, STEPS + 4, STEPS + 20])
def test_a_sweep_stopped_here_goes_on_where_it_was(tmp_path: Path, whole: Path, stop: int) -> None:
    with pytest.raises(Interrupted, match="kept") as caught:
        execute(tmp_path, JOBS, progress=Ear(stop))
    assert "same command" in caught.value.hint
    # Heard before the first job is in the store: the start, every step with both ends, the end.
    assert len(Store(tmp_path).digests()) == (1 if stop > STEPS + 3 else 0)
    ear = Ear()
    execute(tmp_path, JOBS, progress=ear)
    assert (ear.heard[0][0] > 0) == (stop > STEPS + 3)
    assert contents(tmp_path) == contents(whole)


def test_a_stopped_pool_dies_at_once_and_goes_on_later(tmp_path: Path) -> None:
    # The long job would take hours, and is the first that a worker takes.
    endless = Job(small("train.steps=100000000", "train.record.points=2"))
    ear, start = Ear(stop=2), time.monotonic()
    with pytest.raises(Interrupted):
        execute(tmp_path, [JOBS[1], endless, JOBS[2]], workers=2, progress=ear)
    # Not after the hours of the long job, however busy the machine is.
    assert time.monotonic() - start < 300
    assert multiprocessing.active_children() == []
    finished = Store(tmp_path).digests()
    assert endless.experiment.digest() not in finished
    assert ear.heard[-1][2] in finished
    execute(tmp_path, [JOBS[1], JOBS[2]])
    assert len(Store(tmp_path).digests()) == 2


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_a_worker_arrives_unchanged(tmp_path: Path, workers: int) -> None:
    endless = Job(small("train.steps=100000000", "train.record.points=2"))
    broken = AttackPlan(PLAN.suite, (-1.0,))
    jobs = [Job.of(small(), broken), *([endless] if workers == 2 else [])]
    with pytest.raises(AttackError) as caught:
        execute(tmp_path, jobs, workers=workers)
    with pytest.raises(AttackError) as wanted:
        PLAN.suite.curve(Store(tmp_path).load(small().digest()), (-1.0,))
    assert type(caught.value) is type(wanted.value)
    assert str(caught.value) == str(wanted.value)


def die(*order: object) -> None:
    """What the system does to a process when memory is short."""
    os._exit(9)


def test_a_dead_worker_is_an_error_that_says_what_to_do(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(sweep, "_work", die)
    with pytest.raises(UnmixError, match="a worker died") as caught:
        execute(tmp_path, JOBS, workers=2)
    assert "fewer workers" in caught.value.hint


def test_a_damaged_run_stops_the_sweep_before_any_work(tmp_path: Path) -> None:
    execute(tmp_path, JOBS[2:])
    (tmp_path / JOBS[2].experiment.digest() / "trace.parquet").unlink()
    ear = Ear()
    with pytest.raises(StoreError, match=r"trace\.parquet is missing"):
        execute(tmp_path, JOBS, progress=ear)
    assert ear.heard == []


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"threads": 0}])
def test_numbers_of_workers_and_threads_are_checked(tmp_path: Path, wrong: dict) -> None:
    with pytest.raises(SpecError, match="at least one"):
        execute(tmp_path, JOBS, **wrong)


def test_the_callers_threads_are_put_back(tmp_path: Path) -> None:
    torch.set_num_threads(2)
    execute(tmp_path, [Job(small("train.steps=1"))], threads=1)
    assert torch.get_num_threads() == 2
