"""What every l2 attack shares: the view of the net it works on, judging, and bookkeeping.

An attack writes one method, `search`: for each point, the smallest perturbation that it can find.
The base class replays every perturbation on the untouched model in float64 and drops what does not
fool it; correctly classified points without a success have radius infinity, misclassified ones 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from unmix.data.base import Batch
from unmix.errors import AttackError
from unmix.experiment import Run
from unmix.nets.base import Model, sign
from unmix.spec import Spec

GRID, BISECTIONS = 160, 30
# Share of the searched length by which a success is moved off its edge: less than the bisection
# resolves (6e-12), and more than the rounding in which these coordinates and the net differ.
CLEAR = 1e-12


@dataclass(frozen=True)
class View:
    """All points of all replicas in a row, with the net in coordinates of its neurons' span.

    A perturbation of the input matters only through W delta, so an l2 attack without a box loses
    nothing by staying in span(W): delta = Q v, |delta| = |v|, z = z0 + A v with A = W Q.
    """

    model: Model
    batch: Batch
    seeds: tuple[int, ...]
    z0: Float[Tensor, "P M"]
    y: Float[Tensor, " P"]
    replica: Int[Tensor, " P"]
    basis: Float[Tensor, "R d r"]
    inside: Float[Tensor, "R M r"]

    @classmethod
    def of(cls, run: Run, points: int) -> View:
        model, batch = run.model.double(), run.fresh(points)
        x = batch.x.double()
        if not all(torch.isfinite(p).all() for p in model.params.values()):
            raise AttackError("the model holds NaN or infinite weights", "see why the run stopped")
        basis = torch.linalg.qr(model.w.transpose(1, 2)).Q
        replica = torch.arange(run.replicas).repeat_interleave(points)
        z0 = model.preactivations(x).flatten(0, 1)
        batch = Batch(x, batch.y.double(), batch.cluster)
        seeds = run.experiment.seeds
        return cls(model, batch, seeds, z0, batch.y.flatten(), replica, basis, model.w @ basis)

    @property
    def shape(self) -> tuple[int, int]:
        return self.batch.y.shape[0], self.batch.points

    def wrong(self, z: Float[Tensor, "*p M"], y: Float[Tensor, "*#p"]) -> Bool[Tensor, "*p"]:
        """sgn f != y, with sgn(0) = -1."""
        return sign(self.model.decide(z)) != y

    def ray(self, dz: Float[Tensor, "P M"], limit: float) -> Float[Tensor, " P"]:
        """Smallest t <= limit found with f(z0 + t dz) misclassified; infinity if none is."""
        grid = torch.linspace(0, limit, GRID, dtype=torch.float64)
        lower, upper = torch.zeros_like(self.y), torch.full_like(self.y, torch.inf)
        for before, t in pairwise(grid):
            hit = self.wrong(self.z0 + t * dz, self.y) & upper.isinf()
            lower, upper = torch.where(hit, before, lower), torch.where(hit, t, upper)
        for _ in range(BISECTIONS):
            middle = ((lower + upper) / 2).nan_to_num(posinf=0.0)
            hit = self.wrong(self.z0 + middle[:, None] * dz, self.y) & upper.isfinite()
            upper, lower = torch.where(hit, middle, upper), torch.where(hit, lower, middle)
        # An edge on a grid point is met to the last bit, and the untouched net may round it back.
        return upper + CLEAR * limit


@dataclass(frozen=True)
class Found:
    """Radius of the best perturbation of each point (infinity: none) and the perturbation."""

    radius: Float[Tensor, "R n"]
    delta: Float[Tensor, "R n d"]


@dataclass(frozen=True)
class Attacked:
    """The outcome of one or several attacks on the held-out points of a run."""

    radii: tuple[float, ...]
    names: tuple[str, ...]
    by_attack: dict[str, Float[Tensor, "R n"]]
    control: dict[str, Float[Tensor, "R n"]]
    unit: float
    unverified: int

    @property
    def smallest(self) -> Float[Tensor, "R n"]:
        """Point-wise best over all attacks: an upper bound of the robust radius."""
        return torch.stack(list(self.by_attack.values())).amin(0)

    @property
    def winner(self) -> Int[Tensor, "R n"]:
        """Index into `names` of the attack that found it (the first, on ties)."""
        return torch.stack(list(self.by_attack.values())).argmin(0)

    @property
    def success(self) -> Bool[Tensor, "R E n"]:
        """Monotone in the radius by construction."""
        return _broken(self.smallest, self.radii)

    def robust_accuracy(self, name: str | None = None) -> Float[Tensor, "R E"]:
        """Share of points that no attack (or that one attack does not) fool within each radius."""
        every = self.by_attack | self.control
        if name is not None and name not in every:
            raise AttackError(f"no attack {name!r} in this result", "have: " + ", ".join(every))
        radius = self.smallest if name is None else every[name]
        return 1 - _broken(radius, self.radii).double().mean(-1)

    def __str__(self) -> str:
        """Robust accuracy over the radii, the union first; radii in units of |mu|."""
        head = "radius / |mu|".ljust(18) + "".join(f"{r / self.unit:>7.3f}" for r in self.radii)
        lines = [head]
        for name in (None, *self.by_attack, *self.control):
            accuracy = self.robust_accuracy(name).mean(0).tolist()
            label = "union" if name is None else name
            lines.append(label.ljust(18) + "".join(f"{a:>7.3f}" for a in accuracy))
        return "\n".join(lines)

    def mean_radius(self, name: str | None = None) -> Float[Tensor, " R"]:
        """Mean radius over points in units of |mu|; infinite if some point was never fooled."""
        every = self.by_attack | self.control
        return (self.smallest if name is None else every[name]).mean(1) / self.unit


class Attack(Spec, ABC):
    """One way to look for small perturbations."""

    kind: str

    @property
    def name(self) -> str:
        """What tables and figures call it."""
        return self.kind

    @abstractmethod
    def search(self, view: View, radii: Sequence[float]) -> Found:
        """The smallest perturbation found for each point; judged afterwards by the base class."""

    def judged(self, view: View, radii: Sequence[float]) -> tuple[Tensor, int]:
        """Radii of the perturbations that hold on the real net, and how many did not."""
        found = self.search(view, radii)
        clean = view.model.predict(view.batch.x) != view.batch.y
        holds = view.model.predict(view.batch.x + found.delta) != view.batch.y
        short = found.delta.norm(dim=-1) <= found.radius * (1 + 1e-9)
        claimed = found.radius.isfinite() & ~clean
        good = claimed & holds & short
        radius = torch.where(good, found.radius, torch.inf)
        return torch.where(clean, 0.0, radius), int((claimed & ~good).sum())


def attack(
    run: Run,
    attacks: Sequence[Attack],
    radii: Sequence[float],
    *,
    points: int | None = None,
    control: Sequence[Attack] = (),
) -> Attacked:
    """Run attacks on the first held-out points of each seed; `control`s do not join the union."""
    if not attacks or not radii or min(radii) < 0 or not all(map(_finite, radii)):
        raise AttackError("expected at least one attack and non-negative finite radii")
    if points is not None and points < 1:
        raise AttackError(f"expected at least one point to attack, got points={points}")
    for members in (attacks, control):
        if len({a.name for a in members}) < len(members):
            raise AttackError("two attacks have one name; run them one after the other")
    view = View.of(run, points or run.experiment.samples.test)
    grid, unverified = sorted(float(r) for r in radii), 0
    found: list[dict[str, Tensor]] = [{}, {}]
    for group, members in enumerate((attacks, control)):
        for member in members:
            radius, bad = member.judged(view, grid)
            found[group][member.name] = radius
            unverified += bad
    return Attacked(tuple(grid), tuple(found[0]), found[0], found[1], run.data.unit, unverified)


def along(view: View, direction: Float[Tensor, "R n d"], limit: float) -> Found:
    """The smallest step along one unit direction a point, found by grid and bisection."""
    dz = (direction @ view.model.w.transpose(1, 2)).flatten(0, 1)
    radius = view.ray(dz, limit).reshape(view.shape)
    step = torch.where(radius.isfinite(), radius, 0.0)
    return Found(radius, step.unsqueeze(-1) * direction)


def better(first: Found, second: Found) -> Found:
    """Point-wise the smaller of two results."""
    take = second.radius < first.radius
    radius = torch.where(take, second.radius, first.radius)
    return Found(radius, torch.where(take.unsqueeze(-1), second.delta, first.delta))


def _broken(radius: Tensor, radii: Sequence[float]) -> Bool[Tensor, "R E n"]:
    grid = torch.tensor(radii, dtype=radius.dtype)
    return radius.unsqueeze(1) <= grid[:, None]


def _finite(radius: float) -> bool:
    return bool(torch.isfinite(torch.tensor(float(radius))))
