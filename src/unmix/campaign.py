"""Several papers at once: one pool for all runs, a process a paper for judging, one page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

from unmix import catalog
from unmix.forecast import Forecast, forecast
from unmix.papers.base import Paper, Size
from unmix.report.page import Section
from unmix.reproduction import Means, Task
from unmix.store import Store
from unmix.sweep import Progress, crew, deaf, execute

Tell = Callable[[int, int], None]


@dataclass(frozen=True)
class Campaign:
    """Whole papers to reproduce at one size, with the same means, in the same store."""

    papers: tuple[Paper, ...]
    size: Size
    store: Store
    means: Means

    @property
    def tasks(self) -> list[Task]:
        return [Task.of(paper, None, self.size, self.store, self.means) for paper in self.papers]

    def forecasts(self) -> dict[str, Forecast]:
        """The cost of each paper by itself; runs that two papers share count for both."""
        return {task.paper.name: forecast(self.store, task.jobs) for task in self.tasks}

    def run(self, progress: Progress) -> None:
        """Fill the store with every run and attack of every paper."""
        jobs = [job for task in self.tasks for job in task.jobs]
        execute(self.store.root, jobs, progress=progress, **asdict(self.means))

    def sections(self, tell: Tell = lambda done, total: None) -> list[Section]:
        """What each paper came to, in the order of the papers."""
        if min(self.means.workers, len(self.papers)) == 1:
            return self._in_turn(tell)
        names = [paper.name for paper in self.papers]
        with crew(min(self.means.workers, len(names)), self.means.threads) as pool:
            with deaf():
                futures = [
                    pool.submit(_section, name, self.size, self.store.root, self.means)
                    for name in names
                ]
            for done, _ in enumerate(as_completed(futures), 1):
                tell(done, len(names))
            return [future.result() for future in futures]

    def _in_turn(self, tell: Tell) -> list[Section]:
        tasks = self.tasks
        parts = [len(task.claims) + len(task.figures) for task in tasks]
        sections = []
        for index, task in enumerate(tasks):
            told = task.judge(_shifted(tell, sum(parts[:index]), sum(parts)))
            sections.append(told.section())
        return sections


def bad(sections: Sequence[Section]) -> bool:
    """Something was refuted or failed."""
    return any(verdict.bad for section in sections for verdict in section.verdicts)


def _shifted(tell: Tell, before: int, total: int) -> Tell:
    """Progress of one paper as progress of all."""
    return lambda done, _: tell(before + done, total)


def _section(name: str, size: Size, root: Path, means: Means) -> Section:
    """Judge a paper in a process of its own; the drawings come back as bytes."""
    paper: Paper = catalog.load("papers", name)
    return Task.of(paper, None, size, Store(root), means).judge().section()
