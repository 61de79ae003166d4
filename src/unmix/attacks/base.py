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
from unmix.attacks.frame import Frame, Moves
from unmix.attacks.line import Line, chosen
from unmix.attacks.objectives import TIE, fooled, gap
from unmix.attacks.problem import BLOCK, Problem, problems
from unmix.attacks.threat import Threat
from unmix.attacks.training import fooling
from unmix.errors import AttackError
from unmix.experiment import Run
from unmix.perturbations.base import Norm, Scene
from unmix.spec import Spec

L2 = Threat()
HAIR = 1e-8


@dataclass(frozen=True)
class Found:
    """A perturbation of each point, and for which points the attack claims a success.

    Perturbations in the span of a net's neurons are kept as mixtures of them until they are judged:
    delta = mix @ basis, or `mix` itself; `gram` is that of the basis.
    """

    mix: Float[Tensor, "n D"]
    hit: Bool[Tensor, " n"]
    basis: Float[Tensor, "D d"] | None = None
    gram: Float[Tensor, "D D"] | None = None

    @classmethod
    def none(cls, problem: Problem) -> Found:
        delta = torch.zeros_like(problem.x, dtype=torch.float64)
        return cls(delta, torch.zeros_like(problem.right))

    @property
    def delta(self) -> Float[Tensor, "n d"]:
        """Every perturbation."""
        return self.mix if self.basis is None else self.mix @ self.basis

    def at(self, point: Int[Tensor, " p"], scale: Float[Tensor, " p"]) -> Float[Tensor, "p d"]:
        """Those of some points times a scale, in float64."""
        mix = scale.unsqueeze(1) * chosen(self.mix, point)
        return mix if self.basis is None else mix @ self.basis

    def line(self, problem: Problem, point: Int[Tensor, " p"]) -> Line:
        """Rays along them."""
        if self.gram is None:
            return Line.of(problem, chosen(self.delta, point), point)
        return Line.effects(problem, chosen(self.mix, point) @ self.gram, point)


@dataclass(frozen=True)
class Verified:
    """What held on the real net: lengths [n] (0: misclassified, infinity: none) and what was found,
    with the share of it that was judged."""

    radius: Float[Tensor, " n"]
    unverified: int
    problem: Problem
    found: Found
    share: Float[Tensor, " n"]

    @property
    def delta(self) -> Float[Tensor, "n d"]:
        """Perturbations that hold; 0 where there is none."""
        point = ((self.radius > 0) & self.radius.isfinite()).nonzero().squeeze(1)
        kept = torch.zeros_like(self.problem.x, dtype=torch.float64)
        kept[point] = _moved(self.problem, self.found, point, self.share[point])
        return kept


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
    share = torch.ones_like(radius)
    claimed = found.hit & problem.right
    # A length that is a number has coordinates that are.
    finite = torch.isfinite(torch.linalg.vector_norm(found.mix, ord=torch.inf, dim=1))
    point = (claimed & finite).nonzero().squeeze(1)
    if len(point):
        edge = found.line(problem, point).shortened()
        # What fails when it is cut to its edge may hold as it was found, or a hair further: where
        # neurons switch together, two ways to compute one net differ in who is on.
        for scale in (edge, torch.ones_like(edge), edge * (1 + HAIR)):
            rows = radius[point].isinf().nonzero().squeeze(1)
            # In blocks that fit into a cache: these are the largest arrays of an attack.
            for block in rows.split(max(1, BLOCK // problem.x.shape[1])) if len(rows) else ():
                _keep(problem, found, point[block], scale[block], radius, share)
    return Verified(radius, _false(problem, found, claimed & radius.isinf()), problem, found, share)


def _false(problem: Problem, found: Found, failed: Bool[Tensor, " n"]) -> int:
    """Claims that failed; but not ties, which the rounding of a search decides by chance."""
    if not failed.any():
        return 0
    point = failed.nonzero().squeeze(1)
    delta = _moved(problem, found, point, torch.ones_like(problem.clean[point, 0]))
    scores = problem.judge.scores(chosen(problem.x, point).double() + delta)
    left = gap(scores, problem.y[failed])
    clean = gap(problem.clean[failed], problem.y[failed])
    tie = (left.abs() <= TIE * clean) & torch.isfinite(delta).all(1)
    return int((~tie).sum())


def _keep(
    problem: Problem, found: Found, point: Tensor, scale: Tensor, radius: Tensor, share: Tensor
) -> None:
    """Note lengths and shares of perturbations that fool the real net, in the box."""
    delta = _moved(problem, found, point, scale)
    length = problem.threat.length(delta)
    # In place, while the rows are in the cache.
    scores = problem.judge.scores(delta.add_(chosen(problem.x, point)))
    holds = fooled(scores, problem.y[point])
    radius[point[holds]], share[point[holds]] = length[holds], scale[holds]


def _moved(problem: Problem, found: Found, point: Tensor, scale: Tensor) -> Float[Tensor, "p d"]:
    """Shares of perturbations, in the box."""
    delta = found.at(point, scale)
    return problem.threat.clip(chosen(problem.x, point).double(), delta)


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


def scattered(problem: Problem, frame: Frame, moves: Moves) -> Found:
    """Perturbations of some points as those of all."""
    mix, point = frame.mixed(moves).double(), moves.point
    basis, gram = frame.basis
    if len(point) == len(problem.x):
        return Found(mix[point.argsort()], torch.ones_like(problem.right), basis, gram)
    every = mix.new_zeros(len(problem.x), mix.shape[1])
    hit = torch.zeros_like(problem.right)
    every[point], hit[point] = mix, True
    return Found(every, hit, basis, gram)
