"""How all benchmarks measure: competitors take turns in one process, in CPU time, on one thread.

A turn is a few calls, for a twentieth of a second or one call. Every repeat gives each competitor
a turn, so that a drift of the machine hits all alike. Ratios are medians over repeats, with their
range in brackets. What was measured is kept in docs/performance.json, from which `page.py` writes
docs/performance.md.
"""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

Work = Callable[[], object]
KEPT = Path("docs/performance.json")
# Seconds of a turn.
TURN = 0.05
# A call that takes longer than this, even the first, makes a turn alone.
LONG = 1.0


@dataclass(frozen=True)
class Row:
    """One line of the table of goals.

    `gain` is how many times faster than the plain loop, `limit` the same for nothing but the matrix
    products of the step; `reached` is the share of that limit, in per cent. An entry a repeat.
    """

    case: str
    goal: str
    gain: list[float]
    limit: list[float] = field(default_factory=list)
    reached: list[float] = field(default_factory=list)
    by: str = ""
    plain: float = math.nan

    @property
    def met(self) -> bool | None:
        """Is the median as good as the goal? None without a goal."""
        if not self.goal:
            return None
        sense, _, number = self.goal.partition(" ")
        bound, value = float(number.replace(",", "").rstrip("x% ")), statistics.median(self.gain)
        return value >= bound if sense == ">=" else value <= bound


def interleaved(works: Mapping[str, Work], repeats: int) -> dict[str, list[float]]:
    """CPU seconds a call of every competitor, an entry a repeat."""
    calls = {name: _calls(work) for name, work in works.items()}
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            seconds[name].append(_turn(work, calls[name]))
    return seconds


def _calls(work: Work) -> int:
    """How many calls make a turn; the first one warms up, and shows whether one is enough."""
    if _turn(work, 1) > LONG:
        return 1
    return max(1, min(2000, math.ceil(TURN / max(_turn(work, 1), 1e-6))))


def _turn(work: Work, calls: int) -> float:
    start = time.process_time()
    for _ in range(calls):
        work()
    return (time.process_time() - start) / calls


def ratios(slow: Sequence[float], quick: Sequence[float]) -> list[float]:
    """How many times faster, repeat by repeat."""
    return [a / max(b, 1e-9) for a, b in zip(slow, quick, strict=True)]


def keep(part: str, rows: Sequence[Row], **more: Any) -> None:
    """Put what one benchmark measured beside what the others did."""
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    kept[part] = {"rows": [_rounded(asdict(row)) for row in rows], "machine": machine(), **more}
    KEPT.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _rounded(value: Any) -> Any:
    """Four digits are more than a measurement has."""
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def cell(values: Sequence[float]) -> str:
    """Median [range]."""
    low, high = min(values), max(values)
    return f"{shown(statistics.median(values))} [{shown(low)}, {shown(high)}]"


def shown(value: float) -> str:
    """Three digits, or a whole number."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def machine() -> str:
    """What the numbers were measured on, and what else it had to do."""
    name = platform.processor() or platform.machine()
    cpu = Path("/proc/cpuinfo")
    if cpu.exists():
        models = [line for line in cpu.read_text().splitlines() if line.startswith("model name")]
        name = models[0].partition(":")[2].strip() if models else name
    version = f"Python {platform.python_version()}, torch {torch.__version__}"
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"{name}, {os.cpu_count()} cores (load {load}), {platform.system()}, {version}"
