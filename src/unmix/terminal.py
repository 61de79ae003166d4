"""What a user sees in a terminal: tables, and progress with the time left.

On a terminal progress is a live bar; in a log it is one line per ten per cent.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

Tell = Callable[[int, int, str], None]

STYLES = {
    "confirmed": "green",
    "supported": "cyan",
    "inconclusive": "yellow",
    "refuted": "bold red",
    "failed": "bold magenta",
    "not-run": "dim",
}


def say(text: str) -> None:
    """One line for people; machine-readable output goes to stdout alone."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(text, markup=False)


def line(text: str) -> None:
    """One line, or any text, on stdout as it is."""
    sys.stdout.write(text.rstrip("\n") + "\n")


def duration(seconds: float) -> str:
    """A span of time in one unit, or two."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table on stdout; a cell that is a status has its colour."""
    if title:
        line(title)
    # A pipe or a file has no edge to fold at, and is read better without one.
    wide = Console(width=None if sys.stdout.isatty() else 10_000)
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        grid.add_column(column, overflow="fold")
    for row in rows:
        grid.add_row(*(_styled(cell) for cell in row))
    wide.print(grid)


def _styled(cell: str) -> Text:
    words = cell.split()
    return Text(cell, style=STYLES.get(words[-1], "") if words else "")


@contextmanager
def progress(what: str) -> Iterator[Tell]:
    """A function (done, total, detail) that shows how far the work is and how long it will take."""
    with _shown(what, _log(what)) as tell:
        yield tell


@contextmanager
def waiting(what: str) -> Iterator[Tell]:
    """The same for work of some seconds: a bar on a terminal, nothing in a log."""
    with _shown(what, nullcontext(_silent)) as tell:
        yield tell


@contextmanager
def _shown(what: str, log: AbstractContextManager[Tell]) -> Iterator[Tell]:
    with _bar(what) if sys.stderr.isatty() else log as tell, _listening() as listen:

        def listen_and_tell(done: int, total: int, detail: str) -> None:
            listen()
            tell(done, total, detail)

        yield listen_and_tell


def _silent(done: int, total: int, detail: str) -> None:
    pass


@contextmanager
def _listening() -> Iterator[Callable[[], None]]:
    """A function that raises KeyboardInterrupt after Ctrl-C, should the first one have been lost.

    Code in C may clear any exception that is raised while it runs.
    """
    pressed = False

    def press(number: int, frame: object) -> None:
        nonlocal pressed
        pressed = True
        raise KeyboardInterrupt

    def listen() -> None:
        if pressed:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, press)
    try:
        yield listen
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _bar(what: str) -> Iterator[Tell]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[detail]}", style="dim"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None, detail="")
        yield lambda done, total, detail: bar.update(
            task, completed=done, total=total, detail=detail
        )


@contextmanager
def _log(what: str) -> Iterator[Tell]:
    start, first, told = time.monotonic(), -1, 0

    def tell(done: int, total: int, detail: str) -> None:
        nonlocal first, told
        tenth = 10 * done // max(total, 1)
        if first < 0:
            # What an earlier call had finished is no news and must not flatter the estimate.
            first, told = done, tenth
        if tenth > told and done > first:
            told = tenth
            passed = time.monotonic() - start
            left = passed * (total - done) / (done - first)
            say(f"{what}: {10 * tenth} %, {passed:.0f} s, about {left:.0f} s left")

    yield tell
