"""Steps of the patch CNN and of the symmetric net against the loop a researcher would write.

    python benchmarks/steps.py [--repeats 9] [--out docs/steps.md]

Every repeat times each competitor once, in turn, in one process, so that a drift of the machine
hits all alike. Times are CPU milliseconds on one thread; ratios are medians over repeats, with the
range in brackets. Everything is in float32, and the points are drawn beforehand.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, softplus

from unmix.data.patches import Patches
from unmix.data.sparse_code import SparseCode
from unmix.nets.activations import SmoothedRelu
from unmix.train.engines.active import Active
from unmix.train.engines.patches import OneStep, PatchGemm
from unmix.train.engines.product import product
from unmix.train.engines.symmetric import Schedule, SymmetricGemm

Run = Callable[[], object]
ETA, EPS, STEP = 0.1, 1.2, 10.0
D, M, B, K = 400, 4800, 1000, 20.0
B_MAX = 0.5 / math.sqrt(K)
SCHEDULE = Schedule(b_max=B_MAX, decay=0.01 / D)


@dataclass(frozen=True)
class Row:
    """Competitors of one line: the plain loop, the engine, its products alone, and a variant."""

    name: str
    goal: str
    plain: Run
    engine: Run
    products: Run
    variant: Run
    replicas: int = 1
    calls: int = 1


class PlainPatches(nn.Module):
    """One patch CNN: a linear layer over patches, the smoothed ReLU (q = 3, rho = 1), sums."""

    def __init__(self, w: Tensor) -> None:
        super().__init__()
        self.k, m, d = w.shape
        self.filters = nn.Linear(d, self.k * m, bias=False)
        self.filters.weight.data = w.reshape(-1, d).clone()

    def forward(self, x: Tensor) -> Tensor:
        z = self.filters(x).relu()
        s = torch.where(z < 1, z**3 / 3, z - 2 / 3)
        return s.unflatten(-1, (self.k, -1)).sum((1, 3))


def plain_patch_steps(w: Tensor, x: Tensor, y: Tensor, adversarial: bool) -> Run:
    """nn.Module, autograd, torch.optim.SGD; the attack by autograd, too."""
    net = PlainPatches(w)
    optimiser = torch.optim.SGD(net.parameters(), lr=ETA)

    def attacked() -> Tensor:
        at = x.clone().requires_grad_()
        f = net(at).gather(1, y[:, None]).sum()
        (g,) = torch.autograd.grad(-f, at)
        return x + (STEP * g).clamp(-EPS, EPS)

    def run() -> None:
        inputs = attacked() if adversarial else x
        optimiser.zero_grad()
        cross_entropy(net(inputs), y).backward()
        optimiser.step()

    return run


def patch_products(engine: PatchGemm, adversarial: bool, fastest: bool) -> Run:
    """The matrix products of a step and nothing else, by `product` or by torch.bmm."""
    one = product if fastest else lambda a, b, out: torch.bmm(a, b, out=out)
    w = engine.w.flatten(1, 2)
    out, z = torch.empty_like(w), torch.rand_like(engine.z)

    def run() -> None:
        if adversarial:
            for c, (a, e) in zip(engine.present, engine.bounds, strict=True):
                own = engine.w[:, c]
                half = z[:, a:e, : engine.m].contiguous()
                one(engine.x[:, a:e], own.transpose(1, 2), half)
                one(half, own, engine.move[:, a:e])
        one(engine.x, w.transpose(1, 2), z)
        one(z.transpose(1, 2), engine.x, out)

    return run


def patch_rows() -> list[Row]:
    """The paper's synthetic size, and 64 tiny nets at once."""
    rows = []
    sizes = (("paper's size", 100, 16, 100, 100, 1, 10, ("2.5", "3.4")),
             ("64 tiny nets", 20, 4, 20, 10, 64, 20, ("25", "25")))  # fmt: skip
    for name, d, p, n, m, replicas, calls, goals in sizes:
        data = Patches(d=d, patches=p).sample(range(replicas), n, "train", torch.float32)
        w = 0.01 * torch.randn(replicas, 2, m, d)
        alive = torch.ones(replicas, dtype=torch.bool)
        for goal, attack in zip(goals, (None, OneStep(step=STEP, eps=EPS)), strict=True):
            kind = "adversarial" if attack else "standard"
            start = ({"w": w}, data.x, data.y, SmoothedRelu(3.0, 1.0), ETA, attack)
            engine, other = PatchGemm(*start), PatchGemm(*start)
            # The plain loop trains one net after the other.
            lone = [plain_patch_steps(w[r], data.x[r], data.y[r], attack is not None)
                    for r in range(min(replicas, 4))]  # fmt: skip
            rows.append(
                Row(
                    f"patch CNN, {name} (d={d}, P={p}, N={n}, m={m}), {kind}",
                    goal,
                    plain=lambda lone=lone: [run() for run in lone],
                    engine=lambda engine=engine, alive=alive: engine.advance(alive),
                    products=patch_products(other, attack is not None, fastest=True),
                    variant=patch_products(other, attack is not None, fastest=False),
                    replicas=replicas,
                    calls=calls,
                )
            )
    return rows


class PlainSymmetric(nn.Module):
    """The symmetric net with its noise in closed form, or drawn."""

    def __init__(self, w: Tensor, b: float, sigma: float, drawn: bool) -> None:
        super().__init__()
        self.first = nn.Linear(D, M, bias=False)
        self.first.weight.data = w.clone()
        self.b, self.sigma, self.drawn = b, sigma, drawn

    def smooth(self, u: Tensor) -> Tensor:
        t = u / self.sigma
        bell = torch.exp(-t * t / 2) / math.sqrt(2 * math.pi)
        return u * (0.5 + 0.5 * torch.erf(t / math.sqrt(2))) + self.sigma * bell

    def forward(self, x: Tensor) -> Tensor:
        s = self.first(x)
        if self.drawn:
            rho = self.sigma * torch.randn_like(s)
            return ((s - self.b + rho).relu() - (-s - self.b + rho).relu()).sum(1)
        return (self.smooth(s - self.b) - self.smooth(-s - self.b)).sum(1)


def plain_symmetric_step(net: PlainSymmetric, x: Tensor, y: Tensor, eta: float) -> Run:
    """nn.Module, autograd, torch.optim.SGD."""
    optimiser = torch.optim.SGD(net.parameters(), lr=eta)

    def run() -> None:
        optimiser.zero_grad()
        norm = net.first.weight.norm(dim=1)
        penalty = SCHEDULE.decay * (norm**2 / 2 + norm**3 / 3).sum()
        (softplus(-y * net(x)).mean() + penalty).backward()
        optimiser.step()

    return run


def plain_gradient(net: PlainSymmetric, x: Tensor) -> Run:
    """df/dx by autograd."""

    def run() -> None:
        at = x.clone().requires_grad_()
        torch.autograd.grad(net(at).sum(), at)

    return run


def symmetric_products(x: Tensor, w: Tensor, both: bool) -> Run:
    """X W^T, and G^T X for a step."""
    s, out = x.new_empty(1, B, M), x.new_empty(1, M, D)

    def run() -> None:
        product(x[None], w.T[None], s)
        if both:
            product(s.transpose(1, 2), x[None], out)

    return run


def trained(steps: int) -> tuple[SymmetricGemm, SparseCode]:
    """The base preset (d = 400, k = 20, m = 12 d) after so many steps on fresh points."""
    code = SparseCode(d=D, k=K)
    scale = B_MAX / 2 / math.sqrt(2.2 * math.log(D))
    start = {"w": scale * torch.randn(1, M, D), "b": torch.tensor([B_MAX / 2])}
    engine = SymmetricGemm(start, SCHEDULE)
    for step in range(steps):
        engine.step(*code.codes((0,), B, f"step.{step}", torch.float32), D / 25)
    return engine, code


def symmetric_rows(steps: int) -> tuple[list[Row], str]:
    """Clean step, step on dense points, FGM gradient; and how exact the default reach is."""
    engine, code = trained(steps)
    x, y = code.codes((0,), B, "bench", torch.float32)
    dense, b = x.dense(), float(engine.b[0])
    sigma, w = SCHEDULE.sigma(b), engine.w[0].clone()
    # Steps of length 0 in the weights: every repeat works on the same net.
    still = SymmetricGemm(engine.state(), SCHEDULE)
    plain = SymmetricGemm(engine.state(), SCHEDULE)
    plain.kernels = Active()
    closed, drawn = (PlainSymmetric(w, b, sigma, drawn) for drawn in (False, True))
    on = 100 * len(still._entries(x.one(0), 0, None)[0]) / (B * M)
    when = f"after {steps} steps, {on:.1f} % on"
    clean = f"symmetric net, d={D}, m={M}, batch {B}, clean step, {when}"
    step, gradient = symmetric_products(dense[0], w, True), symmetric_products(dense[0], w, False)
    against = plain_symmetric_step(closed, dense[0], y[0], 0.0)
    ours, theirs = (lambda: still.step(x, y, 0.0)), (lambda: plain.step(x, y, 0.0))
    rows = [
        Row(f"{clean}, against the closed form", "6", against, ours, step, theirs),
        Row(
            f"{clean}, against drawn noise",
            "3",
            plain_symmetric_step(drawn, dense[0], y[0], 0.0),
            ours,
            step,
            theirs,
        ),
        Row(
            f"the same step on dense points (noise or an attack), {when}",
            "",
            against,
            lambda: still.step(dense, y, 0.0),
            step,
            lambda: plain.step(dense, y, 0.0),
        ),
        Row(
            f"FGM gradient at clean points, {when}",
            "2.5",
            plain_gradient(closed, dense[0]),
            lambda: still.input_gradient(x),
            gradient,
            lambda: plain.input_gradient(x),
        ),
        Row(
            f"FGM gradient at dense points, {when}",
            "2.5",
            plain_gradient(closed, dense[0]),
            lambda: still.input_gradient(dense),
            gradient,
            lambda: plain.input_gradient(dense),
        ),
    ]
    return rows, f"After {steps} steps: {exactness(engine, x, y)}."


def exactness(engine: SymmetricGemm, x, y) -> str:  # type: ignore[no-untyped-def]
    """What the default reach leaves out, in float64, relative to the largest entry."""
    state = {name: p.double() for name, p in engine.state().items()}
    x, y = x.to(torch.float64), y.double()
    near, exact = SymmetricGemm(state, SCHEDULE), SymmetricGemm(state, SCHEDULE, reach=9.0)
    pairs = [(near.outputs(x), exact.outputs(x)), (near.input_gradient(x), exact.input_gradient(x))]
    for one in (near, exact):
        one.step(x, y, D / 25)
    pairs.append((near.w - state["w"], exact.w - state["w"]))
    f, g, step = (float((a - b).abs().max() / b.abs().max()) for a, b in pairs)
    return f"outputs {f:.0e}, input gradients {g:.0e}, the step of the weights {step:.0e}"


def measure(row: Row, repeats: int) -> dict[str, list[float]]:
    """CPU milliseconds a call and replica; the first repeat warms up."""
    runs = {name: getattr(row, name) for name in ("plain", "engine", "products", "variant")}
    share = dict.fromkeys(runs, row.replicas) | {"plain": min(row.replicas, 4)}
    times: dict[str, list[float]] = {name: [] for name in runs}
    for repeat in range(repeats + 1):
        for name, run in runs.items():
            start = time.process_time()
            for _ in range(row.calls):
                run()
            if repeat:
                spent = time.process_time() - start
                times[name].append(1e3 * spent / row.calls / share[name])
    return times


def line(row: Row, times: dict[str, list[float]]) -> str:
    """A line of the table."""
    ratios = sorted(p / e for p, e in zip(times["plain"], times["engine"], strict=True))
    plain, engine, products, variant = (
        statistics.median(times[name]) for name in ("plain", "engine", "products", "variant")
    )
    cells = [
        row.name,
        f"{plain:.3g}",
        f"{engine:.3g}",
        f"{statistics.median(ratios):.1f} [{ratios[0]:.1f}, {ratios[-1]:.1f}]",
        row.goal and f">= {row.goal}",
        f"{products:.3g}",
        f"{100 * products / engine:.0f} %",
        f"{variant:.3g}",
    ]
    return "| " + " | ".join(cells) + " |"


def rates(repeats: int) -> str:
    """Billions of operations a second of both matrix products, at the shapes of the table."""
    words = []
    for n, d, h in ((1600, 100, 200), (B, D, M)):
        a, b, out = torch.randn(1, n, d), torch.randn(1, h, d), torch.empty(1, n, h)
        calls, found = max(1, int(2e8 / (n * d * h))), []
        for one in (torch.bmm, product):
            spent = []
            for _ in range(repeats + 1):
                start = time.process_time()
                for _ in range(calls):
                    one(a, b.transpose(1, 2), out=out)
                spent.append((time.process_time() - start) / calls)
            found.append(2 * n * d * h / statistics.median(spent[1:]) / 1e9)
        words.append(f"[{n} {d}] [{d} {h}]: {found[0]:.0f} by torch.bmm, {found[1]:.0f} by oneDNN")
    return "; ".join(words)


TEXT = """
*products* is the time of the dense matrix products of a step alone, by the faster of torch's two
libraries (`train/engines/product.py`); *share* is that over the engine's time. It exceeds 100 %
where the engine does not form the products: with sparse points and a threshold, a step costs the
entries that are not zero. *variant* is, for the patch CNN, the same products by torch.bmm, which is
what an engine without oneDNN cannot beat; for the symmetric net, the engine without its compiled
kernels, as on other devices.

The roof of the patch CNN is the product: an adversarial step needs six of the eight units of
2 N P m d operations that autograd spends (the attack on -F_y touches one class's filters), and the
rest of a step is element-wise on [N P, k m], about seven passes over a buffer of the third-level
cache. For 64 tiny nets the products are too small for their library's full speed, and the passes
over the elements are the larger part.
"""


def report(repeats: int) -> str:
    """The whole page."""
    torch.manual_seed(0)
    start_rows, start_words = symmetric_rows(0)
    later_rows, later_words = symmetric_rows(100)
    rows = [*patch_rows(), *later_rows, start_rows[0]]
    lines = [line(row, measure(row, repeats)) for row in rows]
    head = ("case", "plain loop, ms", "engine, ms", "times faster", "goal", "products, ms", "share",
            "variant, ms")  # fmt: skip
    machine = f"{platform.machine()}, {platform.system()}, torch {torch.__version__}, one thread"
    load = ", ".join(f"{v:.1f}" for v in os.getloadavg())
    return "\n".join(
        [
            "# Steps of the patch CNN and of the symmetric net",
            "",
            f"CPU time a step and replica against the plain torch loop (nn.Module, autograd, SGD); "
            f"median [range] over {repeats} interleaved repeats in one process, float32. {machine}."
            f" Load of the machine's {os.cpu_count()} cores meanwhile: {load}. "
            "`python benchmarks/steps.py` writes this page.",
            "",
            "| " + " | ".join(head) + " |",
            "|" + "---|" * len(head),
            *lines,
            TEXT,
            f"Billions of operations a second: {rates(repeats)}.",
            "",
            "What the symmetric engine's default reach leaves out (largest deviation over largest "
            f"entry, float64). {start_words} {later_words}",
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--out", type=Path, default=Path("docs/steps.md"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.write_text(report(options.repeats), encoding="utf-8")
    print(options.out.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
