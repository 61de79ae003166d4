"""Reproduce a paper, or one claim or figure of it: fill the store, judge, draw, report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from unmix.claims import Claim, Verdict
from unmix.errors import UnknownName, nearest
from unmix.experiment import Run, using_threads
from unmix.forecast import Forecast, forecast
from unmix.papers.base import (
    Drawing,
    Evidence,
    FigureEntry,
    Paper,
    Setting,
    Size,
    Source,
    verdict,
    verdicts,
)
from unmix.papers.beside import Predicted, predictions
from unmix.papers.standing import Standing, standings
from unmix.papers.story import Explorer
from unmix.report import export, page
from unmix.store import Store
from unmix.sweep import Job, Progress, execute


@dataclass(frozen=True)
class Means:
    """Processes, threads of each, and the device."""

    workers: int = 1
    threads: int = 1
    device: str = "auto"


@dataclass(frozen=True)
class Task:
    """What to reproduce of a paper, at which size and with which means."""

    paper: Paper
    size: Size
    claims: tuple[Claim, ...]
    figures: tuple[FigureEntry, ...]
    store: Store
    means: Means
    settings: dict[str, Setting] = field(default_factory=dict)

    @classmethod
    def of(
        cls, paper: Paper, only: str | None, size: Size, store: Store, means: Means | None = None
    ) -> Task:
        """Everything, or what one name of a claim or a figure asks for."""
        claims, figures = _chosen(paper, only)
        return cls(paper, size, claims, figures, store, means or Means(), paper.settings(size))

    @property
    def whole(self) -> bool:
        """The whole paper, and not one claim or figure of it."""
        return (self.claims, self.figures) == (self.paper.claims, self.paper.figures)

    @property
    def needed(self) -> dict[str, Setting]:
        """The settings that it rests on and that can be had here."""
        return {name: setting for name, setting in self.asked.items() if not setting.why_not}

    @property
    def datasets(self) -> tuple[str, ...]:
        """Those of the paper's datasets that it asks for."""
        named = {getattr(s.experiment.data, "dataset", None) for s in self.asked.values()}
        return tuple(name for name in self.paper.datasets if name in named)

    @property
    def asked(self) -> dict[str, Setting]:
        """The settings that the chosen claims and figures rest on and that exist at this size."""
        asked = [c.settings for c in self.claims] + [f.settings for f in self.figures]
        if self.whole:
            asked += [(prediction.setting,) for prediction in self.paper.predictions]
            asked += [(c.setting, *c.also) for c in self.paper.contenders]
            asked += [self.paper.explored]
        names = dict.fromkeys(self._evidence().expand(tuple(s for group in asked for s in group)))
        return {name: self.settings[name] for name in names if name in self.settings}

    @property
    def sources(self) -> dict[str, tuple[str, ...]]:
        """The run of each setting that a figure shows."""
        expand = self._evidence().expand
        runs = {name: setting.experiment.digest() for name, setting in self.needed.items()}
        return {
            f.name: tuple(runs[s] for s in expand(f.settings) if s in runs) for f in self.figures
        }

    @property
    def jobs(self) -> list[Job]:
        """Every run and attack that is needed."""
        return [Job.of(s.experiment, s.attack) for s in self.needed.values()]

    def run(self, progress: Progress) -> None:
        """Fill the store with them."""
        execute(self.store.root, self.jobs, progress=progress, **asdict(self.means))

    def forecasts(self) -> dict[str, Forecast]:
        """What filling it will cost."""
        return {self.paper.name: forecast(self.store, self.jobs)}

    def sections(self, tell: Callable[[int, int], None]) -> list[page.Section]:
        """What the task came to, as the only section of a page."""
        return [self.judge(tell).section()]

    def judge(self, tell: Callable[[int, int], None] = lambda done, total: None) -> Reproduction:
        """Judge the claims on the store's runs, draw the figures, keep verdicts with the runs."""
        with using_threads(self.means.threads):
            return self._judged(tell)

    def _judged(self, tell: Callable[[int, int], None]) -> Reproduction:
        evidence = self._evidence()
        total = len(self.claims) + len(self.figures)
        verdicts: list[Verdict] = []
        for claim in self.claims:
            verdicts.append(verdict(self.paper, claim, evidence))
            tell(len(verdicts), total)
        drawings: dict[str, Drawing] = {}
        not_drawn: dict[str, str] = {}
        for done, entry in enumerate(self.figures, start=len(verdicts) + 1):
            if why := entry.why_not or evidence.why_not(entry.settings):
                not_drawn[entry.name] = why
            elif entry.draw:
                watched = evidence.watched()
                drawing = self.paper.draw(entry, watched)
                told = f" {watched.flagged}." if watched.flags else ""
                drawings[entry.name] = replace(drawing, caption=drawing.caption + told)
            tell(done, total)
        self._annotate(evidence, verdicts)
        beside = predictions(self.paper, evidence) if self.whole else ()
        rows = standings(self.paper, evidence) if self.whole else ()
        explorer = self.paper.explore(evidence) if self.whole else None
        return Reproduction(self, verdicts, drawings, not_drawn, beside, rows, explorer)

    def _evidence(self) -> Evidence:
        source = Source(
            run=lambda experiment: self.store.run(
                experiment, threads=self.means.threads, device=self.means.device
            ),
            attacked=self.store.attacked,
            certified=self.store.certified,
        )
        return Evidence(self.settings, self.paper.settings("paper"), source)

    def _annotate(self, evidence: Evidence, verdicts: Sequence[Verdict]) -> None:
        for run in evidence.runs.values():
            digest = run.experiment.digest()
            self.store.annotate(run, [v for v in verdicts if digest in v.runs])


def judge_alone(store: Store, run: Run) -> None:
    """Judge a stored run on the claims that it decides by itself, and keep the verdicts with it."""
    if not run.trace.diverged:
        with using_threads(1):
            known = {v.claim for v in store.verdicts(run)}
            store.annotate(run, verdicts(run, store.attacked, known))


@dataclass(frozen=True)
class Reproduction:
    """Verdicts and drawings of one task."""

    task: Task
    verdicts: Sequence[Verdict]
    drawings: Mapping[str, Drawing]
    not_drawn: Mapping[str, str]
    predictions: Sequence[Predicted] = ()
    standings: Sequence[Standing] = ()
    explorer: Explorer | None = None

    def section(self) -> page.Section:
        paper, size = self.task.paper, self.task.size
        return page.Section(
            paper,
            self.verdicts,
            self.printed(),
            self.not_drawn,
            predictions=self.predictions,
            standings=self.standings,
            explorer=self.explorer,
            sources=self.task.sources,
            command=f"unmix reproduce {paper.name}",
            flags=f"--{size}",
            digests={n: s.experiment.digest() for n, s in self.task.needed.items()},
        )

    def printed(self) -> dict[str, export.Printed]:
        """Every drawing in every format."""
        name = self.task.paper.name
        return {entry: export.printed(d, entry, name) for entry, d in self.drawings.items()}


def _chosen(paper: Paper, only: str | None) -> tuple[tuple[Claim, ...], tuple[FigureEntry, ...]]:
    if only is None:
        return paper.claims, paper.figures
    figure = only.removeprefix("fig-")
    figures = tuple(f for f in paper.figures if f.name == figure)
    claims = tuple(
        c for c in paper.claims if c.name == only or (figures and _about(c.name, figure))
    )
    if not claims and not figures:
        names = [c.name for c in paper.claims] + [f.name for f in paper.figures]
        hint = f"{nearest(only, names)} (all: unmix list claims, unmix list figures)"
        raise UnknownName(f"{paper.name} has no claim or figure {only!r}", hint)
    return claims, figures


def _about(claim: str, figure: str) -> bool:
    """A figure brings its claims: fig-2a and fig-2a-average for 2a, but not fig-10 for 1."""
    return f"{claim}-".startswith(f"fig-{figure}-")
