"""How the cost of a step and the peak of memory grow with n, d, h and R.

    python benchmarks/growth.py {peaks,million}

Peaks are measured in a process of their own that holds little else, each in a fork of it.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.ticker import NullFormatter, NullLocator
from measure import interleaved
from problems import Case, Setup
from torch import Tensor

from unmix.nets.tops import ReluTop
from unmix.train.engines import ENGINES
from unmix.train.engines.base import Problem
from unmix.train.engines.columns import Drawn, Held
from unmix.train.losses import Loss

PICTURE = Path("docs/engine-growth.png")
BASE = {"n": 500, "d": 1500, "neurons": 10, "replicas": 1}
AXES = {
    "n": (125, 250, 500, 1000, 2000),
    "d": (375, 750, 1500, 3000, 6000),
    "neurons": (10, 20, 40, 80, 160),
    "replicas": (1, 2, 4, 8, 16, 32),
}
WAYS = {"plain": "k--", "gemm": "C0o-", "gram": "C1s-"}
# Axis and way -> a number for each value of the axis.
Lines = dict[str, dict[str, list[float]]]


def setup(axis: str, value: int) -> Setup:
    return Setup.of(Case("growth", dtype=torch.float64, **(BASE | {axis: value})))


def stepping(one: Setup, way: str) -> Callable[[], None]:
    return one.plain() if way == "plain" else one.engine(way)


def costs(repeats: int) -> Lines:
    """CPU milliseconds of a step of all replicas."""
    lines: Lines = {}
    for axis, values in AXES.items():
        lines[axis] = {way: [] for way in WAYS}
        for value in values:
            one = setup(axis, value)
            seconds = interleaved({way: stepping(one, way) for way in WAYS}, repeats)
            for way, found in seconds.items():
                # The plain loop trains one net after the other.
                nets = one.case.replicas if way == "plain" else 1
                lines[axis][way].append(1e3 * nets * statistics.median(found))
    return lines


def draw(cost: Lines, memory: Lines) -> None:
    """Cost above, memory below, against each size."""
    figure, panels = plt.subplots(2, 4, figsize=(14, 6.2), sharex="col", constrained_layout=True)
    for (axis, values), (above, below) in zip(AXES.items(), panels.T, strict=True):
        for way, style in WAYS.items():
            above.loglog(values, cost[axis][way], style, label=way)
            below.loglog(values, memory[axis][way], style, label=way)
        below.set_xticks(values, [str(value) for value in values])
        for panel in (above, below):
            panel.xaxis.set_minor_locator(NullLocator())
            panel.yaxis.set_minor_formatter(NullFormatter())
        below.set_xlabel({"neurons": "neurons h", "replicas": "replicas R"}.get(axis, axis))
    panels[0, 0].set_ylabel("CPU ms a step")
    panels[1, 0].set_ylabel("peak MB")
    panels[0, 0].legend()
    figure.suptitle("A step at n=500, d=1500, 10 neurons, float64; one of them varied")
    figure.savefig(PICTURE, dpi=90)


def peaks() -> Lines:
    """MB of data, weights, a set-up and three steps."""
    return {
        axis: {
            way: [_forked(partial(_steps, axis, value, way)) for value in values] for way in WAYS
        }
        for axis, values in AXES.items()
    }


def _steps(axis: str, value: int, way: str) -> float:
    before = _warm(way)
    one = setup(axis, value)
    step = stepping(one, way)
    for _ in range(3):
        step()
    return _status("VmHWM") - before


def _warm(way: str) -> float:
    """What is held after some small steps: libraries and machine code are nobody's memory."""
    step = stepping(Setup.of(Case("warm", 120, 150, 10, torch.float64)), way)
    for _ in range(3):
        step()
    return _status("VmRSS")


def million() -> dict[str, float]:
    """The same in a million dimensions (n=200, float64), with X held or drawn block by block."""
    return {way: _forked(partial(_million, way)) for way in ("held", "drawn")}


def _million(way: str) -> float:
    n, d, neurons = 200, 1_000_000, 10
    made = torch.Generator()

    def draw(first: int, last: int) -> Tensor:
        made.manual_seed(first)
        return torch.randn(1, n, last - first, generator=made, dtype=torch.float64)

    drawn, before = Drawn((1, n, d), draw), _warm("gram")
    readout = torch.tensor([[0.2]] * 5 + [[-0.2]] * 5, dtype=torch.float64)
    params = {"w": torch.zeros(1, neurons, d, dtype=torch.float64)}
    y, eta = torch.ones(1, n, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    x = _whole(drawn) if way == "held" else drawn
    engine = ENGINES["gram"](Problem(params, x, y, ReluTop(readout), Loss(), eta))
    for _ in range(20):
        engine.forward()
        engine.advance()
    engine.params()
    return _status("VmHWM") - before


def _whole(drawn: Drawn) -> Held:
    """X in memory, without a second copy on the way."""
    x = torch.empty(drawn.shape, dtype=torch.float64)
    for columns, block in drawn.blocks():
        x[:, :, columns] = block
    return Held(x)


def _forked(work: Callable[[], float]) -> float:
    """What a child of this process finds, whose memory goes with it."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, json.dumps(work()).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        found = float(answer.read())
    os.waitpid(child, 0)
    return found


def _status(name: str) -> float:
    """Memory of this process in MB: VmRSS is what it holds, VmHWM the most that it has held."""
    status = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in status if line.startswith(name))
    return int(line.split()[1]) / 1024


def apart(what: str) -> Any:
    """A measurement of this module in a process of its own."""
    command = [sys.executable, __file__, what]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps({"peaks": peaks, "million": million}[sys.argv[1]]()))
