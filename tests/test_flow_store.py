"""A flow in the store: its times and stops survive, it goes on where it was interrupted."""

from __future__ import annotations

from pathlib import Path

import pytest

from small_runs import assert_same, small
from unmix import showing
from unmix.experiment import Experiment
from unmix.experiment import run as train
from unmix.probes.base import probe
from unmix.store import Store


def flow(*changes: str) -> Experiment:
    base = small("net.kind=prelu", "net.h=12", "net.sigma=1e-4", "data.scale=unit")
    kind = ("train.kind=flow", "train.loss=exponential", "train.time=200.0", "dtype=float32")
    return base.with_("data.sigma=0.1", *kind, *changes)


@pytest.mark.parametrize("kind", ["flow", "reduced-flow"])
def test_what_is_read_is_what_was_trained(tmp_path: Path, kind: str) -> None:
    experiment = flow(f"train.kind={kind}")
    stored, fresh = Store(tmp_path).run(experiment), train(experiment)
    assert_same(stored, fresh)
    assert_same(Store(tmp_path).load(experiment.digest()), fresh)
    assert stored.trace.times[-1] == 200.0
    assert [stop.time for stop in stored.trace.stops] == [200.0, 200.0]
    columns, rows = Store(tmp_path).sql("SELECT time, loss FROM trace WHERE replica = 1")
    assert columns == ["time", "loss"]
    assert [row[0] for row in rows] == list(stored.trace.times)


def test_an_interrupted_flow_goes_on_and_ends_the_same(tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        # Within the second seed.
        if done > 0.8 * total:
            raise KeyboardInterrupt

    experiment = flow()
    with pytest.raises(KeyboardInterrupt):
        Store(tmp_path, every=0).run(experiment, progress=stop)
    (saved,) = (tmp_path / ".partial" / experiment.digest()).glob("*.safetensors")
    assert saved.stat().st_size > 0
    heard: list[int] = []
    run = Store(tmp_path).run(experiment, progress=lambda done, total: heard.append(done))
    assert_same(run, train(experiment))
    assert min(heard[1:]) > 400


def test_it_is_shown_with_its_time_and_the_probes_that_apply(tmp_path: Path, capsys) -> None:
    store = Store(tmp_path)
    run = store.run(flow("train.until_loss=0.05", "net.h=60", "train.time=2000.0"))
    showing.one_run(run, store, as_json=False)
    out = capsys.readouterr().out
    assert "seed 3: the loss is reached at flow time" in out
    assert "contributions.covered" in out
    assert "cosines." not in out
    assert probe(run, "contributions")["covered"].tolist() == [4, 4]


def test_a_stalled_flow_is_an_error_with_advice(tmp_path: Path) -> None:
    run = Store(tmp_path).run(flow("train.evaluations=20"))
    error = showing.divergence(run)
    assert "training stalled on seeds 3, 1" in str(error)
    assert "raise train.evaluations (now 20)" in error.hint
