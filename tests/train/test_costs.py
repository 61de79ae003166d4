"""The cost model: measured once, kept, and asked. What it says is checked on rates that we give."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from unmix.train.engines import costs
from unmix.train.engines.costs import DTYPES, Costs, Job, Rates, measured

# One machine in round numbers: 10 GB/s, 10 G multiplications/s, two threads twice as fast.
SLOW = Rates((1e-10,) * 3, (1e-10,) * 3, 1e-9, 1e-5)
QUICK = Rates((5e-11,) * 3, (5e-11,) * 3, 5e-10, 1e-5)
MACHINE = Costs("a machine", {name: {1: SLOW, 2: QUICK} for name in DTYPES})


def job(**changes) -> Job:
    base = {
        "replicas": 1, "sets": 1, "neurons": 10, "points": 1000, "dimension": 3072, "steps": 100,
        "batch": None, "normed": False, "dtype": "float64",
    }  # fmt: skip
    return Job(**(base | changes))


def test_a_product_is_bound_by_memory_or_by_arithmetic() -> None:
    assert SLOW.product(1, 1000, 1000, 8) == pytest.approx(8e6 * 1e-10)
    assert SLOW.product(100, 1000, 1000, 8) == pytest.approx(1e8 * 1e-10)


def test_coefficient_space_wins_for_few_points_and_many_steps() -> None:
    assert MACHINE.fastest(job(), (1,)).engine == "gram"
    assert MACHINE.fastest(job(points=200, dimension=100_000), (1,)).engine == "gram"
    assert MACHINE.fastest(job(points=8000), (1,)).engine == "gemm"
    assert MACHINE.fastest(job(steps=3), (1,)).engine == "gemm"
    assert MACHINE.fastest(job(points=20_000, batch=100, dimension=1000), (1,)).engine == "gemm"


def test_another_thread_must_save_a_tenth() -> None:
    assert MACHINE.fastest(job(), (1, 2)).threads == 2
    tiny = job(points=20, dimension=30, neurons=4)
    assert MACHINE.fastest(tiny, (1, 2)).threads == 1
    assert MACHINE.fastest(job(), (1,)).threads == 1
    # Asked for a number that was not measured, it reckons with the nearest.
    assert MACHINE.fastest(job(), (7,)).seconds == MACHINE.fastest(job(), (2,)).seconds


def test_replicas_that_share_points_are_cheaper_than_those_that_do_not() -> None:
    shared, apart = job(replicas=8, neurons=2), job(replicas=8, neurons=2, sets=8)
    assert shared.gram(SLOW) < apart.gram(SLOW)
    assert shared.gemm(SLOW) < apart.gemm(SLOW)


def test_this_machine_is_measured_once_and_then_read(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    costs._known.cache_clear()
    first = measured()
    assert costs.path().parent == tmp_path / "unmix"
    monkeypatch.setattr(costs, "_rates", None)
    costs._known.cache_clear()
    assert measured() == first
    for table in first.rates.values():
        for rates in table.values():
            assert min(*rates.stream, *rates.multiply, rates.pass_, rates.start) > 0
            # No CPU reads a petabyte or multiplies 1e15 times a second.
            assert min(*rates.stream, *rates.multiply) > 1e-15
    costs._known.cache_clear()


@pytest.mark.parametrize("damage", ["", "{", '{"machine": "another"}', "[]"])
def test_a_damaged_or_foreign_file_is_measured_anew(tmp_path, monkeypatch, damage: str) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(costs, "_rates", lambda dtype, threads: SLOW)
    costs.path().parent.mkdir(parents=True)
    costs.path().write_text(damage)
    costs._known.cache_clear()
    assert measured().rates["float32"][1] == SLOW
    assert json.loads(costs.path().read_text())["machine"] == measured().machine
    costs._known.cache_clear()


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "unmix").write_text("a file where the folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(costs, "_rates", lambda dtype, threads: SLOW)
    costs._known.cache_clear()
    assert measured().rates["float64"][1] == SLOW
    costs._known.cache_clear()


def test_measuring_leaves_the_threads_alone() -> None:
    before = torch.get_num_threads()
    costs._rates(torch.float32, before + 1)
    assert torch.get_num_threads() == before
