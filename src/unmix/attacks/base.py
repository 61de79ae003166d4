"""What every attack shares: judging, bookkeeping, and what is reported.

An attack writes one method, `search`: for each correctly classified point, a perturbation that it
believes in. The base class does the dangerous part: it shortens every perturbation along its own
ray, clips it to the box, replays it on the untouched model in float64 and measures its length.
Points without a success have radius infinity, misclassified ones 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from unmix.attacks.flags import flags, without_gradient
from unmix.attacks.objectives import TIE, fooled, margin
from unmix.attacks.problem import Problem, chosen, problems
from unmix.attacks.threat import Threat
from unmix.attacks.training import fooling
from unmix.errors import AttackError
from unmix.experiment import Run
from unmix.perturbations.base import Norm, Scene
from unmix.spec import Spec

L2 = Threat()
HAIR = 1e-8
# Numbers in the perturbations that are judged at a time.
BLOCK = 2**18


@dataclass(frozen=True)
class Found:
    """A perturbation of each point, and for which points the attack claims a success."""

    delta: Float[Tensor, "n d"]
    hit: Bool[Tensor, " n"]

    @classmethod
    def none(cls, problem: Problem) -> Found:
        delta = torch.zeros_like(problem.x, dtype=torch.float64)
        return cls(delta, torch.zeros_like(problem.right))


@dataclass(frozen=True)
class Verified:
    """What held on the real net: lengths [n] (0: misclassified, infinity: none), perturbations."""

    radius: Float[Tensor, " n"]
    delta: Float[Tensor, "n d"]
    unverified: int


class Attack(Spec, ABC):
    """One way to look for small perturbations."""

    kind: str

    @property
    def name(self) -> str:
        """What tables and figures call it."""
        return self.kind

    def applies(self, problem: Problem) -> bool:
        """Does the attack mean anything for these data and this threat?"""
        return True

    @abstractmethod
    def search(self, problem: Problem, radii: Sequence[float]) -> Found:
        """Perturbations found for the points in `problem.todo`; judged by the base class."""

    def judged(self, problem: Problem, radii: Sequence[float]) -> Verified:
        """What holds of `search` on the real net, as short as it gets along its own rays."""
        found = Found.none(problem)
        if len(problem.todo):
            with torch.no_grad():
                found = self.search(problem, radii)
        return verified(problem, found)

    def fooling(
        self, scene: Scene, code: Tensor, y: Tensor, norm: Norm, radius: float
    ) -> tuple[Float[Tensor, "n d"], Bool[Tensor, " n"]]:
        """What moves the points of a training step, and where it fools; nobody is judged by it."""
        return fooling(self, scene, code, y, norm, radius)


def verified(problem: Problem, found: Found) -> Verified:
    """Judge anybody's perturbations; those that are no numbers or leave the box do not count."""
    radius = torch.where(problem.right, torch.inf, 0.0).double()
    kept = torch.zeros_like(problem.x, dtype=torch.float64)
    claimed = found.hit & problem.right
    # A length that is a number has coordinates that are.
    finite = torch.isfinite(torch.linalg.vector_norm(found.delta, ord=torch.inf, dim=1))
    point = (claimed & finite).nonzero().squeeze(1)
    if len(point):
        share = problem.shortened(chosen(found.delta, point), point)
        # What fails when it is cut to its edge may hold as it was found, or a hair further: where
        # neurons switch together, two ways to compute one net differ in who is on.
        for scale in (share, torch.ones_like(share), share * (1 + HAIR)):
            rows = radius[point].isinf().nonzero().squeeze(1)
            # In blocks that fit into a cache: these are the largest arrays of an attack.
            for block in rows.split(max(1, BLOCK // problem.x.shape[1])) if len(rows) else ():
                _keep(problem, found, point[block], scale[block], radius, kept)
    return Verified(radius, kept, _false(problem, found, claimed & radius.isinf()))


def _false(problem: Problem, found: Found, failed: Bool[Tensor, " n"]) -> int:
    """Claims that failed; but not ties, which the rounding of a search decides by chance."""
    if not failed.any():
        return 0
    x = problem.x[failed].double()
    delta = problem.threat.clip(x, found.delta[failed].double())
    scores = problem.judge.scores(x + delta)
    left = margin(scores, problem.y[failed])[0]
    clean = margin(problem.clean[failed], problem.y[failed])[0]
    tie = (left.abs() <= TIE * clean) & torch.isfinite(delta).all(1)
    return int((~tie).sum())


def _keep(
    problem: Problem, found: Found, point: Tensor, scale: Tensor, radius: Tensor, kept: Tensor
) -> None:
    """Note lengths and perturbations that fool the real net, in the box."""
    x = problem.x[point].double()
    delta = problem.threat.clip(x, found.delta[point].double() * scale.unsqueeze(1))
    holds = fooled(problem.judge.scores(x + delta), problem.y[point])
    radius[point[holds]] = problem.threat.length(delta)[holds]
    kept[point[holds]] = delta[holds]


@dataclass(frozen=True)
class Attacked:
    """The outcome of one or several attacks on the held-out points of a run."""

    radii: tuple[float, ...]
    names: tuple[str, ...]
    by_attack: dict[str, Float[Tensor, "R n"]]
    control: dict[str, Float[Tensor, "R n"]]
    unit: float
    unverified: int
    threat: Threat = L2
    flags: tuple[str, ...] = ()

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
        return broken(self.smallest, self.radii)

    @property
    def clean_accuracy(self) -> Float[Tensor, " R"]:
        """Share of points that are right without any attack."""
        return (self.smallest > 0).double().mean(-1)

    def robust_accuracy(self, name: str | None = None) -> Float[Tensor, "R E"]:
        """Share of points that no attack (or that one attack does not) fool within each radius."""
        every = self.by_attack | self.control
        if name is not None and name not in every:
            raise AttackError(f"no attack {name!r} in this result", "have: " + ", ".join(every))
        radius = self.smallest if name is None else every[name]
        return 1 - broken(radius, self.radii).double().mean(-1)

    def __str__(self) -> str:
        """Robust accuracy over the radii, the union first, and every red flag beside it."""
        unit = "radius / |mu|" if self.unit != 1 else f"{self.threat.norm} radius"
        lines = [unit.ljust(18) + "".join(f"{r / self.unit:>7.3f}" for r in self.radii)]
        for name in (None, *self.by_attack, *self.control):
            accuracy = self.robust_accuracy(name).mean(0).tolist()
            label = "union" if name is None else name
            lines.append(label.ljust(18) + "".join(f"{a:>7.3f}" for a in accuracy))
        return "\n".join([*lines, *(f"! {flag}" for flag in self.flags)])

    def mean_radius(self, name: str | None = None) -> Float[Tensor, " R"]:
        """Mean radius over points in units of |mu|; infinite if some point was never fooled."""
        every = self.by_attack | self.control
        return (self.smallest if name is None else every[name]).mean(1) / self.unit


def attack(
    run: Run,
    attacks: Sequence[Attack],
    radii: Sequence[float],
    *,
    points: int | None = None,
    control: Sequence[Attack] = (),
    threat: Threat = L2,
) -> Attacked:
    """Run attacks on the first held-out points of each seed; `control`s do not join the union."""
    grid = checked(attacks, radii, control)
    made = held_out(run, threat, grid[-1], points)
    return carried_out(made, attacks, grid, control, unit=getattr(run.data, "unit", 1.0))


def held_out(run: Run, threat: Threat, largest: float, points: int | None) -> list[Problem]:
    """The first held-out points of each seed, or all."""
    if points is not None and points < 1:
        raise AttackError(f"expected at least one point to attack, got points={points}")
    return problems(run, threat, largest, points or run.experiment.samples.test)


def checked(
    attacks: Sequence[Attack], radii: Sequence[float], control: Sequence[Attack]
) -> tuple[float, ...]:
    """The radii in order, if the request makes sense."""
    grid = torch.tensor(list(map(float, radii)), dtype=torch.float64)
    if not attacks or not len(grid) or not (torch.isfinite(grid) & (grid >= 0)).all():
        raise AttackError("expected at least one attack and non-negative finite radii")
    for members in (attacks, control):
        if len({a.name for a in members}) < len(members):
            raise AttackError("two attacks have one name; run them one after the other")
    return tuple(grid.sort().values.tolist())


def carried_out(
    made: Sequence[Problem],
    attacks: Sequence[Attack],
    grid: tuple[float, ...],
    control: Sequence[Attack] = (),
    unit: float = 1.0,
) -> Attacked:
    """Every attack that applies on every problem."""
    found: list[dict[str, Tensor]] = [{}, {}]
    unverified = 0
    for group, members in enumerate((attacks, control)):
        for member in (m for m in members if m.applies(made[0])):
            results = [member.judged(problem, grid) for problem in made]
            found[group][member.name] = torch.stack([r.radius for r in results])
            unverified += sum(r.unverified for r in results)
    if not found[0]:
        came = ", ".join(a.name for a in attacks)
        raise AttackError(f"none of these attacks fits the data and the threat: {came}")
    told = flags(grid, found[0], found[1], unverified, without_gradient(made))
    threat = made[0].threat
    return Attacked(grid, tuple(found[0]), found[0], found[1], unit, unverified, threat, told)


def broken(radius: Float[Tensor, "R n"], radii: Sequence[float]) -> Bool[Tensor, "R E n"]:
    """Is there a success within each radius?"""
    grid = torch.tensor(radii, dtype=radius.dtype)
    return radius.unsqueeze(1) <= grid[:, None]


def scattered(problem: Problem, point: Tensor, delta: Float[Tensor, "p d"]) -> Found:
    """Perturbations of some points as those of all."""
    if len(point) == len(problem.x):
        return Found(delta[point.argsort()].double(), torch.ones_like(problem.right))
    found = Found.none(problem)
    found.delta[point] = delta.double()
    found.hit[point] = True
    return found
