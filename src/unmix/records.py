"""One run folder: what its files hold, how they are written, and when they are trusted.

    experiment.json      the spec, whose digest is the folder's name
    env.json             versions of unmix, FORMAT, python, torch, numpy; platform, threads, device,
                         seconds of training (since the last resumption) and when it finished
    trace.parquet        a row for each replica and recorded step: replica, seed, step, the columns;
                         a flow's also has the time
    stops.json           why each replica stopped: reason, step, advice, a flow's time
    params.safetensors   params.<name> and, from the end of the trace, final.<name>
    DONE                 sha256 of all files above; `sha256sum -c DONE` checks them, too
    verdicts.json        judged claims, replaced as a whole when one is added
    attacked-*           the outcome of one suite at some radii, a cache
    certified-*          brackets of robust radii by one method, a cache

Nothing is pickled. All files but env.json and DONE have the same bytes whenever the numbers agree.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import torch

from unmix import __version__, parquet
from unmix.attacks.base import Attacked
from unmix.attacks.threat import Threat
from unmix.certify.base import Certificate
from unmix.claims import Verdict
from unmix.errors import SpecError, StoreError
from unmix.experiment import Experiment, Run
from unmix.nets.base import Params
from unmix.sealed import pack, put, replace, sync, unpack
from unmix.spec import FORMAT
from unmix.train.base import Checkpoint, Stop, Trace

FROZEN = ("experiment.json", "env.json", "trace.parquet", "stops.json", "params.safetensors")
NAME = re.compile("[0-9a-f]{16}")
KEYS = ("replica", "seed", "step")
TIME = "time"
MAKER = {"unmix": __version__, "format": FORMAT}


class Outdated(StoreError):
    """A sound run that another version of unmix made: to be trained again, not to be used."""


@dataclass
class Checkpoints:
    """Keeps the state of a training every so often, and gives back only what can be trusted."""

    folder: Path
    digest: str
    device: torch.device
    every: float
    last: float = field(default_factory=time.monotonic)

    def due(self) -> bool:
        return time.monotonic() - self.last >= self.every

    def save(self, part: str, state: Checkpoint) -> None:
        stops = [stop and asdict(stop) for stop in state.stops]
        about = self._maker() | {"step": state.step, "stops": stops}
        # A checkpoint that cannot be saved costs time if the run is killed, but not the run.
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            replace(self._path(part), pack(state.tensors, about))
        self.last = time.monotonic()

    def load(self, part: str) -> Checkpoint | None:
        """The last state of this very training, or None: then it begins anew."""
        try:
            tensors, about = unpack(self._path(part))
        except StoreError:
            return None
        if any(about.get(name) != value for name, value in self._maker().items()):
            return None
        stops = [stop and Stop(**stop) for stop in about["stops"]]
        moved = {name: t.to(self.device) for name, t in tensors.items()}
        return Checkpoint(about["step"], moved, stops)

    def _maker(self) -> dict[str, Any]:
        return MAKER | {"digest": self.digest}

    def _path(self, part: str) -> Path:
        return self.folder / f"{part}.safetensors"


def environment(device: str, threads: int, seconds: float) -> dict[str, Any]:
    """What env.json holds: all that may change the last bits of a result, and the time it took."""
    return MAKER | {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": platform.platform(),
        "threads": threads,
        "device": device,
        "seconds": round(seconds, 3),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def write(folder: Path, run: Run, env: Mapping[str, Any]) -> None:
    """Fill a folder; DONE comes last, so a folder without it is not a run."""
    tensors = {f"params.{name}": t for name, t in run.params.items()}
    tensors |= {f"final.{name}": t for name, t in run.trace.final.items()}
    put(folder / "experiment.json", run.experiment.to_json().encode())
    put(folder / "env.json", _json(env))
    put(folder / "stops.json", _json([asdict(stop) for stop in run.trace.stops]))
    put(folder / "params.safetensors", pack(tensors, {}))
    put(folder / "verdicts.json", _json([]))
    _write_trace(folder / "trace.parquet", run)
    sums = [f"{_sum(folder / name)}  {name}\n" for name in FROZEN]
    put(folder / "DONE", "".join(sums).encode())
    sync(folder)


def read(folder: Path) -> Run:
    """The run of a folder, if every byte is as it was written and the folder is its own."""
    try:
        _check_sums(folder)
    except OSError as error:
        hint = f"make it readable: chmod -R u+rX '{folder}'"
        raise StoreError(f"cannot read {folder}: {error}", hint) from None
    env = read_json(folder / "env.json")
    if not isinstance(env, dict) or any(env.get(name) != MAKER[name] for name in MAKER):
        made = env.get("unmix") if isinstance(env, dict) else None
        raise Outdated(
            f"{folder} was made by unmix {made}, this is {__version__}",
            "run its experiment again, or read it with the version that made it",
        )
    experiment = _own_experiment(folder)
    try:
        tensors, _ = unpack(folder / "params.safetensors")
        final = _under("final.", tensors)
        trace = _read_trace(folder, experiment, final)
    except (duckdb.Error, KeyError, TypeError, ValueError) as error:
        raise _damaged(folder, str(error)) from None
    return Run(experiment, _under("params.", tensors), trace, folder=folder)


def read_verdicts(folder: Path) -> list[Verdict]:
    """The verdicts beside a run; a folder without the file has none."""
    path = folder / "verdicts.json"
    try:
        return [_verdict(item) for item in (read_json(path) if path.exists() else [])]
    except (KeyError, TypeError, ValueError) as error:
        hint = f"delete it and judge again: rm '{path}'"
        raise StoreError(f"{path} holds no verdicts: {error}", hint) from None


def write_verdicts(folder: Path, verdicts: Sequence[Verdict]) -> None:
    plain = [
        {name: _finite(value) for name, value in asdict(verdict).items()} for verdict in verdicts
    ]
    replace(folder / "verdicts.json", _json(plain))


def write_attacked(path: Path, attacked: Attacked) -> None:
    tensors = {f"attack.{name}": t for name, t in attacked.by_attack.items()}
    tensors |= {f"control.{name}": t for name, t in attacked.control.items()}
    about = {
        "radii": attacked.radii,
        "unit": attacked.unit,
        "unverified": attacked.unverified,
        "threat": attacked.threat.plain(),
        "flags": attacked.flags,
    }
    replace(path, pack(tensors, about))


def read_attacked(path: Path) -> Attacked:
    """An attack as it was kept, its names in their order; StoreError if it is damaged."""
    tensors, about = unpack(path)
    by_attack = _under("attack.", tensors)
    control = _under("control.", tensors)
    return Attacked(
        tuple(about["radii"]),
        tuple(by_attack),
        by_attack,
        control,
        about["unit"],
        about["unverified"],
        Threat.parse(about["threat"]),
        tuple(about["flags"]),
    )


def write_certificate(path: Path, found: Certificate) -> None:
    tensors = {name: getattr(found, name) for name in ("lower", "upper", "status", "witness")}
    about = {name: getattr(found, name) for name in ("unit", "norm", "method", "why")}
    replace(path, pack(tensors, about))


def read_certificate(path: Path) -> Certificate:
    """A certificate as it was kept; StoreError if it is damaged."""
    tensors, about = unpack(path)
    lower, upper, status, witness = (
        tensors[name] for name in ("lower", "upper", "status", "witness")
    )
    words = (about["unit"], about["norm"], about["method"], about["why"])
    return Certificate(lower, upper, status, witness, *words)


def read_json(path: Path) -> Any:
    """What a JSON file holds; StoreError if it cannot be read."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot read {path}: {error}", f"delete it: rm '{path}'") from None


def _write_trace(path: Path, run: Run) -> None:
    trace, replicas = run.trace, run.replicas
    keys: dict[str, np.ndarray] = {
        "replica": np.repeat(np.arange(replicas), len(trace.steps)),
        "seed": np.repeat(np.array(run.experiment.seeds), len(trace.steps)),
        "step": np.tile(np.array(trace.steps), replicas),
    }
    if trace.times:
        keys[TIME] = np.tile(np.array(trace.times), replicas)
    columns = {name: column.cpu().numpy().flatten() for name, column in trace.columns.items()}
    parquet.write(path, keys, columns)
    sync(path)


def _read_trace(folder: Path, experiment: Experiment, final: Params) -> Trace:
    table = parquet.read(folder / "trace.parquet", ("replica", "step"))
    replicas = len(experiment.seeds)
    steps = tuple(table["step"].reshape(replicas, -1)[0].tolist())
    columns = {
        name: torch.from_numpy(np.array(values)).reshape(replicas, -1)
        for name, values in table.items()
        if name not in (*KEYS, TIME)
    }
    times = table[TIME].reshape(replicas, -1)[0].tolist() if TIME in table else ()
    stops = tuple(Stop(**item) for item in read_json(folder / "stops.json"))
    return Trace(steps, columns, stops, final, tuple(times))


def _damaged(folder: Path, what: str) -> StoreError:
    """The error for a folder that is not what it was."""
    return StoreError(f"{folder} is damaged: {what}", _remedy(folder))


def _remedy(folder: Path) -> str:
    # Only what is named like a run may be proposed for deletion; it might be somebody's home.
    if NAME.fullmatch(folder.name):
        return f"delete it and run again: rm -r '{folder}'"
    return "give the digest or the folder of a finished run"


def _check_sums(folder: Path) -> None:
    if not folder.is_dir():
        raise StoreError(f"there is no run folder {folder}", "run its experiment first")
    done = folder / "DONE"
    if not done.is_file():
        message = f"{folder} is not a finished run: it has no file DONE"
        raise StoreError(message, _remedy(folder))
    lines = [line.split("  ") for line in done.read_text(errors="replace").splitlines()]
    if [line[1:] for line in lines] != [[name] for name in FROZEN]:
        raise _damaged(folder, "DONE does not list its files")
    for given, name in lines:
        if not (folder / name).is_file():
            raise _damaged(folder, f"{name} is missing")
        if _sum(folder / name) != given:
            raise _damaged(folder, f"{name} is not as it was written")


def _own_experiment(folder: Path) -> Experiment:
    """The experiment, if it is the one that the folder is named after."""
    hint = "give a folder that unmix wrote and nobody renamed"
    try:
        experiment = Experiment.parse(read_json(folder / "experiment.json"))
    except SpecError as error:
        raise StoreError(f"{folder} holds no experiment: {error.message}", hint) from None
    digest = experiment.digest()
    if folder.absolute().name != digest:
        raise StoreError(f"{folder} is foreign: it holds the run {digest}", hint)
    return experiment


def _finite(value: Any) -> Any:
    """JSON knows no infinity, so numbers that are not finite are written as text."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _verdict(item: Mapping[str, Any]) -> Verdict:
    numbers = {k: None if item[k] is None else float(item[k]) for k in ("mean", "low", "high")}
    return Verdict(**{**item, **numbers, "runs": tuple(item["runs"])})


def _under(prefix: str, tensors: Params) -> Params:
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()


def _sum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
