"""The root bound beside plain CROWN and alpha-CROWN: tightness over the exact radius, CPU time.

    python benchmarks/crown.py [--points 100]

CROWN and alpha-CROWN are what one would write today: autograd in the input space, float32, all
points in a batch, 12 bisections of the radius, and 20 steps of projected Adam on the lower slopes
at each. CPU time on one thread in one process, the two interleaved.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
from measure import cell, machine, ratios, shown, table
from torch import Tensor

from certify import averaging, digits, random
from unmix.certify.base import Question
from unmix.certify.bounds import Root
from unmix.certify.exact import ExactL2
from unmix.certify.margins import Margin, margins

BISECTIONS, STEPS, RATE, REPEATS = 12, 20, 0.1, 3


def crown(margin: Margin, x: Tensor, far: Tensor, steps: int) -> Tensor:
    """Radii that (alpha-)CROWN certifies, by bisection below `far`; no steps: CROWN."""
    w, b, a = margin.w.float(), margin.b.float(), margin.a.float()
    x, low, high = x.float(), torch.zeros(len(x)), far.float()
    for _ in range(BISECTIONS):
        rho = (low + high) / 2
        held = lower_bound(w, b, a, margin.c, x, rho, steps) > 0
        low, high = torch.where(held, rho, low), torch.where(held, high, rho)
    return low.double()


def lower_bound(
    w: Tensor, b: Tensor, a: Tensor, c: float, x: Tensor, rho: Tensor, steps: int
) -> Tensor:
    """min of sum_j a_j relu(z_j) + c over |delta| <= rho, from below, with linear relaxations."""
    z = x @ w.T + b
    reach = rho[:, None] * w.norm(dim=1)
    low, high = z - reach, z + reach
    open_ = (low < 0) & (high > 0)
    chord = torch.where(open_, high / (high - low).clamp_min(1e-12), (low >= 0).float())
    lift = torch.where(open_, -low * chord, torch.zeros_like(z))
    alpha = torch.where(open_, (high > -low).float(), chord)

    def value(slope: Tensor) -> Tensor:
        k = a * torch.where(a > 0, slope, chord)
        n = (k * z).sum(1) + (a * lift)[:, a < 0].sum(1) + c
        return n - rho * (k @ w).norm(dim=1)

    best = value(alpha)
    if steps:
        alpha = alpha.clone().requires_grad_()
        adam = torch.optim.Adam([alpha], lr=RATE)
        for _ in range(steps):
            adam.zero_grad()
            (-value(alpha).sum()).backward()
            adam.step()
            with torch.no_grad():
                alpha.copy_(torch.where(open_, alpha.clamp(0, 1), chord))
                best = torch.maximum(best, value(alpha))
    return best.detach()


def crowned(asked: Question, far: Tensor, steps: int) -> Tensor:
    radius = torch.zeros(asked.shape, dtype=torch.float64)
    for margin in margins(asked, 0):
        here = margin.points
        radius[0, here] = crown(margin, asked.x[0, here], far[0, here], steps)
    return radius


def timed(work: Callable[[], Tensor]) -> tuple[Tensor, float]:
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def row(name: str, asked: Question) -> list[str]:
    """Mean share of the exact radius, ms a point, and the ratio of times."""
    exact = ExactL2().answer(asked)
    held = exact.closed & (exact.lower > 0)
    far = 1.05 * exact.upper
    methods: dict[str, Callable[[], Tensor]] = {
        "root": lambda: Root().answer(asked).lower,
        "CROWN": lambda: crowned(asked, far, 0),
        "alpha-CROWN": lambda: crowned(asked, far, STEPS),
    }
    methods["root"]()
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    shares = {}
    for _ in range(REPEATS):
        for method, work in methods.items():
            found, cpu = timed(work)
            seconds[method].append(cpu)
            shares[method] = f"{(found / exact.lower)[held].mean().item():.3f}"
    times = [shown(1e3 * min(s) / asked.shape[1]) for s in seconds.values()]
    gain = cell(ratios(seconds["alpha-CROWN"], seconds["root"]))
    return [name, *shares.values(), " / ".join(times), gain]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--points", type=int, default=100)
    points = asked.parse_args().points
    torch.set_num_threads(1)
    print(machine(), flush=True)
    head = ["case", "root", "CROWN", "alpha-CROWN", "ms a point: root / CROWN / alpha", "ratio"]
    print("\n" + "\n".join(table(head, [])), flush=True)
    for neurons in (10, 20, 40, 60):
        case = f"averaging net, d=3072, {neurons} neurons"
        print(table(head, [row(case, averaging(neurons, points)[0])])[-1], flush=True)
    for neurons in (8, 32):
        case = f"MNIST even/odd, {neurons} neurons"
        print(table(head, [row(case, digits(neurons, points))])[-1], flush=True)
    case = "random net, d=784, 32 neurons"
    print(table(head, [row(case, random(32, points))])[-1], flush=True)


if __name__ == "__main__":
    main()
