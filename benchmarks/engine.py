"""Steps of the engines against the loop that a researcher would write, in one process.

    python benchmarks/engine.py [--repeats 9] [--out docs/performance.md]

Every repeat times each competitor once, in turn, so that a drift of the machine hits all alike.
Times are CPU seconds of this process on one thread; ratios are medians over repeats, with the range
in brackets. "limit" is the time of the two matrix products that a step cannot do without.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from unmix.train.engines.gemm import Gemm
from unmix.train.engines.gram import Gram
from unmix.train.engines.reference import Reference

ETA = 1e-3


@dataclass(frozen=True)
class Case:
    """A training of M neurons on n points in d dimensions."""

    name: str
    n: int
    d: int
    neurons: int
    dtype: torch.dtype
    steps: int

    @property
    def label(self) -> str:
        digits = "float64" if self.dtype == torch.float64 else "float32"
        return f"{self.name}: n={self.n}, d={self.d}, {self.neurons} neurons, {digits}"


CASES = tuple(
    Case(name, n, d, m, dtype, steps)
    for name, n, d, m, steps in (
        ("baseline", 1000, 3072, 10, 20),
        ("high dimension", 200, 100_000, 10, 5),
        ("wide", 1000, 1000, 2000, 3),
        ("many points", 5000, 1000, 10, 5),
    )
    for dtype in (torch.float64, torch.float32)
)


class Plain(nn.Module):
    """The net as one would write it: nn.Linear, relu, a frozen readout."""

    def __init__(self, case: Case, w: Tensor, readout: Tensor) -> None:
        super().__init__()
        self.first = nn.Linear(case.d, case.neurons, dtype=case.dtype)
        with torch.no_grad():
            self.first.weight.copy_(w)
            self.first.bias.zero_()
        self.register_buffer("readout", readout)

    def forward(self, x: Tensor) -> Tensor:
        return (self.first(x).relu() @ self.readout)[:, 0]


def plain_steps(case: Case, x: Tensor, y: Tensor, w: Tensor, readout: Tensor) -> Callable[[], None]:
    """nn.Module, autograd, torch.optim.SGD."""
    net = Plain(case, w, readout)
    optimiser = torch.optim.SGD(net.parameters(), lr=ETA)

    def run() -> None:
        for _ in range(case.steps):
            optimiser.zero_grad()
            nn.functional.softplus(-y * net(x)).mean().backward()
            optimiser.step()

    return run


def engine_steps(
    engine: type, case: Case, x: Tensor, y: Tensor, w: Tensor, readout: Tensor
) -> Callable[[], None]:
    """The same steps by one of our engines; its set-up is not part of the time of a step."""
    params = {"w": w[None], "b": x.new_zeros(1, case.neurons)}
    training = engine(params, x[None], y[None], readout, ETA, 1)
    alive = torch.ones(1, dtype=torch.bool)

    def run() -> None:
        for _ in range(case.steps):
            training.advance(alive)

    return run


def limit_steps(case: Case, x: Tensor, w: Tensor) -> Callable[[], None]:
    """X W^T and G^T X, nothing else."""
    z, g = x.new_empty(case.n, case.neurons), x.new_empty(case.neurons, case.d)

    def run() -> None:
        for _ in range(case.steps):
            torch.mm(x, w.T, out=z)
            torch.mm(z.T, x, out=g)

    return run


def measure(case: Case, repeats: int) -> dict[str, list[float]]:
    """CPU seconds a step of every competitor, one entry a repeat; the first repeat warms up."""
    torch.manual_seed(0)
    x = torch.randn(case.n, case.d, dtype=case.dtype)
    y = torch.randn(case.n, dtype=case.dtype).sign()
    w = 1e-5 * torch.randn(case.neurons, case.d, dtype=case.dtype)
    readout = torch.full((case.neurons, 1), 2 / case.neurons, dtype=case.dtype)
    readout[case.neurons // 2 :] *= -1
    runs = {"plain": plain_steps(case, x, y, w, readout), "limit": limit_steps(case, x, w)}
    for engine in (Reference, Gemm, Gram):
        runs[engine.__name__.lower()] = engine_steps(engine, case, x, y, w, readout)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for repeat in range(repeats + 1):
        for name, run in runs.items():
            start = time.process_time()
            run()
            if repeat:
                times[name].append((time.process_time() - start) / case.steps)
    return times


def row(case: Case, times: dict[str, list[float]]) -> str:
    """A line of the table: milliseconds of the plain loop, and how many times faster each is."""
    plain = statistics.median(times["plain"])
    cells = [case.label, f"{1e3 * plain:.2f}"]
    for name in ("reference", "gemm", "gram", "limit"):
        ratios = sorted(p / t for p, t in zip(times["plain"], times[name], strict=True))
        cells.append(f"{statistics.median(ratios):.1f} [{ratios[0]:.1f}, {ratios[-1]:.1f}]")
    return "| " + " | ".join(cells) + " |"


def report(repeats: int) -> str:
    """The whole page."""
    head = ("case", "plain loop, ms a step", "reference", "gemm", "gram", "limit")
    rows = [row(case, measure(case, repeats)) for case in CASES]
    machine = f"{platform.machine()}, {platform.system()}, torch {torch.__version__}, one thread"
    lines = [
        "# Performance",
        "",
        f"Times faster than the plain torch loop (nn.Module, autograd, SGD), a step; median "
        f"[range] over {repeats} interleaved repeats in one process; CPU time. {machine}. "
        "`make bench` writes this page.",
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
        *rows,
        "",
        "*limit* is the time of the two matrix products X W^T and G^T X alone: what no engine that "
        "forms them can beat. The Gram engine does not form them; its set-up costs one product "
        "X X^T, which `auto` takes on only for n < 2d and 20 steps or more.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--out", type=Path, default=Path("docs/performance.md"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.write_text(report(options.repeats), encoding="utf-8")
    print(options.out.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
