"""Exact radii and bounds: what closes, how fast, and against mixed-integer solvers.

    python benchmarks/certify.py [--points 100] [--solved 5] [--only MNIST]

CPU time on one thread in one process. "A point" is all that a call does, over its points; "a
search" is the branch and bound of one point, from scratch, in the coordinates that it works in.
HiGHS (scipy's milp) is asked the linf points; SCIP, if pyscipopt is installed, the l2 ones. Both
get the same big-M: a ball 5 % larger than the answer.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import cache, cached_property
from importlib.util import find_spec

import numpy as np
import torch
from measure import cell, machine, ratios, shown, table
from scipy.optimize import Bounds, LinearConstraint, milp

from unmix.attacks.minimum import MinimumNorm
from unmix.attacks.problem import Problem
from unmix.attacks.target import FormTarget, labels
from unmix.attacks.threat import Threat
from unmix.certify.base import Certificate, Question
from unmix.certify.bounds import Interval, Lipschitz, Root
from unmix.certify.curves import Code
from unmix.certify.exact import Exact, ExactL2, ExactLinf, Reduced
from unmix.certify.margins import margins
from unmix.certify.search import CLOSED, nearest_of_all
from unmix.data.base import Batch
from unmix.data.clusters import Clusters
from unmix.data.images.loader import load
from unmix.experiment import Experiment, Samples, run
from unmix.nets.activations import Power, Relu
from unmix.nets.form import Form
from unmix.nets.two_layer import TwoLayer
from unmix.train.descent import GradientDescent

TIMES = 20
# About a second of the largest nets.
MANY, FEW = 70_000, 2_000
L2 = "to 1e-4, median < 1 ms, max < 100 ms"
LINF = "to 1e-3"
EPOCHS, BATCH = 2, 100


@dataclass(frozen=True)
class Case:
    """A question with the goal it is asked for."""

    name: str
    goal: str
    asked: Question
    method: Exact

    @property
    def label(self) -> str:
        return f"{self.name}, {self.method.norm}"

    @cached_property
    def answer(self) -> tuple[Certificate, float]:
        """The exact radii, and CPU seconds a point, all points in one call."""
        searched(self.method, prepared(self, 0))()
        start = time.process_time()
        found = self.method.answer(self.asked)
        return found, (time.process_time() - start) / found.lower.numel()


def averaging(neurons: int, points: int) -> Question:
    """The trained two-label net: k = 10, d = 3072; its neurons have averaged (T = 100)."""
    made = run(
        Experiment(
            data=Clusters(k=10, d=3072),
            net=TwoLayer(m=neurons // 2),
            train=GradientDescent(eta=1e-3, steps=100),
            samples=Samples(train=1000, test=points),
            seeds=(0,),
        )
    )
    return Question.of(made, points)


def random(neurons: int, points: int, d: int = 784, outputs: int = 1) -> Question:
    """Standard normal weights: the hardest nets, since no two neurons agree."""
    made = torch.Generator().manual_seed(neurons)
    shapes = ((1, neurons, d), (1, neurons), (1, neurons, outputs), (1, points, d))
    w, b, a, x = (torch.randn(s, generator=made, dtype=torch.float64) for s in shapes)
    form = Form(w / math.sqrt(d), b / 2, a, Relu())
    if outputs > 1:
        return Question(form, x, form.outputs(form.preactivations(x)).argmax(-1))
    return Question(form, x, torch.where(form.decision(x) > 0, 1.0, -1.0).double())


def powers(points: int) -> Question:
    """A pReLU net (p = 3) with ten subclass neurons and thirty negligible ones, D = 1000."""
    made = torch.Generator().manual_seed(0)
    mu = torch.linalg.qr(torch.randn(1000, 10, generator=made, dtype=torch.float64)).Q.T
    rest = torch.nn.functional.normalize(torch.randn(30, 1000, generator=made).double(), dim=1)
    w = torch.cat([mu + 1e-2 * rest[:10], rest])[None]
    a = torch.cat([torch.tensor([1.0, -1.0]).repeat(5), 1e-4 * torch.randn(30, generator=made)])
    form = Form(w, torch.zeros(1, 40).double(), a.double()[None, :, None], Power(3.0))
    x = mu[torch.arange(points) % 10] + 0.02 * torch.randn(points, 1000, generator=made).double()
    x = x[None]
    return Question(form, x, torch.where(form.decision(x) > 0, 1.0, -1.0).double())


def digits(neurons: int, points: int) -> Question:
    """784-R-1 on MNIST, even against odd, by Adam; the first test images, in [0, 1]."""
    made = torch.Generator().manual_seed(neurons)
    w = torch.randn(neurons, 784, generator=made) / 28
    b, a, c = (
        torch.zeros(neurons),
        torch.randn(neurons, generator=made) / neurons**0.5,
        torch.zeros(1),
    )
    for tensor in (weights := [w, b, a, c]):
        tensor.requires_grad_()
    (seen, y), adam = _parity("train"), torch.optim.Adam(weights, lr=2e-3)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(seen), generator=made).split(BATCH):
            adam.zero_grad()
            f = (seen[rows] @ w.T + b).relu() @ a + c
            torch.nn.functional.softplus(-y[rows] * f).mean().backward()
            adam.step()
    # The last bias is the weight of a neuron that is always at 1.
    w, b, a = torch.cat([w, w.new_zeros(1, 784)]), torch.cat([b, b.new_ones(1)]), torch.cat([a, c])
    form = Form(*(t.detach().double()[None] for t in (w, b, a[:, None])), Relu())
    x, y = _parity("test")
    return Question(form, x[None, :points].double(), y[None, :points].double())


@cache
def _parity(part: str) -> tuple[torch.Tensor, torch.Tensor]:
    images = load("mnist", part)
    return images.images.float() / 255, (1 - 2 * (images.labels % 2)).float()


def cases(points: int, only: str = "") -> Iterator[Case]:
    """Those whose name holds `only`: each net in l2, small ones in linf too."""
    exact, cube, patient = ExactL2(), ExactLinf(tol=1e-3), ExactL2(nodes=MANY)
    for neurons in (10, 20, 40, 60):
        if only in (name := f"averaging, d=3072, {neurons} neurons"):
            asked = averaging(neurons, points)
            yield Case(name, L2, asked, exact)
            if neurons < 60:
                yield Case(name, LINF if neurons <= 32 else "", asked, cube)
    for kind, made_by in (("MNIST parity", digits), ("random", random)):
        for neurons in (8, 16, 32, 64, 100):
            if only in (name := f"{kind}, d=784, {neurons} neurons"):
                asked = made_by(neurons, points)
                yield Case(name, L2 if neurons < 100 else ">= 95 % in 1 s", asked, patient)
                few = asked if neurons <= 32 else _only(asked, slice(0, max(points // 10, 1)))
                how = cube if neurons <= 32 else ExactLinf(tol=1e-3, nodes=FEW)
                yield Case(name, LINF if neurons <= 32 else "", few, how)
    if only in (name := "random, 784-32-10 (10 outputs)"):
        yield Case(name, "", random(32, points, outputs=10), exact)
    if only in (name := "pReLU p=3, D=1000, 40 neurons"):
        asked, goal = powers(min(points, 20)), "to 0.1 %, median < 0.5 s"
        yield Case(name, goal, asked, ExactL2(tol=1e-3))


def prepared(case: Case, point: int) -> list[Reduced]:
    """The nets that one point is asked of, in the coordinates of their search."""
    one = _only(case.asked, slice(point, point + 1))
    found = [m for m in margins(one, 0) if m.points.any()]
    return [Reduced.of(m, Code.of(m.activation), one.x[0], case.method.norm) for m in found]


def searched(method: Exact, nets: list[Reduced]) -> Callable[[], bool]:
    """The search of one point alone, from scratch, without the change of coordinates before it;
    it says whether the point is closed."""
    ready = [(net.compiled, *net.points, net.limits.numpy()) for net in nets]

    def work() -> bool:
        ended = [nearest_of_all(*net, method.tol, method.nodes, method.nodes)[2] for net in ready]
        return all((end == CLOSED).all() for end in ended)

    return work


def each(case: Case) -> tuple[list[float], list[bool]]:
    """CPU seconds of the search of each point that is right as it is, and whether it closed."""
    seconds, closed = [], []
    for point in (~case.asked.lost[0]).nonzero().flatten().tolist():
        work = searched(case.method, prepared(case, point))
        start = time.process_time()
        closed.append(work())
        seconds.append(time.process_time() - start)
    return seconds, closed


def _only(asked: Question, some: slice) -> Question:
    return Question(asked.form, asked.x[:, some], asked.y[:, some])


def row(case: Case) -> list[str]:
    (found, together), (seconds, closed) = case.answer, each(case)
    gap = (1 - found.lower / found.upper).nan_to_num(0.0).max().item()
    soon = statistics.mean(c and s < 1 for c, s in zip(closed, seconds, strict=True))
    ms = f"{shown(1e3 * statistics.median(seconds))} / {shown(1e3 * max(seconds))}"
    points, share = str(found.lower.numel()), found.closed.double().mean().item()
    shares = [f"{s:.1%}" for s in (share, soon)]
    return [case.label, case.goal, points, *shares, f"{gap:.1e}", shown(1e3 * together), ms]


def bounds_row(case: Case) -> list[str]:
    """Lower bounds over the exact radius, and the root bound's cost."""
    exact = case.answer[0]
    held = exact.closed & (exact.lower > 0)
    cells, seconds = [], []
    for method in (Root(), Root(rounds=0), Interval(), Lipschitz()):
        start = time.process_time()
        low = method.answer(case.asked).lower
        seconds.append((time.process_time() - start) / low.numel())
        cells.append(f"{(low / exact.lower)[held].mean().item():.3f}")
    return [case.name, *cells, shown(1e3 * seconds[0])]


def attack_row(case: Case) -> list[str]:
    """How close the minimum-norm attack comes, before and after the witnesses join."""
    asked, exact = case.asked, case.answer[0]
    batch = Batch(asked.x, asked.y, torch.zeros(asked.y.shape, dtype=torch.int64))
    far = float(exact.upper[exact.upper.isfinite()].max())
    target, threat = FormTarget.of(asked.form), Threat(norm=case.method.norm)
    problem = Problem(target, asked.x[0], labels(asked.y[0]), threat, far, 0, batch)
    found = MinimumNorm().judged(problem, (far,)).radius
    radii = [found, torch.minimum(found, exact.upper[0])]
    near = [f"{(r <= exact.lower[0] * 1.001).double().mean():.1%}" for r in radii]
    worst = [f"{(r / exact.lower[0]).nan_to_num(0.0).max():.3f}" for r in radii]
    return [case.label, str(len(found)), *near, *worst]


def solved(case: Case, points: int) -> list[str]:
    """The first points as mixed-integer programs within a ball 5 % larger than the answer."""
    exact = case.answer[0]
    theirs, ours, apart = [], [], [0.0]
    held = exact.upper.isfinite() & (exact.lower > 0)
    chosen = held[0].nonzero().flatten().tolist()[:points]
    for point in chosen:
        (net,), upper = prepared(case, point), exact.upper[0, point].item()
        start = time.process_time()
        length = (highs if net.norm == "linf" else scip)(net, upper * 1.05)
        theirs.append(time.process_time() - start)
        work, start = searched(case.method, [net]), time.process_time()
        for _ in range(TIMES):
            work()
        ours.append((time.process_time() - start) / TIMES)
        if length is not None:
            apart.append(abs(length / upper - 1))
    times = cell(ratios(theirs, ours))
    milliseconds = [shown(1e3 * statistics.median(s)) for s in (theirs, ours)]
    done = f"{len(apart) - 1} of {len(chosen)}"
    return [case.label, done, *milliseconds, times, f"{max(apart):.1e}"]


def highs(net: Reduced, rho: float) -> float | None:
    """min r >= |delta|_inf by scipy's milp; variables delta, r, votes, binaries. None: no answer
    within a minute. HiGHS knows no quadratic ones."""
    A, a, z0, own = net.w.numpy(), net.a.numpy(), net.z[0].numpy(), net.own
    (M, d), reach = A.shape, rho * net.norms.numpy()
    low, high = np.minimum(z0 - reach, 0), np.maximum(z0 + reach, 0)
    eye, none, Q = np.eye(M), np.zeros((M, 1)), np.eye(M)[:, own:]
    sign = np.where(np.arange(M) < own, 1.0, -1.0)
    rows = [
        # s >= z;  for Q: s <= z - low (1 - on), s <= high on;  sum_P a s <= sum_Q a s - c
        LinearConstraint(np.block([-A, none, eye, 0 * Q]), lb=z0),
        LinearConstraint(np.block([-A, none, eye, -low[:, None] * Q])[own:], ub=(z0 - low)[own:]),
        LinearConstraint(np.block([0 * A, none, eye, -high[:, None] * Q])[own:], ub=0.0),
        LinearConstraint(np.r_[np.zeros(d + 1), a * sign, np.zeros(M - own)], ub=-net.margin.c),
        LinearConstraint(np.block([np.eye(d), -np.ones((d, 1)), np.zeros((d, 2 * M - own))]), ub=0),
        LinearConstraint(np.block([np.eye(d), np.ones((d, 1)), np.zeros((d, 2 * M - own))]), lb=0),
    ]
    bounds = Bounds(
        np.r_[np.full(d, -rho), np.zeros(1 + 2 * M - own)],
        np.r_[np.full(d + 1, rho), high, np.ones(M - own)],
    )
    whole = np.r_[np.zeros(d + 1 + M), np.ones(M - own)]
    goal = np.eye(len(whole))[d]
    how = {"mip_rel_gap": 1e-4, "time_limit": 60.0}
    found = milp(goal, constraints=rows, bounds=bounds, integrality=whole, options=how)
    return float(found.fun) if found.status == 0 else None


def scip(net: Reduced, rho: float) -> float:
    """min |v| with sum_P a s <= sum_Q a t - c, s >= relu(z), t = relu(z) by one binary each."""
    from pyscipopt import Model, quicksum

    A, a, z0, own = (net.w @ net.basis).numpy(), net.a.numpy(), net.z[0].numpy(), net.own
    model, total = Model(), quicksum
    model.hideOutput()
    model.setParam("limits/gap", 1e-6)
    reach = rho * np.linalg.norm(A, axis=1)
    v = [model.addVar(lb=-rho, ub=rho) for _ in range(A.shape[1])]
    z = [z0[j] + total(A[j, e] * v[e] for e in range(len(v))) for j in range(len(a))]
    votes = []
    for j in range(len(a)):
        low, high = z0[j] - reach[j], z0[j] + reach[j]
        s = model.addVar(lb=0, ub=max(high, 0))
        model.addCons(s >= z[j])
        if j >= own:
            on = model.addVar(vtype="B")
            model.addCons(s <= z[j] - min(low, 0) * (1 - on))
            model.addCons(s <= max(high, 0) * on)
        votes.append(s if j < own else -s)
    model.addCons(total(a[j] * votes[j] for j in range(len(a))) <= -net.margin.c)
    t = model.addVar(lb=0, ub=rho * rho)
    model.addCons(total(e * e for e in v) <= t)
    model.setObjective(t)
    model.optimize()
    return math.sqrt(max(model.getObjVal(), 0.0))


def tables(every: list[Case], sizes: list[int], points: int) -> Iterator[tuple[str, ...]]:
    """The head of each table, then its rows, as they are measured."""
    yield (
        "case", "goal", "points", "closed", "in 1 s", "largest gap", "ms a point",
        "ms a search: median / max",
    )  # fmt: skip
    yield from (tuple(row(c)) for c in every)
    flat = [c for c in every if c.method.norm == "l2" and c.asked.reading == "sign"]
    yield "", "case", "root", "CROWN-type", "interval", "Lipschitz", "ms a point, root"
    yield from (tuple(bounds_row(c)) for c in flat if "p=3" not in c.name)
    yield (
        "", "case", "points", "attack within 0.1 %", "after polish", "largest ratio", "polished",
    )  # fmt: skip
    trained = [c for c in every if c.name.startswith(("averaging", "MNIST"))]
    yield from (tuple(attack_row(c)) for c in trained if " 100 " not in c.name)
    small = [c for c in every if any(f" {n} neurons" in c.name for n in sizes)]
    if find_spec("pyscipopt") is None:
        small = [c for c in small if c.method.norm == "linf"]
    yield "", "case", "answered", "theirs, ms", "ours, ms", "ratio", "answers apart"
    yield from (tuple(solved(c, points)) for c in small)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--points", type=int, default=100)
    asked.add_argument("--solved", type=int, default=5, help="points given to the solvers")
    asked.add_argument("--sizes", type=int, nargs="*", default=[8, 10, 16, 20])
    asked.add_argument("--only", default="", help="part of the names of the nets that are asked")
    args = asked.parse_args()
    torch.set_num_threads(1)
    print(f"{date.today()}, {machine()}", flush=True)
    every, first = list(cases(args.points, args.only)), True
    for cells in tables(every, args.sizes, args.solved):
        if first or not cells[0]:
            print("\n" + "\n".join(table(cells[0 if first else 1 :], [])), flush=True)
        else:
            print(f"| {' | '.join(cells)} |", flush=True)
        first = False


if __name__ == "__main__":
    main()
