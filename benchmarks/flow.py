"""Gradient flow and the reduced flow against the pReLU paper's SGD, at equal flow time.

    python benchmarks/flow.py [--repeats 7] [--flows 3] [--out docs/flow.md]

The tables go to docs/flow.md, the goals to docs/performance.md.

The paper trains D = 1000, h = 2000 by 80 200 steps of SGD (batch 100, rate 0.2, exponential loss,
mean), a flow time of 16 040. Its loop is timed over some hundred steps and extrapolated; at a tenth
of the size it is run to the end. Competitors take turns within a repeat, on one thread; times are
CPU seconds of this process.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from measure import Row, cell, keep, machine, table
from torch import Tensor, nn

from unmix.data.base import Batch
from unmix.data.clusters import Clusters
from unmix.experiment import Experiment, Run, Samples
from unmix.nets.base import Params
from unmix.nets.prelu import PReLU
from unmix.probes.base import Measured
from unmix.probes.contributions import ALIGNED, contributions
from unmix.train.base import Hooks, Start, Trace
from unmix.train.flow import FlowTraining, GradientFlow
from unmix.train.reduced_flow import ReducedFlow

RATE, BATCH, STEPS = 0.2, 100, 80_200
TIMED = 60
POINTS = 2000
POWERS = (1.0, 3.0)
Trained = tuple[Params, Trace]
PRUNE = 1e-7
# Where `compared` tells how far sums of contributions are apart.
SUMS = 4


@dataclass(frozen=True)
class World:
    """One start and one training set, for all competitors."""

    experiment: Experiment
    batch: Batch
    params: Params

    @classmethod
    def of(cls, d: int, h: int, p: float) -> World:
        data = Clusters(k=10, d=d, sigma=0.1, scale="unit", positive=tuple(range(6)))
        experiment = Experiment(
            data=data,
            net=PReLU(p=p, h=h),
            train=GradientFlow(),
            samples=Samples(train=POINTS),
            dtype="float32",
        )
        batch = data.sample((0,), POINTS, "train", torch.float32)
        return cls(experiment, batch, experiment.net.init(data, (0,), torch.float32))

    def flow(self, training: FlowTraining) -> Trained:
        e = self.experiment
        return training.begin(
            Start(e.net, e.data, self.params, self.batch, e.seeds, (training,))
        ).run(Hooks())

    def probed(self, params: Params, trace: Trace) -> Measured:
        return contributions(Run(self.experiment, params, trace))


class Plain(nn.Module):
    """The net as the paper's code has it: the norm is part of the graph."""

    def __init__(self, params: Params, p: float) -> None:
        super().__init__()
        self.w, self.v = (nn.Parameter(params[name][0].clone()) for name in ("w", "v"))
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        a = (x @ self.w.T).relu()
        if self.p > 1:
            a = a * (a / self.w.norm(dim=1)) ** (self.p - 1)
        return a @ self.v


class Sgd:
    """nn.Module, autograd, torch.optim.SGD, shuffled mini-batches."""

    def __init__(self, world: World) -> None:
        self.x, self.y = world.batch.x[0], world.batch.y[0]
        self.net = Plain(world.params, world.experiment.net.p)
        self.optimiser = torch.optim.SGD(self.net.parameters(), lr=RATE)
        self.random = torch.Generator().manual_seed(0)
        self.order = torch.empty(0, dtype=torch.int64)

    def steps(self, count: int) -> None:
        for _ in range(count):
            if len(self.order) == 0:
                self.order = torch.randperm(len(self.y), generator=self.random)
            chosen, self.order = self.order[:BATCH], self.order[BATCH:]
            self.optimiser.zero_grad()
            torch.exp(-self.y[chosen] * self.net(self.x[chosen])).mean().backward()
            self.optimiser.step()

    def params(self) -> Params:
        return {"w": self.net.w.detach()[None], "v": self.net.v.detach()[None]}


@dataclass
class Times:
    """CPU seconds of each repeat."""

    sgd_step: list[float] = field(default_factory=list)
    flow: list[float] = field(default_factory=list)
    reduced: list[float] = field(default_factory=list)

    def gain(self, name: str) -> list[float]:
        """How many times faster than SGD, whose time is that of its step times their number."""
        return [STEPS * s / t for s, t in zip(self.sgd_step, getattr(self, name), strict=False)]


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def timed(world: World, repeats: int, flows: int) -> tuple[Times, Trained, Trained]:
    """SGD's step and the whole of both flows, in turn; and where the flows ended."""
    times, sgd = Times(), Sgd(world)
    sgd.steps(TIMED)
    small = world.flow(reduced())
    for repeat in range(repeats):
        times.sgd_step.append(seconds(lambda: sgd.steps(TIMED)) / TIMED)
        times.reduced.append(seconds(lambda: world.flow(reduced())))
        if repeat < flows:
            start = time.process_time()
            whole = world.flow(exact())
            times.flow.append(time.process_time() - start)
    return times, whole, small


def exact(horizon: float = STEPS * RATE) -> GradientFlow:
    return GradientFlow(time=horizon, prune=PRUNE)


def reduced() -> ReducedFlow:
    return ReducedFlow(time=STEPS * RATE)


def cost_row(p: float, repeats: int, flows: int) -> tuple[list[str], list[str], list[Row]]:
    """The paper's size: cost, and how far the reduced flow is from the data flow."""
    world = World.of(1000, 2000, p)
    times, whole, small = timed(world, repeats, flows)
    step = statistics.median(times.sgd_step)
    calls = [int(trace.final["evaluations"][0]) for _, trace in (whole, small)]
    cost = [
        f"{p:g}",
        f"{1e3 * step:.1f}",
        f"{STEPS * step:,.0f}",
        f"{calls[0]} ({STEPS / calls[0]:.0f}x fewer)",
        f"{statistics.median(times.flow):.1f}",
        f"**{cell(times.gain('flow'))}**",
        f"{calls[1]}",
        f"{statistics.median(times.reduced):.2f}",
        f"**{cell(times.gain('reduced'))}**",
    ]
    apart = compared(world, small, whole)
    goals = goals_of(p, times, calls[0], float(apart[SUMS].rstrip(" %")))
    return cost, [f"{p:g}, reduced - data flow", *apart], goals


def goals_of(p: float, times: Times, calls: int, sums: float) -> list[Row]:
    """What was asked for: fewer gradients, less time, and the same contributions."""
    label = f"pReLU p={p:g}, D=1000, h=2000, flow time {STEPS * RATE:,.0f}"
    rows = [
        Row(f"{label}: gradients of the data flow", ">= 200", [STEPS / calls], by="flow"),
        Row(f"{label}: CPU of the data flow", ">= 20", times.gain("flow"), by="flow"),
        Row(
            f"{label}: CPU of the reduced flow", ">= 3000", times.gain("reduced"), by="reduced-flow"
        ),
    ]
    if p >= 3:
        name = f"{label}: contributions of the reduced flow are off by, in %"
        rows.append(Row(name, "<= 1", [sums], by="reduced-flow"))
    return rows


def compared(world: World, one: Trained, other: Trained) -> list[str]:
    """Dominant neurons, contributions and margins of one training beside another's."""
    mine, wanted = (world.probed(*training) for training in (one, other))
    q, q0 = mine["q"][0], wanted["q"][0]
    sets = [dominant(values) for values in (q, q0)]
    both = int((sets[0] & sets[1]).sum())
    mu = world.experiment.data.centres((0,), torch.float32)
    margins = [
        world.experiment.net.form(world.experiment.data, params).decision(mu)[0].abs()
        for params, _ in (one, other)
    ]
    p = world.experiment.net.p
    totals, wanted_totals = (_by_direction(m, p) for m in (mine, wanted))
    return [
        f"{int(sets[0].sum())} / {int(sets[1].sum())}, {both} common",
        f"{int(mine['covered'][0])} / {int(wanted['covered'][0])}",
        f"{float(mine['to_mean'][0]):.4f} / {float(wanted['to_mean'][0]):.4f}",
        f"{float(mine['to_subclass'][0]):.4f} / {float(wanted['to_subclass'][0]):.4f}",
        f"{100 * float((totals / wanted_totals - 1).abs().max()):.2f} %",
        f"{100 * float((q - q0).abs().sum() / q0.abs().sum()):.2f} %",
        f"{float((margins[0] - margins[1]).abs().max()):.3f} of {float(margins[1].mean()):.2f}",
    ]


def dominant(q: Tensor) -> Tensor:
    """Whose contribution is more than a hundredth of the largest."""
    return q.abs() > 0.01 * q.abs().max()


def _by_direction(measured: Measured, p: float) -> Tensor:
    """Sum of the contributions along each subclass (p >= 3), or of each label."""
    q, cosine = measured["q"][0], measured["cosine"][0]
    if p >= 3:
        return q @ (cosine > ALIGNED).to(q)
    return torch.stack([q[q > 0].sum(), q[q < 0].sum()])


def descended(world: World, steps: int) -> tuple[Params, float]:
    sgd = Sgd(world)
    spent = seconds(lambda: sgd.steps(steps))
    return sgd.params(), spent


def against_sgd(d: int, h: int, p: float, steps: int) -> tuple[list[list[str]], Row]:
    """SGD run for so many steps, and the flow at that very time."""
    world = World.of(d, h, p)
    flow = world.flow(exact(steps * RATE))
    params, spent = descended(world, steps)
    label = f"{p:g}, D={d}, {steps:,} steps ({spent:.0f} s)"
    rows = [[f"{label}: flow - SGD", *compared(world, flow, (params, flow[1]))]]
    if steps == STEPS:
        small = world.flow(reduced())
        rows.append([f"{label}: reduced - SGD", *compared(world, small, (params, flow[1]))])
    sets = [dominant(world.probed(*end)["q"][0]) for end in (flow, (params, flow[1]))]
    shared = 100 * float((sets[0] & sets[1]).sum() / sets[1].sum())
    name = (
        f"pReLU p={p:g}, D={d}, h={h}, after {steps:,} steps: SGD's dominant neurons in the flow, %"
    )
    return rows, Row(name, ">= 100", [shared], by="flow")


COSTS = (
    "p",
    "SGD, ms a step",
    "SGD, s (extrapolated)",
    "flow, gradients",
    "flow, s",
    "flow, times faster",
    "reduced, gradients",
    "reduced, s",
    "reduced, times faster",
)
SAME = (
    "p, what - with what",
    "dominant neurons",
    "subclasses covered",
    "cosine to the mean",
    "cosine to a subclass",
    "sums along a direction differ by",
    "neuron by neuron by",
    "margins differ by at most",
)


def report(repeats: int, flows: int, steps: int) -> tuple[str, list[Row]]:
    """The measured part of the page, and what it says of the goals."""
    costs = [cost_row(p, repeats, flows) for p in POWERS]
    same = [row for _, row, _ in costs]
    goals = [row for _, _, rows in costs for row in rows]
    for p in POWERS:
        for d, h, length in ((1000, 2000, steps), (100, 200, STEPS)):
            rows, goal = against_sgd(d, h, p, length)
            same += rows
            goals.append(goal)
    page = "\n".join(
        [
            f"K = 10, K1 = 6, alpha = 0.1, Gaussian start of 1e-7, float32, n = {POINTS}; flow "
            f"time {STEPS * RATE:,.0f}. CPU seconds, median [range] of ratios within a repeat; "
            f"{repeats} repeats ({flows} of the data flow), {TIMED} steps of SGD in each. "
            f"{machine()}.",
            "",
            *table(COSTS, [row for row, _, _ in costs]),
            "",
            "Contributions q = v|w|, summed along each subclass (p = 3) or for each label (p = 1): "
            "largest relative difference. Neuron by neuron: sum of |q_j - q_j'| relative to that "
            "of |q_j|.",
            "",
            *table(SAME, same),
            "",
        ]
    )
    return page, goals


START, END = "<!-- measured: python benchmarks/flow.py -->", "<!-- end of measured -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--flows", type=int, default=3, help="repeats of the data flow")
    parser.add_argument("--steps", type=int, default=4000, help="steps of SGD at the paper's size")
    parser.add_argument("--out", type=Path, default=Path("docs/flow.md"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    page = options.out.read_text(encoding="utf-8")
    before, after = page.split(START)[0], page.split(END)[1]
    measured, rows = report(options.repeats, options.flows, options.steps)
    keep("flow", rows)
    options.out.write_text(f"{before}{START}\n{measured}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
