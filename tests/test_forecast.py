"""What a reproduction will cost: nothing for what is done, and more for more of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from small_runs import small
from unmix import records
from unmix.forecast import forecast, usual_speed
from unmix.papers.averaging import PAPER
from unmix.store import Store
from unmix.sweep import Job


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_a_run_that_is_there_costs_nothing(store: Store) -> None:
    jobs = [Job.of(small()), Job.of(small("seeds=[7]"))]
    before = forecast(store, jobs)
    assert (before.runs, before.left) == (2, 2)
    store.run(small())
    after = forecast(store, jobs)
    assert (after.runs, after.left) == (2, 1)
    assert 0 < after.seconds < before.seconds


def test_equal_jobs_count_once(store: Store) -> None:
    assert forecast(store, [Job.of(small()), Job.of(small())]).runs == 1


def test_where_nothing_is_known_the_machine_decides(store: Store) -> None:
    e = PAPER.settings("quick")["n=3000"].experiment
    job, speed = Job.of(e), usual_speed(e.dtype, e.net.neurons(e.data))
    assert forecast(store, [job]).seconds == pytest.approx(job.cost() / speed)
    assert usual_speed("float32", 500) > usual_speed()


def test_runs_of_the_store_say_how_fast_it_goes(store: Store, monkeypatch) -> None:
    real = records.environment
    slow = lambda device, threads, _: real(device, threads, 50.0)  # noqa: E731
    monkeypatch.setattr(records, "environment", slow)
    store.run(small())
    found = forecast(store, [Job.of(small()), Job.of(small("seeds=[7, 8]"))])
    assert found.seconds == pytest.approx(50.0)


def test_an_attack_is_paid_for_even_where_the_run_is_there(store: Store) -> None:
    setting = PAPER.settings("quick")["FA-k4"]
    experiment = setting.experiment.with_("samples.test=2", "data.d=16", "seeds=[0]")
    store.run(experiment)
    found = forecast(store, [Job.of(experiment, setting.attack)])
    assert found.left == 1
    assert found.seconds > 0
