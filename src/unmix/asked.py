"""What a user typed, as values: an experiment, seeds, counts, a device, a folder to write to."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from typer import BadParameter

from unmix import catalog
from unmix.errors import SpecError, StoreError, UnknownName, nearest

if TYPE_CHECKING:
    from unmix.experiment import Experiment

MOST_SEEDS = 100_000
MOST_PROCESSES = 1024


def count(text: str | int) -> int:
    """A number of threads or processes."""
    with suppress(ValueError):
        if 1 <= int(text) <= MOST_PROCESSES:
            return int(text)
    raise BadParameter(f"expected a whole number from 1 to {MOST_PROCESSES}, got {text!r}")


def device(text: str) -> str:
    """The name of a device."""
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", text):
        raise BadParameter(f"expected auto, cpu or cuda:N, got {text!r}")
    return text


def experiment(spec: str, assignments: Sequence[str], seeds: str) -> Experiment:
    """The experiment a user asked for: a file or PAPER:SETTING, with changes applied."""
    from unmix.experiment import Experiment
    from unmix.listing import settings
    from unmix.spec import read

    if spec in catalog.names("papers"):
        raise SpecError(
            f"expected a setting of the paper, got {spec!r}", "see: unmix list settings"
        )
    if ":" in spec and not Path(spec).exists():
        paper, _, name = spec.partition(":")
        known = settings(paper)
        if name not in known:
            hint = f"{nearest(name, known)} (all: unmix list settings)"
            raise UnknownName(f"{paper} has no setting {name!r}", hint)
        chosen = known[name]
    else:
        chosen = read(Experiment, Path(spec))
    changes = [*assignments, *([f"seeds={list(_seeds(seeds))}"] if seeds else [])]
    return chosen.with_(*changes)


def _seeds(text: str) -> range | list[int]:
    """0:8 is 0..7; 0,3,5 is a list."""
    example = "example: --seeds 0:8"
    try:
        if ":" in text:
            first, last = (int(part) for part in text.split(":"))
            chosen: range | list[int] = range(first, last)
        else:
            chosen = [int(part) for part in text.split(",")]
    except ValueError:
        raise SpecError(f"--seeds: expected 0:8 or 0,3,5, got {text!r}", example) from None
    if not chosen:
        raise SpecError(f"--seeds: the range {text!r} is empty", example)
    if isinstance(chosen, range) and last - first > MOST_SEEDS:
        came = f"--seeds: expected at most {MOST_SEEDS} seeds, got {last - first}"
        raise SpecError(came, "split them over several runs")
    return chosen


def writable(folder: Path) -> None:
    """Fail before the work, not after it; nothing is left of the attempt."""
    new = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (FileExistsError, NotADirectoryError):
        hint = "give the name of a folder"
        raise StoreError(f"cannot write to {folder}: a file is in the way", hint) from None
    except OSError as error:
        hint = "make it writable, or give another folder"
        raise StoreError(f"cannot write to {folder}: {error.strerror}", hint) from None
    finally:
        for place in new:
            with suppress(OSError):
                place.rmdir()
