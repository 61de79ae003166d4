"""Exact radii and bounds: what closes, how fast, and against mixed-integer solvers.

    python benchmarks/certify.py [--points 100] [--out docs/certify-table.md]

CPU time on one thread in one process. "A point" is all that a call does, over its points; "a
search" is the branch and bound of one point, from scratch, in coordinates of the span. SCIP joins
if pyscipopt is installed: it gets the same coordinates, and a ball 5 % larger than the answer.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from measure import cell, machine, ratios, shown, table

from unmix.attacks.base import attack
from unmix.attacks.minimum import MinimumNorm
from unmix.certify.base import Question
from unmix.certify.bounds import Interval, Lipschitz, Root
from unmix.certify.curves import Code
from unmix.certify.exact import ExactL2, Reduced
from unmix.certify.margins import margins
from unmix.certify.search import nearest_of_all
from unmix.data.clusters import Clusters
from unmix.experiment import Experiment, Run, Samples, run
from unmix.nets.activations import Power, Relu
from unmix.nets.form import Form
from unmix.nets.two_layer import TwoLayer
from unmix.train.descent import GradientDescent

TIMES = 20


@dataclass(frozen=True)
class Case:
    """A question with the goal it is asked for."""

    name: str
    goal: str
    asked: Question
    method: ExactL2
    trained: Run | None = None


def averaging(neurons: int, points: int) -> tuple[Question, Run]:
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
    return Question.of(made, points), made


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


def cases(points: int) -> Iterator[Case]:
    exact = ExactL2()
    for neurons in (10, 20, 40, 60):
        asked, made = averaging(neurons, points)
        name = f"averaging net, d=3072, {neurons} neurons"
        yield Case(name, "closed to 1e-4, median < 1 ms, max < 100 ms", asked, exact, made)
    for neurons in (16, 32, 64):
        goal = "closed to 1e-4, median < 1 ms, max < 100 ms"
        yield Case(f"random net, d=784, {neurons} neurons", goal, random(neurons, points), exact)
    asked = random(100, points)
    yield Case("random net, d=784, 100 neurons", ">= 95 % closed in 1 s", asked, exact)
    asked = random(32, points, outputs=10)
    yield Case("random net, 784-32-10 (10 outputs)", "", asked, exact)
    asked = powers(min(points, 20))
    yield Case(
        "pReLU p=3, D=1000, 40 neurons", "to 0.1 %, median < 0.5 s", asked, ExactL2(tol=1e-3)
    )


def prepared(asked: Question, point: int) -> list[Reduced]:
    """The nets that one point is asked of, in the coordinates of their span."""
    one = _only(asked, point)
    found = [m for m in margins(one, 0) if m.points.any()]
    return [Reduced.of(m, Code.of(m.activation), one.x[0]) for m in found]


def searched(method: ExactL2, nets: list[Reduced]) -> Callable[[], None]:
    """The search of one point alone, from scratch, without the change of coordinates before it."""
    ready = [(net.compiled, *net.points, net.limits.numpy()) for net in nets]

    def work() -> None:
        for net in ready:
            nearest_of_all(*net, method.tol, method.nodes, 5000)

    return work


def each(case: Case) -> list[float]:
    """CPU seconds of each point's search."""
    seconds = []
    for point in range(case.asked.shape[1]):
        work = searched(case.method, prepared(case.asked, point))
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return seconds


def _only(asked: Question, point: int) -> Question:
    here = slice(point, point + 1)
    return Question(asked.form, asked.x[:, here], asked.y[:, here])


def together(case: Case, method: object) -> float:
    """CPU seconds a point, all points in one call."""
    start = time.process_time()
    method.answer(case.asked)
    return (time.process_time() - start) / case.asked.shape[1]


def row(case: Case) -> list[str]:
    found, seconds = case.method.answer(case.asked), each(case)
    share = found.closed.double().mean().item()
    gap = (1 - found.lower / found.upper).nan_to_num(0.0).max().item()
    ms = [1e3 * s for s in seconds]
    batch = 1e3 * together(case, case.method)
    return [
        case.name, case.goal, f"{share:.0%}", f"{gap:.1e}", shown(batch),
        f"{shown(statistics.median(ms))} / {shown(max(ms))}",
    ]  # fmt: skip


def bounds_row(case: Case) -> list[str]:
    """Lower bounds over the exact radius, and the root bound's cost."""
    exact = case.method.answer(case.asked)
    held = exact.closed & (exact.lower > 0)
    cells = []
    for method in (Root(), Root(rounds=0), Interval(), Lipschitz()):
        low = method.answer(case.asked).lower
        cells.append(f"{(low / exact.lower)[held].mean().item():.3f}")
    return [case.name, *cells, shown(1e3 * together(case, Root()))]


def attack_row(case: Case) -> list[str]:
    """How close minimum-norm attacks come, before and after the witnesses join."""
    assert case.trained is not None
    exact = case.method.answer(case.asked)
    radii = [0.1 * i * case.trained.data.unit for i in range(1, 9)]
    found = attack(case.trained, [MinimumNorm()], radii, points=case.asked.shape[1]).smallest
    near = [(r <= exact.lower * 1.001).double().mean().item() for r in (found, exact.upper)]
    worst = (found / exact.lower).nan_to_num(0.0).max().item()
    return [case.name, f"{near[0]:.1%}", f"{near[1]:.1%}", f"{worst:.3f}"]


def scip(case: Case, points: int) -> list[str] | None:
    """The same points as mixed-integer quadratic programs in the span: big-M on the opponents."""
    try:
        from pyscipopt import Model, quicksum
    except ImportError:
        return None
    exact = case.method.answer(case.asked)
    theirs, ours, apart = [], [], 0.0
    chosen = [p for p in range(case.asked.shape[1]) if exact.lower[0, p] > 0][:points]
    for point in chosen:
        (net,) = prepared(case.asked, point)
        A, a, z0 = (net.w @ net.basis).numpy(), net.a.numpy(), net.z[0].numpy()
        start = time.process_time()
        length = _solved(Model(), quicksum, A, a, z0, net.own, exact.upper[0, point].item() * 1.05)
        theirs.append(time.process_time() - start)
        work, start = searched(case.method, [net]), time.process_time()
        for _ in range(TIMES):
            work()
        ours.append((time.process_time() - start) / TIMES)
        apart = max(apart, abs(length / exact.upper[0, point].item() - 1))
    times = cell(ratios(theirs, ours))
    milliseconds = [shown(1e3 * statistics.median(s)) for s in (theirs, ours)]
    return [case.name, str(len(chosen)), *milliseconds, times, f"{apart:.1e}"]


def _solved(
    model: object, total: Callable, A: np.ndarray, a: np.ndarray, z0: np.ndarray, own: int,
    rho: float,
) -> float:  # fmt: skip
    """min |v| with sum_P a s <= sum_Q a t, s >= relu(z), t = relu(z) by one binary each."""
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
    model.addCons(total(a[j] * votes[j] for j in range(len(a))) <= 0)
    t = model.addVar(lb=0, ub=rho * rho)
    model.addCons(total(e * e for e in v) <= t)
    model.setObjective(t)
    model.optimize()
    return math.sqrt(max(model.getObjVal(), 0.0))


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--points", type=int, default=100)
    asked.add_argument("--solved", type=int, default=5, help="points given to the solvers")
    asked.add_argument("--out", type=Path)
    args = asked.parse_args()
    torch.set_num_threads(1)
    every = list(cases(args.points))
    head = [
        "case",
        "goal",
        "closed",
        "largest gap",
        "ms a point",
        "ms a search: median / max",
    ]
    lines = [machine(), "", *table(head, [row(c) for c in every]), ""]
    sharp = [c for c in every if c.asked.reading == "sign"]
    head = ["case", "root", "CROWN-type", "interval", "Lipschitz", "ms a point, root"]
    lines += [*table(head, [bounds_row(c) for c in sharp if "p=3" not in c.name]), ""]
    head = ["case", "attack within 0.1 %", "after polish", "largest ratio"]
    lines += [*table(head, [attack_row(c) for c in every if c.trained]), ""]
    small = [c for c in every if any(f" {n} neurons" in c.name for n in (10, 16, 20))]
    rows = [found for c in small if (found := scip(c, args.solved)) is not None]
    if rows:
        head = ["case", "points", "SCIP ms", "ours ms", "ratio", "answers apart"]
        lines += table(head, rows)
    text = "\n".join(lines) + "\n"
    if args.out:
        args.out.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
