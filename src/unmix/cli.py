"""The command line: verbs only. Each verb imports what it needs when it is called."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unmix import catalog
from unmix.errors import Interrupted, SpecError, StoreError, UnknownName, UnmixError, nearest

if TYPE_CHECKING:
    from unmix.experiment import Experiment, Run
    from unmix.papers.base import Size
    from unmix.store import Store

app = typer.Typer(
    help="Why does gradient descent mix features that a robust network should keep apart?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

RunsFolder = Annotated[Path, typer.Option("--runs", help="Folder of the stored runs.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda:N.")]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output on stdout.")]


@app.command("list")
def list_(
    family: Annotated[str, typer.Argument(help="A family, claims, figures or specs.")] = "",
    json_: Json = False,
) -> None:
    """List what there is: papers, data, nets, train, probes, attacks, claims, figures, specs."""
    from unmix.listing import listing, schemas

    if family == "specs":
        typer.echo(json.dumps(schemas(), indent=1))
        return
    found = listing(family)
    if json_:
        typer.echo(json.dumps(found, indent=1))
        return
    for name, members in found.items():
        typer.echo(f"{name}:")
        width = max(len(m) for m in members)
        for member, summary in members.items():
            typer.echo(f"  {member:<{width}}  {summary}")


@app.command()
def run(
    spec: Annotated[str, typer.Argument(help="A .json or .toml file, or PAPER:SETTING.")],
    assignments: Annotated[
        list[str] | None, typer.Option("--set", help="a.b=value, as often as needed.")
    ] = None,
    seeds: Annotated[str, typer.Option(help="A range 0:8 or a list 0,3,5.")] = "",
    device: Device = "auto",
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of torch.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of the stored runs.")] = Path("runs"),
    json_: Json = False,
) -> None:
    """Train an experiment (or find it in the store) and say what it learned."""
    from unmix import showing
    from unmix.store import Store
    from unmix.terminal import progress

    experiment = _experiment(spec, assignments or [], seeds)
    store = Store(out)
    with _interruptible(), progress("training") as tell:
        done = store.run(
            experiment, device=device, threads=threads, progress=lambda d, t: tell(d, t, "")
        )
    _print_run(done, store, json_)
    if done.trace.diverged:
        stop = done.trace.stops[done.trace.diverged[0]]
        seeds_lost = [done.experiment.seeds[r] for r in done.trace.diverged]
        message = f"training diverged at step {stop.step} on seeds {seeds_lost}"
        raise UnmixError(f"{message}; its last finite state is stored", stop.advice)
    if not json_:
        showing.hint(done)


@app.command()
def reproduce(
    paper: Annotated[str, typer.Argument(help="Name of a paper.")],
    only: Annotated[str | None, typer.Argument(help="One claim or figure.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Quick size (the default).")] = False,
    full: Annotated[
        bool, typer.Option("--paper", help="Paper size: more seeds and rungs.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder of the report.")] = Path("report"),
    runs: RunsFolder = Path("runs"),
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = os.cpu_count() or 1,
    device: Device = "auto",
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch a process.")] = 1,
    json_: Json = False,
) -> None:
    """Judge a paper's claims and draw its figures; exit 1 if one is refuted or failed."""
    if quick and full:
        raise SpecError("--quick and --paper exclude each other", "give one of them")
    source = catalog.load("papers", paper)
    from unmix import showing
    from unmix.report import page
    from unmix.reproduction import Means, Task
    from unmix.store import Store
    from unmix.terminal import progress

    size: Size = "paper" if full else "quick"
    means = Means(workers, threads, device)
    task = Task.of(source, only, size, Store(runs), means)
    _writable(out)
    with progress("runs") as tell:
        task.run(tell)
    with _interruptible(), progress("verdicts") as tell:
        result = task.judge(lambda done, total: tell(done, total, ""))
    showing.verdicts(source, result.verdicts, json_)
    if only is None:
        typer.echo(f"report: {page.write(out, [result.section()])}", err=json_)
    else:
        for path in result.save_figures(out):
            typer.echo(f"figure: {path}", err=json_)
    raise typer.Exit(1 if result.bad else 0)


@app.command()
def show(
    what: Annotated[str, typer.Argument(help="A run (folder or digest), or a paper.")] = "",
    html: Annotated[bool, typer.Option("--html", help="Write the page, and say where.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Booktabs table on stdout.")] = False,
    json_: Json = False,
    sql: Annotated[str, typer.Option(help="A SELECT over runs, trace and verdicts.")] = "",
    out: Annotated[Path, typer.Option(help="Folder for --html.")] = Path("report"),
    runs: RunsFolder = Path("runs"),
) -> None:
    """Show a stored run, what is known of a paper, or the answer to an SQL query."""
    from unmix import showing
    from unmix.store import Store

    store = Store(runs)
    if sql:
        showing.query(store, sql, json_)
    elif what in catalog.names("papers"):
        source = catalog.load("papers", what)
        showing.paper(source, store, html=html, latex=latex, as_json=json_, out=out)
    elif what:
        done = store.load(what)
        if html or latex:
            raise SpecError("--html and --latex are for papers", f"try: unmix show {what} --json")
        _print_run(done, store, json_)
    else:
        raise SpecError("expected a run, a paper or --sql", "try: unmix list papers")


def _print_run(done: Run, store: Store, as_json: bool) -> None:
    from unmix import showing

    showing.one_run(done, store, as_json)


def _experiment(spec: str, assignments: list[str], seeds: str) -> Experiment:
    """The experiment a user asked for: a file or PAPER:SETTING, with changes applied."""
    from unmix.experiment import Experiment
    from unmix.spec import read

    paper, colon, setting = spec.partition(":")
    if colon and not Path(spec).exists():
        settings = catalog.load("papers", paper).settings("quick")
        if setting not in settings:
            raise UnknownName(f"{paper} has no setting {setting!r}", nearest(setting, settings))
        experiment: Experiment = settings[setting].experiment
    else:
        experiment = read(Experiment, Path(spec))
    changes = [*assignments, *([f"seeds={list(_seeds(seeds))}"] if seeds else [])]
    return experiment.with_(*changes)


def _seeds(text: str) -> range | list[int]:
    """0:8 is 0..7; 0,3,5 is a list."""
    try:
        if ":" in text:
            first, last = (int(part) for part in text.split(":"))
            chosen: range | list[int] = range(first, last)
        else:
            chosen = [int(part) for part in text.split(",")]
    except ValueError:
        raise SpecError(f"--seeds: expected 0:8 or 0,3,5, got {text!r}") from None
    if not chosen:
        raise SpecError(f"--seeds: the range {text!r} is empty", "example: --seeds 0:8")
    return chosen


def _writable(folder: Path) -> None:
    """Fail before the work, not after it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise StoreError(f"cannot write to {folder}: {error.strerror}", "give --out DIR") from None


@contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C is no accident: whatever a store holds survives it."""
    try:
        yield
    except KeyboardInterrupt:
        hint = "the same command goes on where this one stopped"
        raise Interrupted("stopped; what was done is kept", hint) from None


def main() -> None:
    """Entry point: a known error is one screen of text and exit code 2."""
    try:
        app()
    except Interrupted as error:
        typer.echo(f"\n{error}", err=True)
        sys.exit(130)
    except UnmixError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)
