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
from unmix.experiment import Experiment
from unmix.store import Store

Progress = Callable[[int, int, str], None]

# Time of one attack step from one start at one neuron, in units of a multiplication in training.
ATTACK_STEP = 4000


@dataclass(frozen=True)
class Job:
    """A run that the store should hold and, if wanted, its attack."""

    experiment: Experiment
    attack: bool = False

    def cost(self, plan: AttackPlan) -> int:
        """A rough number of multiplications: right to a factor of two or so, good for an ETA."""
        e = self.experiment
        n, d, neurons = e.samples.train, e.data.d, e.net.neurons(e.data)
        training = n * min(n, 2 * d) * (d + e.train.length() * neurons)
        return len(e.seeds) * (training + self.attack * self._attack_cost(plan, neurons))

    def _attack_cost(self, plan: AttackPlan, neurons: int) -> int:
        points = plan.points or self.experiment.samples.test
        starts = plan.suite.pgd.steps * plan.suite.pgd.restarts
        return points * starts * neurons * ATTACK_STEP


def execute(
    store_root: Path,
    jobs: Sequence[Job],
    plan: AttackPlan,
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
    store, jobs = Store(store_root), _distinct(jobs)
    try:
        left = [job for job in jobs if not _is_done(store, job, plan)]
        tally = _tally(jobs, left, plan, progress)
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
    plan: AttackPlan
    done: int
    total: int

    def tell(self, what: str, more: int = 0) -> None:
        self.progress(self.done + more, self.total, what)

    def within(self, job: Job) -> Callable[[int, int], None]:
        """Progress of one training as progress of the whole."""
        cost = Job(job.experiment).cost(self.plan)
        digest = job.experiment.digest()
        return lambda step, steps: self.tell(digest, cost * step // steps)

    def finish(self, job: Job) -> None:
        self.done += job.cost(self.plan)
        self.tell(job.experiment.digest())


def _tally(
    jobs: Sequence[Job], left: Sequence[Job], plan: AttackPlan, progress: Progress
) -> _Tally:
    total = sum(job.cost(plan) for job in jobs)
    tally = _Tally(progress, plan, total - sum(job.cost(plan) for job in left), total)
    tally.tell("")
    return tally


def _distinct(jobs: Iterable[Job]) -> list[Job]:
    """One job a digest, which attacks if one of them does."""
    table: dict[str, Job] = {}
    for job in jobs:
        digest = job.experiment.digest()
        before = digest in table and table[digest].attack
        table[digest] = Job(job.experiment, job.attack or before)
    return list(table.values())


def _is_done(store: Store, job: Job, plan: AttackPlan) -> bool:
    run = store.find(job.experiment)
    if run is None or not job.attack:
        return run is not None
    return store.find_attacked(run, plan.suite, plan.radii(job.experiment), plan.points) is not None


def _do(
    store: Store,
    job: Job,
    plan: AttackPlan,
    device: str,
    threads: int,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    run = store.run(job.experiment, device=device, threads=threads, progress=progress)
    if job.attack:
        store.attacked(run, plan.suite, plan.radii(job.experiment), plan.points)


def _in_process(
    store: Store, jobs: Sequence[Job], tally: _Tally, device: str, threads: int
) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for job in jobs:
            _do(store, job, tally.plan, device, threads, tally.within(job))
            tally.finish(job)
    finally:
        torch.set_num_threads(before)


def _in_pool(
    store: Store, jobs: Sequence[Job], tally: _Tally, workers: int, device: str, threads: int
) -> None:
    with _pool(workers, threads) as pool:
        try:
            futures = _submitted(pool, store, jobs, tally.plan, device, threads)
            for future in as_completed(futures):
                future.result()
                tally.finish(futures[future])
        except BrokenProcessPool:
            hint = "give it fewer workers; the same command goes on where this one stopped"
            raise UnmixError("a worker died, probably for want of memory", hint) from None


def _submitted(
    pool: ProcessPoolExecutor,
    store: Store,
    jobs: Sequence[Job],
    plan: AttackPlan,
    device: str,
    threads: int,
) -> dict[Future[None], Job]:
    """The longest first, so that no long job is left to one worker at the end."""
    futures = {}
    with _deaf():
        for job in sorted(jobs, key=lambda job: -job.cost(plan)):
            # As text: a spec may carry cached tensors, no business of another process.
            text = job.experiment.to_json()
            order = (store.root, text, job.attack, plan, device, threads)
            futures[pool.submit(_work, *order)] = job
    return futures


@contextmanager
def _deaf() -> Iterator[None]:
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
def _pool(workers: int, threads: int) -> Iterator[ProcessPoolExecutor]:
    """Workers that die at once when this process leaves the block by an error, or dies itself."""
    context = get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(workers, context, _prepare, (reader, threads))
    try:
        yield pool
        pool.shutdown()
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
    root: Path, experiment: str, attack: bool, plan: AttackPlan, device: str, threads: int
) -> None:
    job = Job(Experiment.parse(json.loads(experiment)), attack)
    _do(Store(root), job, plan, device, threads)
