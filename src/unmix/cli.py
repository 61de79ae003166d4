"""The command line: verbs only. Each verb imports what it needs when it is called."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unmix import asked, catalog
from unmix.errors import DataError, Interrupted, SpecError, StoreError, UnmixError

if TYPE_CHECKING:
    from unmix.papers.base import Size

app = typer.Typer(
    help="Why does gradient descent mix features that a robust network should keep apart?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

RunsFolder = Annotated[
    Path, typer.Option("--runs", metavar="DIR", help="Folder of the stored runs.")
]
Device = Annotated[
    str, typer.Option(parser=asked.device, metavar="DEVICE", help="auto, cpu or cuda:N.")
]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output on stdout.")]
Estimate = Annotated[
    bool, typer.Option("--estimate", help="Say what it would cost, and start nothing.")
]
# A training of more multiplications says before it starts what it will cost.
LONG = 10**13

STOPPED = Interrupted(
    "stopped; finished runs and checkpoints are kept", "the same command goes on from there"
)


@app.command("list")
def list_(
    family: Annotated[
        str,
        typer.Argument(
            metavar="FAMILY",
            help="papers, data, nets, train, probes, attacks, claims, figures, settings, engines "
            "or specs.",
        ),
    ] = "",
    json_: Json = False,
) -> None:
    """List every name that a verb understands.

    `settings` are the experiments of the papers, `specs` is the JSON Schema of an experiment and
    `engines` what a step of training costs on this machine.
    """
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
    spec: Annotated[
        str, typer.Argument(metavar="SPEC", help="A .json or .toml file, or PAPER:SETTING.")
    ],
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="A.B=VALUE", help="data.k=20, as often as needed."),
    ] = None,
    seeds: Annotated[str, typer.Option(metavar="SEEDS", help="A range 0:8 or a list 0,3,5.")] = "",
    device: Device = "auto",
    threads: Annotated[
        int | None, typer.Option(parser=asked.count, metavar="N", help="Threads of torch.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the stored runs.")] = Path(
        "runs"
    ),
    estimate: Estimate = False,
    json_: Json = False,
) -> None:
    """Train an experiment, and say what it learned.

    A run that the store holds is not trained again; one that was stopped goes on.
    """
    with _guarded():
        from unmix import showing
        from unmix.experiment import pick_device
        from unmix.forecast import forecast
        from unmix.reproduction import judge_alone
        from unmix.store import Store
        from unmix.sweep import Job
        from unmix.terminal import progress, waiting

        experiment, store = asked.experiment(spec, assignments or [], seeds), Store(out)
        job = Job(experiment)
        if estimate:
            showing.forecasts({spec: forecast(store, [job])}, 1, json_)
            return
        pick_device(device)
        asked.writable(out)
        if job.training_cost() > LONG:
            showing.warn_of(forecast(store, [job]), job.training_cost())
        with progress("training") as tell:
            done = store.run(
                experiment, device=device, threads=threads, progress=lambda d, t: tell(d, t, "")
            )
        with waiting("verdicts"):
            judge_alone(store, done)
        showing.one_run(done, store, json_)
        if done.trace.diverged:
            raise showing.divergence(done)
        showing.hint(done)


@app.command()
def fetch(
    names: Annotated[list[str], typer.Argument(metavar="DATASET...", help="As mnist, cifar10.")],
) -> None:
    """Get a dataset's images, once and for all.

    Your own files come first, then the clients of package managers, then public mirrors.
    """
    with _guarded():
        from unmix.data.images.loader import home
        from unmix.terminal import line

        _fetch(names)
        line(f"in {home() / 'images'}: {', '.join(names)}")


@app.command()
def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help="Name of a paper.")] = "",
    only: Annotated[
        str | None, typer.Argument(metavar="FIGURE|CLAIM", help="One figure or claim.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every paper, on one page.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Quick size (the default).")] = False,
    full: Annotated[
        bool, typer.Option("--paper", help="Paper size: more seeds and rungs.")
    ] = False,
    estimate: Estimate = False,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the report.")] = Path(
        "report"
    ),
    runs: RunsFolder = Path("runs"),
    workers: Annotated[
        int, typer.Option(parser=asked.count, metavar="N", help="Processes.")
    ] = os.cpu_count() or 1,
    device: Device = "auto",
    threads: Annotated[
        int, typer.Option(parser=asked.count, metavar="N", help="Threads of torch a process.")
    ] = 1,
    json_: Json = False,
) -> None:
    """Judge a paper's claims and draw its figures.

    The exit code is 0, or 1 if a claim is refuted or failed, or 2 for bad usage.
    """
    if quick and full:
        raise SpecError("--quick and --paper exclude each other", "give one of them")
    if every == bool(paper):
        hint = "papers: " + ", ".join(catalog.names("papers"))
        raise SpecError("expected the name of a paper or --all, and one only", hint)
    size: Size = "paper" if full else "quick"
    papers = [catalog.load("papers", p) for p in (catalog.names("papers") if every else [paper])]
    with _guarded():
        from unmix import showing
        from unmix.campaign import Campaign, bad
        from unmix.experiment import pick_device
        from unmix.reproduction import Means, Task
        from unmix.store import Store
        from unmix.terminal import progress

        store, means = Store(runs), Means(workers, threads, device)
        if full and not estimate:
            tasks = [Task.of(source, only, size, store) for source in papers]
            for name in dict.fromkeys(name for task in tasks for name in task.datasets):
                # What cannot be had is told by the claims that need it.
                with suppress(DataError):
                    _fetch([name])
        if only is not None:
            work: Campaign | Task = Task.of(papers[0], only, size, store, means)
        else:
            work = Campaign(tuple(papers), size, store, means)
        if estimate:
            showing.forecasts(work.forecasts(), workers, json_)
            return
        pick_device(device)
        for folder in (out, runs):
            asked.writable(folder)
        with progress("runs") as tell:
            work.run(tell)
        with progress("verdicts") as tell:
            told = work.sections(lambda done, total: tell(done, total, ""))
        showing.sections(told, json_)
        if only is None:
            showing.page_of(told, out, json_)
        else:
            showing.figures(told, out, json_)
        raise typer.Exit(1 if bad(told) else 0)


@app.command()
def show(
    what: Annotated[
        str, typer.Argument(metavar="RUN|PAPER", help="A run's folder or digest, or a paper.")
    ] = "",
    html: Annotated[bool, typer.Option("--html", help="Write a page, and say where.")] = False,
    latex: Annotated[
        bool, typer.Option("--latex", help="Verdicts and a report's figures, on stdout.")
    ] = False,
    json_: Json = False,
    sql: Annotated[
        str | None,
        typer.Option(metavar="QUERY", help="A SELECT over the tables runs, trace and verdicts."),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the report.")] = Path(
        "report"
    ),
    runs: RunsFolder = Path("runs"),
) -> None:
    """Show a stored run, a paper's verdicts, or an SQL answer."""
    if (sql is None) == (not what):
        example = '--sql "SELECT digest, net_kind FROM runs"'
        raise SpecError("expected a run, a paper or --sql, and one only", f"example: {example}")
    if html + latex + json_ > 1:
        raise SpecError("--html, --latex and --json exclude each other", "give one of them")
    if sql is not None and (html or latex):
        raise SpecError("--html and --latex are for runs and papers", "--sql has --json")
    with _guarded():
        from unmix import showing
        from unmix.store import Store

        store = Store(runs)
        if html:
            asked.writable(out)
        if sql is not None:
            showing.query(store, sql, json_)
        elif what in catalog.names("papers"):
            source = catalog.load("papers", what)
            showing.paper(source, store, html=html, latex=latex, as_json=json_, out=out)
        elif html or latex:
            showing.judged_run(showing.found(store, what), store, latex=latex, out=out)
        else:
            showing.one_run(showing.found(store, what), store, json_)


def _fetch(names: Iterable[str]) -> None:
    """Datasets that are not here yet, with a bar for each."""
    from unmix.data.images import loader
    from unmix.terminal import progress

    for name in names:
        if loader.is_here(name):
            continue
        with progress(f"fetching {name}") as tell:
            loader.fetch(name, partial(_plainly, tell))


def _plainly(tell: Callable[[int, int, str], None], done: int, total: int) -> None:
    tell(done, total, "")


@app.command()
def cite(
    what: Annotated[
        str, typer.Argument(metavar="RUN|PAPER", help="A run's folder or digest, or a paper.")
    ],
    runs: RunsFolder = Path("runs"),
) -> None:
    """Print the BibTeX of what a run used, or of a paper."""
    with _guarded():
        from unmix import citing, showing
        from unmix.store import Store
        from unmix.terminal import line

        if what in catalog.names("papers"):
            entries = citing.of_paper(catalog.load("papers", what))
        else:
            store = Store(runs)
            entries = citing.of_run(showing.found(store, what), store)
        line("\n\n".join(entries))


@contextmanager
def _guarded() -> Iterator[None]:
    """Ctrl-C and a full memory or disk are no accidents: whatever a store holds survives them."""
    try:
        yield
    except KeyboardInterrupt:
        raise STOPPED from None
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StoreError(f"the system refuses: {error}", "free some space and try again") from None
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and "allocate" not in str(error):
            raise
        reason = str(error).rpartition("Allocator: ")[2]
        hint = "lower samples.train, data.d or the number of seeds"
        raise UnmixError(f"not enough memory: {reason}", hint) from None


def _leave(number: int, frame: object) -> None:
    """Ctrl-C while nothing is at stake: imports may swallow a KeyboardInterrupt, but not this."""
    os.write(2, f"\n{STOPPED}\n".encode())
    os._exit(130)


def main() -> None:
    """Entry point: a known error is one screen of text and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    before = signal.signal(signal.SIGINT, _leave)
    try:
        app()
    except Interrupted as error:
        typer.echo(f"\n{error}", err=True)
        sys.exit(130)
    except UnmixError as error:
        if isinstance(error, SpecError) and not error.hint:
            error.hint = "every field with its limits: unmix list specs"
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)
    finally:
        signal.signal(signal.SIGINT, before)
