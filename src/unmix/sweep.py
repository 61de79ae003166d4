"""Fill a store with many runs: here in this process, or in a pool of workers.

All that is done lies in the store, so a sweep that was stopped goes on where it was.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from unmix.attacks.suite import AttackPlan
from unmix.errors import Interrupted, SpecError, UnmixError
from unmix.experiment import Experiment, packs
from unmix.store import Store

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Job:
    """A run that the store should hold, and what should be known of its robustness."""

    experiment: Experiment
    attacks: tuple[AttackPlan, ...] = ()

    @classmethod
    def of(cls, experiment: Experiment, attack: AttackPlan | None = None) -> Job:
        """With one plan of attack, or none."""
        return cls(experiment, () if attack is None else (attack,))

    def training_cost(self) -> int:
        """Of the training alone, in multiplications."""
        e = self.experiment
        return len(e.seeds) * int(e.train.cost(e.net, e.data, e.samples.train))

    def cost(self) -> int:
        """A rough number of multiplications: right to a factor of two or so, good for an ETA."""
        return self.training_cost() + sum(plan.cost(self.experiment) for plan in self.attacks)


# Jobs that are trained together.
Load = tuple[Job, ...]


def execute(
    store_root: Path,
    jobs: Sequence[Job],
    *,
    workers: int = 1,
    device: str = "auto",
    threads: int = 1,
    progress: Progress = lambda done, total, what: None,
) -> None:
    """Do what is not yet done. The first call of `progress` tells what the store had before."""
    if workers < 1 or threads < 1:
        came = f"workers={workers}, threads={threads}"
        raise SpecError(f"expected at least one worker and one thread, got {came}")
    store, loads = Store(store_root), _loads(distinct(jobs))
    try:
        left = [load for load in loads if not all(is_done(store, job) for job in load)]
        tally = _tally(loads, left, progress)
        if workers == 1 or len(left) < 2:
            _in_process(store, left, tally, device, threads)
        else:
            _in_pool(store, left, tally, min(workers, len(left)), device, threads)
    except KeyboardInterrupt:
        hint = "the same command goes on where this one stopped"
        raise Interrupted("stopped; what was done is kept", hint) from None


@dataclass
class _Tally:
    """Finished cost over all jobs, as the caller hears of it."""

    progress: Progress
    done: int
    total: int

    def tell(self, what: str, more: int = 0) -> None:
        self.progress(self.done + more, self.total, what)

    def within(self, load: Load) -> Callable[[int, int], None]:
        """Progress of one training as progress of the whole."""
        cost = sum(job.training_cost() for job in load)
        return lambda step, steps: self.tell(_names(load), cost * step // steps)

    def finish(self, load: Load) -> None:
        self.done += _cost(load)
        self.tell(_names(load))


def _tally(loads: Sequence[Load], left: Sequence[Load], progress: Progress) -> _Tally:
    total = sum(map(_cost, loads))
    tally = _Tally(progress, total - sum(map(_cost, left)), total)
    tally.tell("")
    return tally


def _cost(load: Load) -> int:
    return sum(job.cost() for job in load)


def _names(load: Load) -> str:
    return " ".join(job.experiment.digest() for job in load)


def _loads(jobs: Sequence[Job]) -> list[Load]:
    """Packs of jobs, made from all of them, whatever is done: who trains with whom is fixed."""
    by_digest = {job.experiment.digest(): job for job in jobs}
    grouped = packs([job.experiment for job in jobs])
    return [tuple(by_digest[e.digest()] for e in group) for group in grouped]


def distinct(jobs: Iterable[Job]) -> list[Job]:
    """One job a digest, which attacks as each of them does."""
    table: dict[str, Job] = {}
    for job in jobs:
        digest = job.experiment.digest()
        before = table[digest].attacks if digest in table else ()
        new = tuple(plan for plan in job.attacks if plan not in before)
        table[digest] = Job(job.experiment, before + new)
    return list(table.values())


def is_done(store: Store, job: Job) -> bool:
    run = store.find(job.experiment)
    if run is None:
        return False
    return all(store.find_attacked(run, plan) is not None for plan in job.attacks)


def _do(
    store: Store,
    load: Load,
    device: str,
    threads: int,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    experiments = [job.experiment for job in load]
    runs = store.run_pack(experiments, device=device, threads=threads, progress=progress)
    for job, run in zip(load, runs, strict=True):
        for plan in job.attacks:
            store.attacked(run, plan)


def _in_process(
    store: Store, loads: Sequence[Load], tally: _Tally, device: str, threads: int
) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for load in loads:
            _do(store, load, device, threads, tally.within(load))
            tally.finish(load)
    finally:
        torch.set_num_threads(before)


def _in_pool(
    store: Store, loads: Sequence[Load], tally: _Tally, workers: int, device: str, threads: int
) -> None:
    with crew(workers, threads) as pool:
        futures = _submitted(pool, store, loads, device, threads)
        for future in as_completed(futures):
            future.result()
            tally.finish(futures[future])


def _submitted(
    pool: ProcessPoolExecutor,
    store: Store,
    loads: Sequence[Load],
    device: str,
    threads: int,
) -> dict[Future[None], Load]:
    """The longest first, so that no long job is left to one worker at the end."""
    futures = {}
    with deaf():
        for load in sorted(loads, key=lambda load: -_cost(load)):
            # As text: a spec may carry cached tensors, no business of another process.
            texts = [(job.experiment.to_json(), job.attacks) for job in load]
            futures[pool.submit(_work, store.root, texts, device, threads)] = load
    return futures


@contextmanager
def deaf() -> Iterator[None]:
    """Ignore Ctrl-C for a moment: workers started in it ignore it as long as they live."""
    if threading.current_thread() is not threading.main_thread():
        # Only the main thread may say so; the workers of others learn it in `_prepare`.
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def crew(workers: int, threads: int) -> Iterator[ProcessPoolExecutor]:
    """Workers that die at once when this process leaves the block by an error, or dies itself."""
    context = get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(workers, context, _prepare, (reader, threads))
    try:
        yield pool
        pool.shutdown()
    except BrokenProcessPool:
        hint = "give it fewer workers; the same command goes on where this one stopped"
        raise UnmixError("a worker died, probably for want of memory", hint) from None
    finally:
        writer.close()
        pool.shutdown(cancel_futures=True)
        reader.close()


def _prepare(lifeline: Connection, threads: int) -> None:
    """Set up a worker. Only the parent hears Ctrl-C; it then closes the line."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with, args=(lifeline,), daemon=True).start()
    torch.set_num_threads(threads)


def _die_with(lifeline: Connection) -> None:
    try:
        lifeline.recv()
    except (EOFError, OSError):
        # Nothing is lost: whatever a store holds survives a kill at any moment.
        os._exit(1)


def _work(
    root: Path,
    texts: Sequence[tuple[str, tuple[AttackPlan, ...]]],
    device: str,
    threads: int,
) -> None:
    load = tuple(Job(Experiment.parse(json.loads(text)), attacks) for text, attacks in texts)
    _do(Store(root), load, device, threads)
