"""Steps of the engines against the loop that a researcher would write, in one process.

    python benchmarks/engine.py [--repeats 9] [--out docs/performance.md]

"limit" is the time of the matrix products that a step cannot do without, at the best that torch
does them here: W X^T and g X for `gemm`, C K for `gram`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from measure import cell, interleaved, machine, ratios, table
from torch import Tensor, nn

from unmix.data.clusters import Clusters
from unmix.experiment import Experiment, Samples
from unmix.experiment import run as train
from unmix.nets.tops import PowerTop, ReluTop, Top
from unmix.nets.two_layer import TwoLayer
from unmix.train.base import Record
from unmix.train.descent import GradientDescent
from unmix.train.engines import ENGINES, choose
from unmix.train.engines.base import Problem
from unmix.train.engines.columns import Drawn, Held
from unmix.train.engines.product import product
from unmix.train.losses import Loss

ETA = 1e-3
GROWTH = Path("docs/engine-growth.png")


@dataclass(frozen=True)
class Case:
    """R nets of M neurons on the same n points in d dimensions; p > 0 is a pReLU net."""

    name: str
    n: int
    d: int
    neurons: int
    dtype: torch.dtype
    times: int
    replicas: int = 1
    batch: int | None = None
    p: float = 0.0
    goal: str = ""
    steps: int = 100

    @property
    def label(self) -> str:
        shared = f", {self.replicas} replicas" if self.replicas > 1 else ""
        batch = f", batch {self.batch}" if self.batch else ""
        sizes = f"n={self.n}, d={self.d}, {self.neurons} neurons{shared}{batch}"
        return f"{self.name}: {sizes}, {str(self.dtype).removeprefix('torch.')}"


DOUBLE, SINGLE = torch.float64, torch.float32
CASES = (
    Case("averaging baseline", 1000, 3072, 10, DOUBLE, 20, goal="14"),
    Case("averaging baseline", 1000, 3072, 10, SINGLE, 20, goal="4"),
    Case("shared data", 1000, 3072, 10, DOUBLE, 3, replicas=32, goal="30"),
    Case("shared data", 1000, 3072, 10, SINGLE, 3, replicas=32, goal="12"),
    Case("high dimension", 200, 100_000, 10, DOUBLE, 10, goal="400"),
    Case("high dimension", 200, 100_000, 10, SINGLE, 10, goal="400"),
    Case("wide", 1000, 1000, 2000, DOUBLE, 2, goal="1.9"),
    Case("wide", 1000, 1000, 2000, SINGLE, 2, goal="1.9"),
    Case("many points", 5000, 1000, 10, DOUBLE, 5, goal="1.3"),
    Case("many points", 5000, 1000, 10, SINGLE, 5, goal="1.3"),
    Case("pReLU p=3, SGD", 2000, 1000, 2000, DOUBLE, 10, batch=100, p=3.0, goal="2"),
    Case("pReLU p=3, SGD", 2000, 1000, 2000, SINGLE, 10, batch=100, p=3.0, goal="2"),
)


class Plain(nn.Module):
    """The ReLU net as one would write it: nn.Linear, relu, a frozen readout."""

    def __init__(self, w: Tensor, readout: Tensor) -> None:
        super().__init__()
        self.first = nn.Linear(w.shape[1], w.shape[0], dtype=w.dtype)
        with torch.no_grad():
            self.first.weight.copy_(w)
            self.first.bias.zero_()
        self.register_buffer("readout", readout)

    def forward(self, x: Tensor) -> Tensor:
        return (self.first(x).relu() @ self.readout)[:, 0]


class PlainPower(nn.Module):
    """The pReLU net as the paper's code writes it: W is (d, h), the norm is differentiated."""

    def __init__(self, w: Tensor, v: Tensor, p: float) -> None:
        super().__init__()
        self.w, self.v, self.p = nn.Parameter(w.T.clone()), nn.Parameter(v.clone()), p

    def forward(self, x: Tensor) -> Tensor:
        norm = torch.linalg.norm(self.w, dim=0)
        return ((x @ self.w).relu() ** self.p / norm ** (self.p - 1)) @ self.v


@dataclass(frozen=True)
class Setup:
    """The same start for everybody."""

    case: Case
    problem: Problem
    rows: Tensor | None

    @classmethod
    def of(cls, case: Case) -> Setup:
        made = torch.Generator().manual_seed(0)
        r, m, n, d = case.replicas, case.neurons, case.n, case.d

        def normal(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=made, dtype=case.dtype)

        x, y = normal(1, n, d), normal(1, n).sign().repeat(r, 1)
        top: Top
        if case.p:
            params, top = {"w": 1e-2 * normal(r, m, d), "v": 1e-2 * normal(r, m)}, PowerTop(case.p)
            x /= d**0.5
        else:
            readout = torch.full((m, 1), 2 / m, dtype=case.dtype)
            readout[m // 2 :] *= -1
            params = {"w": 1e-5 * normal(r, m, d), "b": torch.zeros(r, m, dtype=case.dtype)}
            top = ReluTop(readout)
        loss = Loss("exponential" if case.p else "logistic")
        eta = torch.full((r,), ETA, dtype=case.dtype)
        rows = None if case.batch is None else torch.arange(case.batch)[None]
        return cls(case, Problem(params, Held(x), y, top, loss, eta), rows)

    def plain(self) -> Callable[[], None]:
        """nn.Module, autograd, torch.optim.SGD, for the first replica."""
        case, params, top = self.case, self.problem.params, self.problem.top
        x, y = self.problem.x.whole()[0], self.problem.targets[0]
        if isinstance(top, ReluTop):
            net: nn.Module = Plain(params["w"][0], top.readout)
        else:
            net = PlainPower(params["w"][0], params["v"][0], case.p)
        optimiser = torch.optim.SGD(net.parameters(), lr=ETA)

        def step() -> None:
            seen = slice(None) if self.rows is None else self.rows[0]
            q = y[seen] * net(x[seen])
            optimiser.zero_grad()
            (torch.exp(-q) if case.p else nn.functional.softplus(-q)).mean().backward()
            optimiser.step()

        return step

    def engine(self, name: str) -> Callable[[], None]:
        """The same step by one of our engines; its set-up is not part of the time."""
        training = ENGINES[name](self.problem)

        def step() -> None:
            training.forward(self.rows)
            training.advance()

        return step

    def limit(self, name: str) -> Callable[[], None]:
        """Its products and nothing else."""
        case = self.case
        wide, seen = case.replicas * case.neurons, case.batch or case.n
        z = torch.zeros(1, wide, seen, dtype=case.dtype)
        if name == "gram":
            kernel = torch.zeros(1, case.n, seen, dtype=case.dtype)
            c = torch.zeros(1, wide, case.n, dtype=case.dtype)
            return lambda: product(c, kernel.mT, z)
        x = self.problem.x.whole()[:, :seen]
        w, move = (torch.zeros(1, wide, case.d, dtype=case.dtype) for _ in range(2))
        return lambda: (product(w, x.mT, z), product(z, x, move))


def row(case: Case, repeats: int) -> list[str]:
    """The plain loop's time, every engine's ratio, the choice of `auto` and its share of the limit.

    Of many replicas, a ratio is per replica.
    """
    setup = Setup.of(case)
    auto = choose("auto", setup.problem, case.steps, case.batch)
    # Coefficient space on mini-batches of a wide net would be the slower by far.
    names = ("reference", "gemm") if case.batch else ("reference", "gemm", "gram")
    works = {"plain": setup.plain(), "limit": setup.limit(auto)}
    works |= {name: setup.engine(name) for name in names}
    seconds = interleaved(works, repeats, case.times)
    gain = {
        name: [case.replicas * r for r in ratios(seconds["plain"], seconds[name])]
        for name in (*names, "limit")
    }
    cells = [case.label, f"{1e3 * np.median(seconds['plain']):.2f}"]
    cells += [cell(gain[name]) if name in gain else "" for name in ("reference", "gemm", "gram")]
    share = cell([100 * r for r in ratios(seconds["limit"], seconds[auto])])
    return [*cells, auto, case.goal, cell(gain["limit"]), share]


def recording(repeats: int) -> str:
    """CPU time of the baseline run with the default schedule over that with two rows."""
    base = Experiment(
        data=Clusters(), net=TwoLayer(), train=GradientDescent(), samples=Samples(), seeds=(0,)
    )
    bare = base.with_("train.record.points=2")
    works = {"bare": lambda: train(bare, threads=1), "default": lambda: train(base, threads=1)}
    seconds = interleaved(works, repeats)
    more = [100 * (r - 1) for r in ratios(seconds["default"], seconds["bare"])]
    rows = len(Record().steps(100))
    return f"Recording {rows} rows of 100 steps at the baseline costs {cell(more)} % of the run."


def memory() -> list[list[str]]:
    """Peak memory of a process that trains 20 steps in a million dimensions, X held or drawn."""
    rows = []
    for way in ("held", "drawn"):
        command = [sys.executable, __file__, "--peak", way]
        found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        rows.append([way, *found])
    return rows


def peak(way: str) -> None:
    """n=200, d=10^6, float64: X alone is 1600 MB."""
    n, d, neurons = 200, 1_000_000, 10
    made = torch.Generator()

    def draw(first: int, last: int) -> Tensor:
        made.manual_seed(first)
        return torch.randn(1, n, last - first, generator=made, dtype=DOUBLE)

    drawn = Drawn((1, n, d), draw)
    before = _high_water()
    held = Held(torch.empty(1, n, d, dtype=DOUBLE)) if way == "held" else None
    if held is not None:
        for columns, block in drawn.blocks():
            held.x[:, :, columns] = block
    readout = torch.tensor([[0.2]] * 5 + [[-0.2]] * 5, dtype=DOUBLE)
    params = {"w": torch.zeros(1, neurons, d, dtype=DOUBLE)}
    y = torch.ones(1, n, dtype=DOUBLE)
    problem = Problem(
        params, held or drawn, y, ReluTop(readout), Loss(), torch.ones(1, dtype=DOUBLE)
    )
    engine = ENGINES["gram"](problem)
    for _ in range(20):
        engine.forward()
        engine.advance()
    engine.params()
    print(f"{(1600 if way == 'held' else 0)} {_high_water() - before:.0f}")


def _high_water() -> float:
    """Most memory that this process has held, in MB (what rusage tells is the parent's, too)."""
    status = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def growth(repeats: int) -> None:
    """Four log-log panels: a step's time against n, d, h and R, the others at the baseline."""
    base = {"n": 500, "d": 1500, "neurons": 10, "replicas": 1}
    axes = {
        "n": (125, 250, 500, 1000, 2000),
        "d": (375, 750, 1500, 3000, 6000),
        "neurons": (10, 20, 40, 80, 160),
        "replicas": (1, 2, 4, 8, 16, 32),
    }
    figure, panels = plt.subplots(2, 2, figsize=(9, 6.5), constrained_layout=True)
    for panel, (axis, values) in zip(panels.flat, axes.items(), strict=True):
        lines: dict[str, list[float]] = {"plain": [], "gemm": [], "gram": []}
        for value in values:
            case = Case("growth", dtype=DOUBLE, times=3, **(base | {axis: value}))
            setup = Setup.of(case)
            works = {"plain": setup.plain(), "gemm": setup.engine("gemm")}
            seconds = interleaved(works | {"gram": setup.engine("gram")}, repeats, case.times)
            # The plain loop trains one net after the other.
            seconds["plain"] = [case.replicas * s for s in seconds["plain"]]
            for name in lines:
                lines[name].append(1e3 * float(np.median(seconds[name])))
        for name, style in (("plain", "k--"), ("gemm", "C0o-"), ("gram", "C1s-")):
            panel.loglog(values, lines[name], style, label=name)
        panel.set_xlabel({"neurons": "neurons h", "replicas": "replicas R"}.get(axis, axis))
        panel.set_ylabel("CPU ms a step")
    panels[0, 0].legend()
    figure.suptitle("A step at n=500, d=1500, 10 neurons, float64; one of them varied")
    figure.savefig(GROWTH, dpi=110)


def report(repeats: int) -> str:
    """The whole page."""
    head = ("case", "plain loop, ms a step", "reference", "gemm", "gram", "auto", "goal")
    head += ("limit of auto", "% of limit")
    rows = [row(case, repeats) for case in CASES]
    growth(max(3, repeats // 3))
    lines = [
        "# Performance",
        "",
        "Times faster than the plain torch loop (nn.Module, autograd, SGD), a step and a replica; "
        f"median [range] over {repeats} interleaved repeats in one process; CPU time. "
        f"{machine()}. `make bench` writes this page.",
        "",
        *table(head, rows),
        "",
        "*auto* is the engine that the measured costs of this machine choose for 100 steps "
        "(`unmix list engines`). *limit of auto* is the same ratio for nothing but its matrix "
        "products (W X^T and g X, or C K), at the best that torch does them here; the last column "
        "says how much of that speed is reached. The Gram engine's set-up costs one product X X^T "
        "and is not part of a step.",
        "",
        recording(repeats),
        "",
        "![CPU time of a step against n, d, h and R](engine-growth.png)",
        "",
        "Peak memory of coefficient space in a million dimensions (n=200, 10 neurons, float64; "
        "weights 80 MB), beside what the process needed before:",
        "",
        *table(("X", "X itself, MB", "peak, MB"), memory()),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--out", type=Path, default=Path("docs/performance.md"))
    parser.add_argument("--peak", choices=("held", "drawn"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.peak:
        peak(options.peak)
        return
    options.out.write_text(report(options.repeats), encoding="utf-8")
    print(options.out.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
