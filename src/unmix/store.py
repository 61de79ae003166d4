"""The collection of runs: content-addressed folders, filled atomically, resumable, open to SQL.

    <root>/<digest>/            a finished run (see `records`)
    <root>/.tmp/<digest>.*/     a run being written; it appears under its digest by one rename
    <root>/.partial/<digest>/   checkpoints of a training under way

There are no locks. Whoever finishes a run first has it; the others throw theirs away, and what a
killed process left behind is never read and goes when the run is finished.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb
from safetensors import SafetensorError

from unmix import records
from unmix.attacks.base import Attacked
from unmix.attacks.suite import AttackPlan
from unmix.certify.base import Certificate
from unmix.certify.choice import CertifyPlan
from unmix.claims import Verdict
from unmix.errors import StoreError
from unmix.experiment import Experiment, Run, Supervisor, pick_device, threads_for
from unmix.experiment import run_pack as train
from unmix.query import select
from unmix.sealed import sync

Progress = Callable[[int, int], None]


class Store:
    """Runs under a root folder; `every` is the time between two checkpoints, in seconds."""

    def __init__(self, root: Path = Path("runs"), every: float = 20.0) -> None:
        self.root, self.every = Path(root).expanduser(), every

    def folder(self, experiment: Experiment) -> Path:
        """Where the run of an experiment is or will be."""
        return self.root / experiment.digest()

    def run(
        self,
        experiment: Experiment,
        *,
        device: str = "auto",
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> Run:
        """The stored run of an experiment; it is trained first, or trained on, if it must be."""
        (only,) = self.run_pack((experiment,), device=device, threads=threads, progress=progress)
        return only

    def run_pack(
        self,
        experiments: Sequence[Experiment],
        *,
        device: str = "auto",
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> list[Run]:
        """The stored runs of a pack; where one is missing, all are trained together again.

        Who is trained together must not depend on what an earlier call had finished: sums over
        more columns may round otherwise.
        """
        known = [self.find(experiment) for experiment in experiments]
        if all(run is not None for run in known):
            return [run for run in known if run is not None]
        digest, place = _pack_digest(experiments), pick_device(device)
        checkpoints = records.Checkpoints(
            self.root / ".partial" / digest, digest, place, self.every
        )
        watch = progress or (lambda done, total: None)
        supervisor = Supervisor(watch, checkpoints.due, checkpoints.save, checkpoints.load)
        with self._draft(digest) as draft:
            threads, start = threads or threads_for(experiments), time.monotonic()
            runs = train(experiments, device=device, threads=threads, supervisor=supervisor)
            seconds = (time.monotonic() - start) / len(runs)
            env = records.environment(str(place), threads, seconds)
            for run, was in zip(runs, known, strict=True):
                if was is None:
                    self._save(run, env, draft / run.experiment.digest())
        self._clear(digest)
        return [self.load(self.folder(experiment)) for experiment in experiments]

    def find(self, experiment: Experiment) -> Run | None:
        """The finished run of an experiment; None if there is none that this version made."""
        folder = self.folder(experiment)
        try:
            return records.read(folder) if folder.exists() else None
        except records.Outdated:
            return None

    def load(self, folder: Path | str) -> Run:
        """A finished run by its folder, or by the start of its digest."""
        for path in (Path(folder).expanduser(), self.root / folder):
            if path.is_dir():
                return records.read(path)
        digests = self.digests()
        matches = [digest for digest in digests if digest.startswith(str(folder))]
        if len(matches) == 1:
            return records.read(self.root / matches[0])
        if matches:
            raise StoreError(
                f"{str(folder)!r} is the start of several runs: {', '.join(matches)}",
                "give more digits",
            )
        raise StoreError(f"there is no run {str(folder)!r} in {self.root}", self._overview())

    def find_attacked(self, run: Run, plan: AttackPlan) -> Attacked | None:
        """What `attacked` has kept of an earlier call, if that is sound."""
        with suppress(StoreError):
            return records.read_attacked(_attacked_path(run, plan))
        return None

    def attacked(self, run: Run, plan: AttackPlan) -> Attacked:
        """A plan of attack on a stored run, carried out once and kept."""
        path = _attacked_path(run, plan)
        if (known := self.find_attacked(run, plan)) is not None:
            return known
        attacked = plan.curve(run)
        with _writing(path):
            records.write_attacked(path, attacked)
        return attacked

    def certified(self, run: Run, plan: CertifyPlan) -> Certificate:
        """A plan of certification on a stored run, carried out once and kept."""
        method = None if plan.method is None else plan.method.plain()
        path = _kept(run, "certified", [method, plan.points or run.experiment.samples.test])
        with suppress(StoreError):
            return records.read_certificate(path)
        found = plan.certify(run)
        with _writing(path):
            records.write_certificate(path, found)
        return found

    def annotate(self, run: Run, verdicts: Sequence[Verdict]) -> None:
        """Keep verdicts beside a run; a claim judged again replaces its old verdict."""
        folder = _home(run)
        kept = {verdict.claim: verdict for verdict in (*self.verdicts(run), *verdicts)}
        with _writing(folder):
            records.write_verdicts(folder, list(kept.values()))

    def verdicts(self, run: Run) -> list[Verdict]:
        """What `annotate` has kept, in the order in which the claims first came."""
        return records.read_verdicts(_home(run))

    def digests(self) -> list[str]:
        """Of all finished runs, sorted."""
        folders = self.root.iterdir() if self.root.is_dir() else iter(())
        names = (f.name for f in folders if (f / "DONE").is_file())
        return sorted(name for name in names if records.NAME.fullmatch(name))

    def sql(self, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Column names and rows of one SELECT over the tables `runs`, `trace` and `verdicts`."""
        folders = [self.root / digest for digest in self.digests()]
        try:
            return select(query, folders)
        except duckdb.Error as error:
            hint = "tables: runs, trace, verdicts; their columns: DESCRIBE runs"
            hint = hint if folders else self._overview()
            raise StoreError(f"the query failed: {error}", hint) from None

    def _overview(self) -> str:
        digests = self.digests()
        if not digests:
            return f"the store {self.root} is empty: run an experiment first"
        return f"{len(digests)} runs are there, among them " + ", ".join(digests[:5])

    @contextmanager
    def _draft(self, digest: str) -> Iterator[Path]:
        """A private folder, made before any training so that an unwritable root is met at once."""
        draft = self.root / ".tmp" / f"{digest}.{os.getpid()}.{secrets.token_hex(4)}"
        new = [folder for folder in draft.parents if not folder.exists()]
        with _writing(self.root):
            draft.mkdir(parents=True)
            if not os.access(self.root, os.W_OK):
                raise PermissionError("no permission to write")
        try:
            yield draft
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            # A run that failed leaves no empty folders behind.
            for folder in new:
                with suppress(OSError):
                    folder.rmdir()
            raise
        shutil.rmtree(draft, ignore_errors=True)

    def _save(self, run: Run, env: Mapping[str, Any], draft: Path) -> None:
        try:
            with _writing(self.root):
                draft.mkdir(parents=True, exist_ok=True)
                records.write(draft, run, env)
                self._publish(run.experiment, draft)
        except StoreError:
            # Whoever finished the same run before us may have cleared our draft away.
            if self.find(run.experiment) is None:
                raise

    def _publish(self, experiment: Experiment, draft: Path) -> None:
        folder = self.folder(experiment)
        if folder.exists():
            if self.find(experiment) is not None:
                return
            os.rename(folder, draft.with_name(f"{draft.name}.outdated"))
        os.rename(draft, folder)
        sync(self.root)

    def _clear(self, digest: str) -> None:
        """Drop checkpoints and drafts of a finished run, also those that killed processes left."""
        for folder in (self.root / ".partial" / digest, *(self.root / ".tmp").glob(f"{digest}.*")):
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, duckdb.Error, SafetensorError) as error:
        hint = "free some space or make it writable, or choose another store; then run again"
        raise StoreError(f"cannot write {path}: {error}", hint) from None


def _pack_digest(experiments: Sequence[Experiment]) -> str:
    """Names the training of a pack; a lone experiment's is its own."""
    digests = [experiment.digest() for experiment in experiments]
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()[:16]


def _home(run: Run) -> Path:
    if run.folder is None:
        raise StoreError("this run lives in memory only", "get it from Store.run(experiment)")
    return run.folder


def _attacked_path(run: Run, plan: AttackPlan) -> Path:
    """Named by what decides the outcome: the suite, the radii in input space, the points."""
    radii = sorted(map(float, plan.radii(run.experiment)))
    points = plan.points or run.experiment.samples.test
    return _kept(run, "attacked", [plan.suite.plain(), radii, points])


def _kept(run: Run, what: str, wanted: list[Any]) -> Path:
    text = json.dumps([records.MAKER, run.experiment.digest(), wanted], sort_keys=True)
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    return _home(run) / f"{what}-{key}.safetensors"
