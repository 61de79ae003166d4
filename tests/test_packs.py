"""Grids of step sizes and initial scales train as one tensor, and agree with lone runs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from small_runs import leftovers, small
from unmix import experiment as module
from unmix import store as store_module
from unmix.errors import SpecError
from unmix.experiment import packs, run, run_pack
from unmix.store import Store
from unmix.sweep import Job, execute

GRID = [
    small(f"train.eta={eta}", f"net.sigma_w={sigma}", f"samples.test={test}")
    for eta, sigma, test in ((0.05, 1e-5, 8), (0.01, 1e-5, 8), (0.05, 1e-2, 4))
]


def assert_near(mine, alone) -> None:
    assert mine.experiment == alone.experiment
    assert mine.trace.stops == alone.trace.stops
    for tensors, wanted in (
        (mine.params, alone.params),
        (mine.trace.columns, alone.trace.columns),
        (mine.trace.final, alone.trace.final),
    ):
        assert list(tensors) == list(wanted)
        for name, value in wanted.items():
            torch.testing.assert_close(tensors[name], value, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("engine", ["auto", "reference", "gemm", "gram"])
def test_a_pack_agrees_with_lone_runs(engine: str) -> None:
    grid = [e.with_(f"train.engine={engine}") for e in GRID]
    for mine, experiment in zip(run_pack(grid), grid, strict=True):
        assert_near(mine, run(experiment))


def test_what_may_differ_within_a_pack() -> None:
    apart = [small("data.k=2"), small("seeds=[0]"), small("train.steps=9"), small("net.m=3")]
    found = packs([*GRID, *apart, small("samples.train=9"), small("train.engine=gram")])
    assert [len(group) for group in found] == [3, 1, 1, 1, 1, 1, 1]
    assert found[0] == GRID


def test_unlike_experiments_are_no_pack() -> None:
    with pytest.raises(SpecError, match="differ in more than a pack may"):
        run_pack([small(), small("net.m=3")])


def test_a_pack_is_cut_where_memory_says_so(monkeypatch) -> None:
    monkeypatch.setattr(module, "MEMORY", 4 * module._replica_bytes(GRID[0]))
    assert [len(group) for group in packs(GRID)] == [2, 1]


def test_a_diverging_member_harms_nobody() -> None:
    grid = [small("train.eta=0.05"), small("train.eta=1e30")]
    calm, wild = run_pack(grid)
    assert wild.trace.diverged == (0, 1)
    assert "now 1e+30" in wild.trace.stops[0].advice
    assert_near(calm, run(grid[0]))


def test_a_sweep_packs_and_the_store_holds_each(tmp_path: Path, monkeypatch) -> None:
    trained = []
    train = store_module.train

    def counted(experiments, **options):
        trained.append(len(experiments))
        return train(experiments, **options)

    monkeypatch.setattr(store_module, "train", counted)
    execute(tmp_path, [Job(e) for e in GRID])
    assert trained == [3]
    assert leftovers(tmp_path) == []
    for experiment in GRID:
        assert_near(Store(tmp_path).find(experiment), run(experiment))


def test_who_trains_with_whom_does_not_depend_on_what_is_done(tmp_path: Path) -> None:
    """So a sweep that lost a run makes the same bytes again."""
    jobs = [Job(e) for e in GRID]
    execute(tmp_path, jobs)
    lost = tmp_path / GRID[1].digest() / "params.safetensors"
    before = lost.read_bytes()
    for file in sorted(lost.parent.iterdir()):
        file.unlink()
    lost.parent.rmdir()
    execute(tmp_path, jobs)
    assert lost.read_bytes() == before


def test_a_killed_pack_goes_on_where_it_was(tmp_path: Path) -> None:
    store = Store(tmp_path, every=0.0)

    def stop(done: int, total: int) -> None:
        if done == 13:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.run_pack(GRID, progress=stop)
    assert store.digests() == []
    heard: list[int] = []
    runs = store.run_pack(GRID, progress=lambda done, total: heard.append(done))
    assert heard[0] == 12
    for mine, wanted in zip(runs, run_pack(GRID), strict=True):
        assert all(torch.equal(mine.params[name], p) for name, p in wanted.params.items())
