"""What `unmix run`, `reproduce` and `show` print of runs, papers and queries."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unmix import catalog, terminal
from unmix.claims import Verdict, not_run
from unmix.errors import DataError, StoreError, UnknownName, UnmixError
from unmix.experiment import using_threads
from unmix.papers.base import Paper
from unmix.records import Outdated
from unmix.report import latex as tex
from unmix.report import page, tables
from unmix.report.tables import number
from unmix.train.base import Stop

if TYPE_CHECKING:
    from unmix.experiment import Run
    from unmix.forecast import Forecast
    from unmix.store import Store

# How a training ends that did not fail.
ENDS = {
    "steps": "all {step} steps done",
    "time": "flow time {time:g} reached in {step} steps",
    "loss": "the loss is reached at flow time {time:g}, in {step} steps",
    "escape": "the largest output is reached at flow time {time:g}, in {step} steps",
}


def one_run(run: Run, store: Store, as_json: bool) -> None:
    """What was trained, why each seed stopped, every probe's values and the verdicts."""
    probes = measured(run)
    if as_json:
        _dump(_plain(run, probes, store))
        return
    e = run.experiment
    seeds = f"{run.replicas} {'seed' if run.replicas == 1 else 'seeds'}"
    terminal.line(f"{e.digest()}: {e.net.kind} on {e.data.kind}, {seeds}")
    for line in _stops(run):
        terminal.line(line)
    if probes:
        spread = "mean ± sd" if run.replicas > 1 else "value"
        rows = [[name, _summary(column)] for name, column in probes.items()]
        terminal.table("", ("probe", spread), rows)
    if judged := store.verdicts(run):
        rows = [[v.claim, f"{tables.SYMBOLS[v.status]} {v.status}", v.why] for v in judged]
        terminal.table("", ("claim", "status", "why"), rows)


def judged_run(run: Run, store: Store, *, latex: bool, out: Path) -> None:
    """The claims that rest on a run, as LaTeX or as a page of its own."""
    sections = _sections(run, store)
    if not sections:
        missing = f"no claim was judged on {run.folder}"
        raise StoreError(missing, "verdicts come from unmix run and unmix reproduce")
    if latex:
        terminal.line(tex.document([tex.verdict_table(s.paper, s.verdicts) for s in sections]))
    else:
        # Beside the papers' page, which has the name index.html in this folder.
        terminal.line(str(page.write(out / run.experiment.digest(), sections)))


def hint(run: Run) -> None:
    """Where the run lies and how to look at it again."""
    terminal.say(f"stored in {run.folder}; see it again: unmix show {run.folder}")


def divergence(run: Run) -> UnmixError:
    """The error that a run with diverged seeds ends in; the run is stored all the same."""
    first = run.trace.stops[run.trace.diverged[0]]
    lost = _listed([run.experiment.seeds[r] for r in run.trace.diverged])
    message = f"training {first.reason} on {lost}, first at step {first.step}"
    return UnmixError(f"{message}; {run.folder} keeps the last finite state", first.advice)


def found(store: Store, what: str) -> Run:
    """The stored run that a user means; a misspelt paper is told from a missing run."""
    try:
        return store.load(what)
    except StoreError as error:
        papers = get_close_matches(what, catalog.names("papers"), n=1)
        if papers and not Path(what).exists():
            raise UnknownName(error.message, f"did you mean the paper {papers[0]!r}?") from None
        raise


def measured(run: Run) -> dict[str, Any]:
    """Every value of every probe that applies to the run, as probe.value."""
    if run.trace.diverged:
        return {}
    found: dict[str, Any] = {}
    names = catalog.names("probes")
    # On tensors as small as these a second thread costs more than it gives.
    with using_threads(1), terminal.waiting("probes") as tell:
        for index, name in enumerate(names):
            tell(index, len(names), name)
            # A probe that does not apply needs recorded coefficients or another net.
            with suppress(DataError):
                values = catalog.load("probes", name)(run).values
                found |= {f"{name}.{value}": column for value, column in values.items()}
    return found


def verdicts(paper: Paper, found: Sequence[Verdict], as_json: bool) -> None:
    """The table of these verdicts, or the same as data."""
    if as_json:
        _dump(_judged(paper, found))
        return
    if not found:
        return
    judged = {v.claim for v in found}
    rows = [r.plain() for r in tables.rows(paper, found) if r.claim in judged]
    terminal.table(paper.title, tables.COLUMNS, rows)
    counts = {s: sum(v.status == s for v in found) for s in tables.STATUSES}
    terminal.say(", ".join(f"{n} {status}" for status, n in counts.items() if n))


def sections(told: Sequence[page.Section], as_json: bool) -> None:
    """The table of the verdicts of every section, or the same as data, in one list."""
    if as_json:
        _dump([r for s in told for r in _judged(s.paper, s.verdicts)])
        return
    for section in told:
        verdicts(section.paper, section.verdicts, as_json=False)


def page_of(told: Sequence[page.Section], out: Path, as_json: bool) -> None:
    """Write the page of these sections, and say where it is."""
    say(f"report: {page.write(out, told)}", as_json)


def figures(told: Sequence[page.Section], out: Path, as_json: bool) -> None:
    """Write what was drawn, say where it is, and why the rest is not drawn."""
    for section in told:
        for entry in section.drawn:
            for path in section.drawings[entry.name].save(out / page.place(section)):
                say(f"figure: {path}", as_json)
        for name, why in section.not_drawn.items():
            say(f"figure {name} is not drawn: {why}", as_json)


def forecasts(known: Mapping[str, Forecast], workers: int, as_json: bool) -> None:
    """What runs would cost: each paper's or the one asked for, and all on so many processes."""
    if as_json:
        _dump({name: asdict(one) for name, one in known.items()})
        return
    rows = [
        [name, str(one.runs), str(one.runs - one.left), terminal.duration(one.seconds)]
        for name, one in known.items()
    ]
    terminal.table("", ("", "runs", "done before", "CPU time left"), rows)
    wall = sum(one.seconds for one in known.values()) / workers
    processes = f"{workers} {'process' if workers == 1 else 'processes'}"
    text = f"about {terminal.duration(wall)} on {processes}, to a factor of two or so"
    terminal.line(f"{text}, and a fifth more for verdicts and figures")


def warn_of(cost: Forecast, multiplications: int) -> None:
    """What a long training will cost, before it starts."""
    if cost.left:
        time = f"about {terminal.duration(cost.seconds)} on one core, to a factor of a few"
        terminal.say(f"{time}: {multiplications:.1e} multiplications; it may be stopped and go on")


def say(text: str, as_json: bool) -> None:
    """A line of the result; with --json stdout holds the data alone."""
    (terminal.say if as_json else terminal.line)(text)


def paper(
    source: Paper, store: Store, *, html: bool, latex: bool, as_json: bool, out: Path
) -> None:
    """What the store knows of a paper's claims."""
    known = _known(store)
    why = f"not in the store: unmix reproduce {source.name}"
    judged = [known.get(c.name) or not_run(c, c.why_not or why) for c in source.claims]
    if latex:
        drawn = tex.figures_tex(_plates(source, out))
        terminal.line(tex.document([tex.verdict_table(source, judged), drawn]))
    elif html:
        terminal.line(str(page.write(out, [page.Section(source, judged)])))
    else:
        verdicts(source, judged, as_json)


def _plates(source: Paper, report: Path) -> list[tex.Plate]:
    """The paper's figures that a report in this folder holds."""
    at = {
        figure: report / "figures" / source.name / f"{figure.name}.pdf" for figure in source.figures
    }
    return [
        tex.Plate(path.as_posix(), f"{source.name}-{figure.name}", figure.title)
        for figure, path in at.items()
        if path.is_file()
    ]


def query(store: Store, sql: str, as_json: bool) -> None:
    """The answer to an SQL query."""
    columns, rows = store.sql(sql)
    if not store.digests():
        raise StoreError(f"the store {store.root} is empty", "run an experiment first: unmix run")
    if as_json:
        _dump([dict(zip(columns, map(_cell, row), strict=True)) for row in rows])
    else:
        terminal.table("", columns, [[str(cell) for cell in row] for row in rows])


def _judged(paper: Paper, found: Sequence[Verdict]) -> list[dict[str, Any]]:
    """Records of the claims that have a verdict."""
    judged = {v.claim for v in found}
    return [r for r in tables.records(paper, found) if r["claim"] in judged]


def _sections(run: Run, store: Store) -> list[page.Section]:
    """Each paper, cut down to the claims with a verdict on the run."""
    judged = {v.claim: v for v in store.verdicts(run)}
    sections = []
    for name in catalog.names("papers"):
        source: Paper = catalog.load("papers", name)
        claims = tuple(c for c in source.claims if c.name in judged)
        if claims:
            part = replace(source, claims=claims, figures=(), contents=(), findings=())
            digest = {"this run": run.experiment.digest()}
            sections.append(page.Section(part, [judged[c.name] for c in claims], digests=digest))
    return sections


def _known(store: Store) -> dict[str, Verdict]:
    """The weightiest stored verdict on each claim: the paper's own scale, then more replicas."""
    best: dict[str, Verdict] = {}
    for digest in store.digests():
        # A run of another version says nothing about this one.
        with suppress(Outdated):
            for v in store.verdicts(store.load(digest)):
                if v.claim not in best or _weight(v) > _weight(best[v.claim]):
                    best[v.claim] = v
    return best


def _weight(verdict: Verdict) -> tuple[bool, int]:
    return verdict.scale in ("paper", "any"), verdict.replicas


def _stops(run: Run) -> list[str]:
    """One line for each way to stop."""
    seeds: dict[Stop, list[int]] = {}
    for seed, stop in zip(run.experiment.seeds, run.trace.stops, strict=True):
        seeds.setdefault(stop, []).append(seed)
    return [f"{_listed(group)}: {_told(stop)}" for stop, group in seeds.items()]


def _told(stop: Stop) -> str:
    if stop.reason in ENDS:
        return ENDS[stop.reason].format(step=stop.step, time=stop.time or 0.0)
    return f"{stop.reason} at step {stop.step}; {stop.advice}"


def _listed(seeds: Sequence[int]) -> str:
    """Seeds in words; only the first few of many."""
    word = "seed" if len(seeds) == 1 else "seeds"
    more = f" and {len(seeds) - 8} more" if len(seeds) > 8 else ""
    return f"{word} {', '.join(map(str, seeds[:8]))}{more}"


def _summary(column: Any) -> str:
    """Mean and standard deviation over the seeds."""
    values = column.double()
    spread = f" ± {number(float(values.std()))}" if len(values) > 1 else ""
    return number(float(values.mean())) + spread


def _plain(run: Run, probes: dict[str, Any], store: Store) -> dict[str, Any]:
    stops = [{"reason": s.reason, "step": s.step, "advice": s.advice} for s in run.trace.stops]
    return {
        "digest": run.experiment.digest(),
        "folder": str(run.folder),
        "experiment": run.experiment.plain(),
        "stops": stops,
        "probes": {name: [_number(v) for v in column] for name, column in probes.items()},
        "verdicts": {v.claim: v.status for v in store.verdicts(run)},
    }


def _number(value: Any) -> float | None:
    """JSON has no NaN."""
    plain = float(value)
    return plain if math.isfinite(plain) else None


def _cell(value: Any) -> Any:
    """A cell of an SQL answer as JSON: what is not finite is null, what JSON lacks is text."""
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, list | tuple):
        return [_cell(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _cell(item) for key, item in value.items()}
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _dump(value: Any) -> None:
    terminal.line(json.dumps(value, indent=1, allow_nan=False))
