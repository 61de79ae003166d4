"""What a step costs on this machine: measured once, kept in a file, asked by `auto`.

A product of M neurons with n points in d dimensions reads the large matrix once and multiplies
2 M n d times; whichever is slower sets its time. So a few numbers suffice, for each dtype and
number of threads:

    stream    seconds a byte of a matrix of so many bytes, met by one neuron
    multiply  seconds a multiplication at M = 10, 100, 1000 neurons
    pass_     seconds an entry of one element-wise pass over [M n]
    start     seconds of a step that computes next to nothing
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import platform
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from unmix.train.engines.product import product

# Bumped when what is measured, or how, changes.
VERSION = 4
STREAMED = (2**20, 2**23, 2**26)
WIDTHS = (10, 100, 1000)
# Element-wise passes over [M n] of a step beside its products: activation, readout, slope, update.
PASSES = 8
DTYPES = {"float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True)
class Rates:
    """Seconds of the parts of a step, for one dtype and number of threads."""

    stream: tuple[float, ...]
    multiply: tuple[float, ...]
    pass_: float
    start: float

    def __str__(self) -> str:
        """Speeds, which are easier to compare than times."""
        flow = "/".join(f"{1e-9 / seconds:.0f}" for seconds in self.stream)
        speed = "/".join(f"{2e-9 / seconds:.0f}" for seconds in self.multiply)
        sizes = "/".join(str(memory >> 20) for memory in STREAMED)
        widths = "/".join(map(str, WIDTHS))
        return (
            f"streams {flow} GB/s from {sizes} MB, multiplies {speed} GFLOP/s at {widths} neurons, "
            f"{1e-9 / self.pass_:.1f} G entries/s a pass, {1e6 * self.start:.0f} us a step"
        )

    def product(self, neurons: int, rows: int, columns: int, size: int) -> float:
        """Of [neurons rows] by [rows columns] in a dtype of so many bytes."""
        # As a float, since numpy takes the logarithm of no whole number beyond 64 bits.
        memory = float(rows * columns * size)
        flow = float(np.interp(np.log(memory), np.log(STREAMED), self.stream)) * memory
        rate = float(np.interp(np.log(float(neurons)), np.log(WIDTHS), self.multiply))
        return max(flow, rate * neurons * rows * columns)


@dataclass(frozen=True)
class Job:
    """The sizes on which the cost of a training depends."""

    replicas: int
    sets: int
    neurons: int
    points: int
    dimension: int
    steps: int
    batch: int | None
    normed: bool
    dtype: str

    @property
    def size(self) -> int:
        return 4 if self.dtype == "float32" else 8

    def gemm(self, rates: Rates) -> float:
        """Two products with X a step; a mini-batch is gathered first."""
        seen, wide = self.batch or self.points, self.neurons * self.replicas // self.sets
        product = rates.product(wide, seen, self.dimension, self.size)
        gather = 0 if self.batch is None else seen * self.dimension * rates.pass_
        shrink = wide * self.dimension * rates.pass_ * 2 if self.normed else 0
        step = self.sets * (2 * product + gather + shrink) + self._passes(rates)
        return self.steps * (step + rates.start)

    def gram(self, rates: Rates) -> float:
        """X X^T and two products with X once; a product with K a step."""
        n, wide = self.points, self.neurons * self.replicas // self.sets
        seen = n if self.batch is None or self.normed else self.batch
        once = rates.product(n, n, self.dimension, self.size)
        once += 2 * rates.product(wide, n, self.dimension, self.size)
        step = self.sets * rates.product(wide, n, seen, self.size) + self._passes(rates)
        return self.sets * once + self.steps * (step + rates.start)

    def _passes(self, rates: Rates) -> float:
        seen = self.batch or self.points
        return PASSES * self.replicas * self.neurons * seen * rates.pass_


@dataclass(frozen=True)
class Way:
    """An engine, the threads it runs on, and the seconds that are expected of it."""

    engine: str
    threads: int
    seconds: float


@dataclass(frozen=True)
class Costs:
    """The rates of a machine, by dtype and threads."""

    machine: str
    rates: dict[str, dict[int, Rates]]

    def fastest(self, job: Job, threads: Sequence[int]) -> Way:
        """The cheapest engine and number of threads; another thread must save a tenth to pay."""
        table = self.rates[job.dtype]
        counts = {min(table, key=lambda known: abs(known - count)): count for count in threads}
        ways = [
            Way(engine, count, seconds(table[known]))
            for known, count in counts.items()
            for engine, seconds in (("gram", job.gram), ("gemm", job.gemm))
        ]
        best = min(way.seconds for way in ways)
        return min(
            (way for way in ways if way.seconds <= 1.1 * best),
            key=lambda way: (way.threads, way.seconds),
        )


def measured() -> Costs:
    """The costs of this machine; measured in a second or two the first time, then read."""
    return _known(_machine(), os.cpu_count() or 1)


def path() -> Path:
    """The file that keeps them."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    key = hashlib.sha256(_machine().encode()).hexdigest()[:12]
    return root / "unmix" / f"engines-{key}.json"


@cache
def _known(machine: str, cores: int) -> Costs:
    with suppress(OSError, ValueError, KeyError, TypeError):
        return _parsed(json.loads(path().read_text(encoding="utf-8")), machine)
    counts = sorted({1, cores})
    rates = {
        name: {count: _rates(dtype, count) for count in counts} for name, dtype in DTYPES.items()
    }
    costs = Costs(machine, rates)
    with suppress(OSError):
        _write(costs)
    return costs


def _parsed(plain: Any, machine: str) -> Costs:
    if plain["machine"] != machine:
        raise ValueError("measured on another machine")
    rates = {
        name: {
            int(count): Rates(tuple(r["stream"]), tuple(r["multiply"]), r["pass_"], r["start"])
            for count, r in table.items()
        }
        for name, table in plain["rates"].items()
    }
    return Costs(machine, {name: rates[name] for name in DTYPES})


def _write(costs: Costs) -> None:
    where = path()
    where.parent.mkdir(parents=True, exist_ok=True)
    draft = where.with_name(f".{where.name}.{os.getpid()}.{secrets.token_hex(4)}")
    draft.write_text(json.dumps(asdict(costs), indent=1) + "\n", encoding="utf-8")
    os.replace(draft, where)


@cache
def _machine() -> str:
    name = platform.processor() or platform.machine()
    with suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next(line for line in lines if line.startswith("model name")).partition(":")[2]
    parts = (name.strip(), f"{os.cpu_count()} cores", f"torch {torch.__version__}", f"v{VERSION}")
    return ", ".join(parts)


def _rates(dtype: torch.dtype, threads: int) -> Rates:
    with _threads(threads):
        size = torch.empty((), dtype=dtype).element_size()
        stream = tuple(_stream(dtype, memory // size) / memory for memory in STREAMED)
        speeds = [_multiply(dtype, width) for width in WIDTHS]
        # A wide product can be cut into narrow ones: what seems slower was disturbed.
        multiply = tuple(itertools.accumulate(speeds, min))
        x = torch.rand(2**19, dtype=dtype)
        out = torch.empty_like(x)
        pass_ = _seconds(lambda: torch.mul(x, x, out=out)) / len(x)
        small = torch.rand(8, 8, dtype=dtype)
        # A step is some twenty calls of torch.
        start = 20 * _seconds(lambda: torch.mm(small, small))
    return Rates(stream, multiply, pass_, start)


def _stream(dtype: torch.dtype, entries: int) -> float:
    columns = 1024
    x = torch.ones(entries // columns, columns, dtype=dtype)
    w = torch.ones(1, entries // columns, dtype=dtype)
    out = torch.empty(1, 1, columns, dtype=dtype)
    return _seconds(lambda: product(w[None], x[None], out))


def _multiply(dtype: torch.dtype, neurons: int) -> float:
    # A matrix that fits into a cache, so that the arithmetic is what counts.
    x, w = torch.rand(1, 384, 384, dtype=dtype), torch.rand(1, neurons, 384, dtype=dtype)
    out = torch.empty(1, neurons, 384, dtype=dtype)
    return _seconds(lambda: product(w, x.mT, out)) / (neurons * 384 * 384)


def _seconds(work: Callable[[], object], repeats: int = 9) -> float:
    """Best of a few: a busy machine can only make it slower."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
