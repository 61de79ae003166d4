"""Steps of the patch CNN and of the symmetric net against the loop a researcher would write.

    python benchmarks/steps.py [--repeats 9]

Everything is in float32, and the points are drawn beforehand.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass

import torch
from measure import Row, interleaved, keep, ratios
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, softplus

from unmix.data.patches import Patches
from unmix.data.sparse_code import SparseCode
from unmix.nets.activations import SmoothedRelu
from unmix.train.engines.patches import OneStep, PatchGemm
from unmix.train.engines.product import product
from unmix.train.engines.symmetric import Schedule, SymmetricGemm

Run = Callable[[], object]
ETA, EPS, STEP = 0.1, 1.2, 10.0
D, M, B, K = 400, 4800, 1000, 20.0
B_MAX = 0.5 / math.sqrt(K)
SCHEDULE = Schedule(b_max=B_MAX, decay=0.01 / D)


@dataclass(frozen=True)
class Competition:
    """Who competes in one line: the plain loop, the engine, and its products alone."""

    name: str
    goal: str
    plain: Run
    engine: Run
    products: Run
    replicas: int = 1
    by: str = "gemm"

    @property
    def works(self) -> dict[str, Run]:
        return {"plain": self.plain, "engine": self.engine, "products": self.products}


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


def patch_products(engine: PatchGemm, adversarial: bool) -> Run:
    """The matrix products of a step and nothing else."""
    w = engine.w.flatten(1, 2)
    out, z = torch.empty_like(w), torch.rand_like(engine.z)
    parts = [
        (engine.x[:, a:e], engine.w[:, c], z[:, a:e, : engine.m].contiguous())
        for c, (a, e) in zip(engine.present, engine.bounds, strict=True)
    ]
    moves = [torch.empty_like(x.contiguous()) for x, _, _ in parts]

    def run() -> None:
        if adversarial:
            for (x, own, half), move in zip(parts, moves, strict=True):
                product(x, own.transpose(1, 2), half)
                product(half, own, move)
        product(engine.x, w.transpose(1, 2), z)
        product(z.transpose(1, 2), engine.x, out)

    return run


def patch_rows() -> list[Competition]:
    """The paper's synthetic size, and 64 tiny nets at once."""
    rows = []
    sizes = (("paper's size", 100, 16, 100, 100, 1, (">= 2.5", ">= 3.4")),
             ("64 tiny nets", 20, 4, 20, 10, 64, (">= 25", ">= 25")))  # fmt: skip
    for name, d, p, n, m, replicas, goals in sizes:
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
                Competition(
                    f"patch CNN, {name} (d={d}, P={p}, N={n}, m={m}), {kind}",
                    goal,
                    plain=lambda lone=lone: [run() for run in lone],
                    engine=lambda engine=engine, alive=alive: engine.advance(alive),
                    products=patch_products(other, attack is not None),
                    replicas=replicas,
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


def symmetric_rows(steps: int) -> tuple[list[Competition], str]:
    """Clean step, step on dense points, FGM gradient; and how exact the default reach is."""
    engine, code = trained(steps)
    x, y = code.codes((0,), B, "bench", torch.float32)
    dense, b = x.dense(), float(engine.b[0])
    # Steps of length 0 in the weights: every repeat works on the same net.
    still = SymmetricGemm(engine.state(), SCHEDULE)
    weights = (engine.w[0].clone(), b, SCHEDULE.sigma(b))
    closed, drawn = (PlainSymmetric(*weights, drawn) for drawn in (False, True))
    step, gradient = (symmetric_products(dense[0], weights[0], both) for both in (True, False))
    on = 100 * len(still._entries(x.one(0), 0, None)[0]) / (B * M)
    net = f"symmetric net (d={D}, m={M}, batch {B}) after {steps} steps, {on:.1f} % on"
    against_closed = plain_symmetric_step(closed, dense[0], y[0], 0.0)
    against_drawn = plain_symmetric_step(drawn, dense[0], y[0], 0.0)
    by_autograd = plain_gradient(closed, dense[0])

    def row(name: str, goal: str, plain: Run, ours: Run, products: Run) -> Competition:
        return Competition(f"{net}: {name}", goal, plain, ours, products)

    def clean() -> None:
        still.step(x, y, 0.0)

    rows = [
        row("clean step, against the closed form", ">= 6", against_closed, clean, step),
        row("clean step, against drawn noise", ">= 3", against_drawn, clean, step),
        row("step on dense points", "", against_closed, lambda: still.step(dense, y, 0.0), step),
        row("FGM, clean", ">= 2.5", by_autograd, lambda: still.input_gradient(x), gradient),
        row("FGM, dense", ">= 2.5", by_autograd, lambda: still.input_gradient(dense), gradient),
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


def measured(row: Competition, repeats: int) -> Row:
    """The engine and its products against the plain loop, a call and replica."""
    seconds = interleaved(row.works, repeats)
    nets = {"plain": min(row.replicas, 4)}
    each = {n: [t / nets.get(n, row.replicas) for t in v] for n, v in seconds.items()}
    gain, limit = (ratios(each["plain"], each[name]) for name in ("engine", "products"))
    reached = [100 * r for r in ratios(each["products"], each["engine"])]
    plain = 1e3 * statistics.median(each["plain"])
    return Row(row.name, row.goal, gain, limit, reached, row.by, plain)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    start_rows, start_words = symmetric_rows(0)
    later_rows, later_words = symmetric_rows(100)
    rows = [measured(row, options.repeats) for row in (*patch_rows(), *later_rows, start_rows[0])]
    keep("steps", rows, exactness=f"{start_words} {later_words}")


if __name__ == "__main__":
    main()
