"""Killed, interrupted and simultaneous trainings end with the run that one calm training gives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from small_runs import STEPS, assert_same, leftovers, small, verdict
from unmix.experiment import Experiment
from unmix.experiment import run as train
from unmix.store import Store
from unmix.train import descent


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs")


def first_step(store: Store, experiment: Experiment) -> int:
    """Run it; the step at which the training began."""
    heard: list[int] = []
    store.run(experiment, progress=lambda done, total: heard.append(done))
    return heard[0]


def interrupt(root: Path, experiment: Experiment, step: int) -> Path:
    """Stop a training after `step` steps with a checkpoint of the one before; its file."""

    def stop(done: int, total: int) -> None:
        if done == step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Store(root, every=0).run(experiment, progress=stop)
    (saved,) = (root / ".partial" / experiment.digest()).glob("*.safetensors")
    return saved


DRIVER = """
import json, os, signal, sys, time
from pathlib import Path
import torch
from unmix.experiment import Experiment
from unmix.store import Store

torch.set_num_threads(1)
root, task = Path(sys.argv[1]), json.loads(sys.argv[2])
experiment = Experiment.parse(task["experiment"])
fsync, calls = os.fsync, 0

def dying(handle):
    global calls
    calls += 1
    if calls == moment:
        os.kill(os.getpid(), signal.SIGKILL)
    fsync(handle)

def meet(done, total):
    # Nobody leaves the first step before all are there.
    if done == 0:
        (root / f"there-{os.getpid()}").touch()
        while len(list(root.glob("there-*"))) < task["together"]:
            time.sleep(0.001)

def child(place, **options):
    pid = os.fork()
    if pid == 0:
        Store(place, every=0).run(experiment, **options)
        os._exit(0)
    return pid

status = {}
for moment in task["moments"]:
    os.fsync = dying
    status[f"call-{moment}"] = os.waitpid(child(root / f"call-{moment}"), 0)[1]
os.fsync = fsync
for delay in task["delays"]:
    pid = child(root / f"delay-{delay}")
    time.sleep(delay / 1000)
    os.kill(pid, signal.SIGKILL)
    status[f"delay-{delay}"] = os.waitpid(pid, 0)[1]
pids = [child(root, progress=meet) for _ in range(task["together"])]
status["together"] = [os.waitpid(pid, 0)[1] for pid in pids]
print(json.dumps(status))
"""

# With every = 0 there is one fsync a step for its checkpoint; the rest belongs to the final save:
# +1 experiment, +2 env, +3 stops, +4 params, +5 verdicts, +6 trace, +7 DONE, +8 folder, +9 root.
IN_TRAINING = (1, 2, 17, STEPS)
IN_SAVING = tuple(STEPS + call for call in (1, 4, 6, 7, 8, 9))
DELAYS = (5, 20, 40, 80, 160)


def drive(root: Path, **task: object) -> dict:
    """Let children of a fresh process train, and kill them; their exit states."""
    plan = {"experiment": small().plain(), "moments": (), "delays": (), "together": 0} | task
    root.mkdir(exist_ok=True)
    command = [sys.executable, "-c", DRIVER, str(root), json.dumps(plan)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def killed(tmp_path_factory) -> tuple[Path, dict]:
    root = tmp_path_factory.mktemp("killed")
    return root, drive(root, moments=IN_TRAINING + IN_SAVING, delays=DELAYS)


@pytest.mark.parametrize("moment", IN_TRAINING + IN_SAVING)
def test_a_killed_run_goes_on_and_ends_the_same(killed, moment: int) -> None:
    root, status = killed
    assert os.WTERMSIG(status[f"call-{moment}"]) == 9
    store = Store(root / f"call-{moment}")
    finished = moment == STEPS + 9
    assert store.digests() == ([small().digest()] if finished else [])
    assert len(leftovers(store.root)) >= 1
    if not finished:
        # The checkpoint that was being written is lost; the one before it is of step moment - 2.
        assert first_step(store, small()) == max(0, min(moment, STEPS + 1) - 2)
        assert leftovers(store.root) == []
    assert_same(store.run(small()), train(small()))


@pytest.mark.parametrize("delay", DELAYS)
def test_a_kill_at_any_time_does_no_harm(killed, delay: int) -> None:
    store = Store(killed[0] / f"delay-{delay}")
    assert_same(store.run(small()), train(small()))
    assert store.digests() == [small().digest()]


def test_processes_at_once_end_with_one_run(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    assert drive(root, together=2)["together"] == [0, 0]
    assert Store(root).digests() == [small().digest()]
    assert_same(Store(root).run(small()), train(small()))
    assert list((root / ".tmp").iterdir()) == []


def test_the_slower_of_two_throws_its_own_away(store: Store) -> None:
    marked = []

    def overtake(done: int, total: int) -> None:
        if done == 3 and not marked:
            faster = Store(store.root).run(small())
            store.annotate(faster, [verdict("first")])
            marked.append((faster.folder / "env.json").stat().st_ino)

    run = store.run(small(), progress=overtake)
    assert marked == [(run.folder / "env.json").stat().st_ino]
    assert [v.claim for v in store.verdicts(run)] == ["first"]
    assert leftovers(store.root) == []


@pytest.mark.parametrize("engine", ["gram", "reference"])
def test_a_checkpoint_is_used_and_changes_nothing(store: Store, engine: str) -> None:
    experiment = small(f"train.engine={engine}", "dtype=float32")
    interrupt(store.root, experiment, 12)
    assert first_step(store, experiment) == 11
    assert_same(store.run(experiment), train(experiment))


def test_a_checkpoint_remembers_who_has_stopped(store: Store, monkeypatch) -> None:
    # So low that the step size stops one of the two seeds and not the other.
    monkeypatch.setattr(descent, "BLOW_UP", 2.0)
    experiment = small("train.eta=100.0")
    whole = train(experiment)
    assert [(stop.reason, stop.step) for stop in whole.trace.stops] == [
        ("diverged", 1),
        ("steps", STEPS),
    ]
    interrupt(store.root, experiment, 12)
    assert first_step(store, experiment) == 11
    assert_same(store.run(experiment), whole)


@pytest.mark.parametrize("damage", ["flip", "truncate", "garbage", "foreign"])
def test_a_checkpoint_that_cannot_be_trusted_is_ignored(store: Store, damage: str) -> None:
    saved = interrupt(store.root, small(), 12)
    content = saved.read_bytes()
    if damage == "foreign":
        content = interrupt(store.root, small("train.eta=0.06"), 12).read_bytes()
    flipped = content[:-5] + bytes([content[-5] ^ 1]) + content[-4:]
    broken = {"flip": flipped, "truncate": content[:-9], "garbage": b"?" * 50, "foreign": content}
    saved.write_bytes(broken[damage])
    assert first_step(store, small()) == 0
    assert_same(store.run(small()), train(small()))
