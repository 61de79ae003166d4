"""How all benchmarks measure: competitors take turns in one process, in CPU time, on one thread.

Every repeat times each competitor once, so that a drift of the machine hits all alike. Ratios are
medians over repeats, with their range in brackets.
"""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch

Work = Callable[[], object]


def interleaved(works: Mapping[str, Work], repeats: int, times: int = 1) -> dict[str, list[float]]:
    """CPU seconds a call of every competitor, an entry a repeat; the first round warms up."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for repeat in range(repeats + 1):
        for name, work in works.items():
            start = time.process_time()
            for _ in range(times):
                work()
            if repeat:
                seconds[name].append((time.process_time() - start) / times)
    return seconds


def ratios(slow: Sequence[float], quick: Sequence[float]) -> list[float]:
    """How many times faster, repeat by repeat."""
    return [a / max(b, 1e-9) for a, b in zip(slow, quick, strict=True)]


def cell(values: Sequence[float]) -> str:
    """Median [range]."""
    low, high = min(values), max(values)
    return f"{shown(statistics.median(values))} [{shown(low)}, {shown(high)}]"


def shown(value: float) -> str:
    """Three digits, or a whole number."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def machine() -> str:
    """What the numbers were measured on."""
    name = platform.processor() or platform.machine()
    cpu = Path("/proc/cpuinfo")
    if cpu.exists():
        models = [line for line in cpu.read_text().splitlines() if line.startswith("model name")]
        name = models[0].partition(":")[2].strip() if models else name
    version = f"Python {platform.python_version()}, torch {torch.__version__}"
    return f"{name}, {os.cpu_count()} cores, {platform.system()}, {version}, one thread"
