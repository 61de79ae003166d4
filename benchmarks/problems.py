"""Two-layer training problems of any size: the loop that a researcher would write, and ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from unmix.nets.tops import PowerTop, ReluTop, Top
from unmix.train.engines import ENGINES
from unmix.train.engines.base import Problem
from unmix.train.engines.columns import Held
from unmix.train.engines.product import product
from unmix.train.losses import Loss

ETA = 1e-3


@dataclass(frozen=True)
class Case:
    """R nets of M neurons on the same n points in d dimensions; p > 0 is a pReLU net."""

    name: str
    n: int
    d: int
    neurons: int
    dtype: torch.dtype
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
