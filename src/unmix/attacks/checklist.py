"""The questions a careful reader asks of a robust accuracy, answered by measurement.

After Carlini et al. (2019), the flags of AutoAttack and the indicators of attack failure, for
classifiers whose features are known. Each answer is a finding: sound, a note, or a red flag.

    verified        successes hold on the model in float64
    clean           accuracy without an attack is above chance
    curve           at the largest radius hardly any point is left
    deterministic   two evaluations agree
    outputs         scores are no probabilities, which saturate
    gradient        it is there, and agrees with differences of the scores along random lines
    scale           scores times 10^-2 and 10^3 change nothing; cross-entropy is not masked
    iteration       twice the steps and starts gain nothing; many steps beat one
    directions      closed forms and minimum-norm do not beat gradients at a radius, nor these them
    gradient-free   neither random blocks nor noise beat those that see the gradient
    clean start     what gradients from the clean point alone would have reported
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from unmix.attacks.base import Attacked, carried_out, checked
from unmix.attacks.blackbox import Square
from unmix.attacks.directions import RandomDirections
from unmix.attacks.flags import POINT, curve, lead
from unmix.attacks.frame import Rows
from unmix.attacks.gradient import PGD
from unmix.attacks.objectives import Objective, Scores, objective
from unmix.attacks.problem import Problem, module_problem, problems
from unmix.attacks.suite import Suite
from unmix.attacks.target import Target
from unmix.errors import AttackError
from unmix.experiment import Run

Status = Literal["sound", "note", "red"]
SCALES = (1e-2, 1e3)
# Gain of doubled work, and relative error of a directional derivative, that are no alarm.
DOUBLED, SLOPE = 0.005, 0.05
# Random lines on which slopes are compared, and the steps tried, as shares of the largest radius.
LINES, STEPS = 4, (1e-2, 1e-3, 1e-4)


@dataclass(frozen=True)
class Finding:
    """The answer to one question."""

    question: str
    status: Status
    told: str


@dataclass(frozen=True)
class Audit:
    """The outcome of a suite with every finding; `str` prints both."""

    attacked: Attacked
    findings: tuple[Finding, ...]

    @property
    def red(self) -> tuple[Finding, ...]:
        """Findings that forbid to quote the robust accuracy alone."""
        return tuple(f for f in self.findings if f.status == "red")

    def __str__(self) -> str:
        marks = {"sound": "  ", "note": "? ", "red": "! "}
        lines = [f"{marks[f.status]}{f.question:<15}{f.told}" for f in self.findings]
        return "\n".join([str(self.attacked), *lines])


@dataclass(frozen=True)
class Scaled:
    """A classifier whose scores are multiplied."""

    target: Target
    factor: float

    @property
    def dtype(self) -> torch.dtype:
        return self.target.dtype

    def scores(self, x: Rows) -> Scores:
        return self.factor * self.target.scores(x)

    def pull(self, x: Rows, lowered: Objective) -> tuple[Scores, Tensor, Rows]:
        held: list[tuple[Scores, Tensor]] = []

        def scaled(scores: Scores) -> tuple[Tensor, Scores]:
            value, slopes = lowered(self.factor * scores)
            held.append((self.factor * scores, value))
            return value, self.factor * slopes

        _, _, gradient = self.target.pull(x, scaled)
        return held[0][0], held[0][1], gradient

    def double(self) -> Scaled:
        return Scaled(self.target.double(), self.factor)


def audit(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    radii: Sequence[float],
    suite: Suite,
    seed: int = 0,
) -> Audit:
    """Attack a user's own model at points x [n *shape] with labels y [n], and ask everything."""
    grid = checked(suite.members, radii, suite.controls)
    return examined([module_problem(model, x, y, suite.threat, grid[-1], seed)], grid, suite)


def audit_run(run: Run, radii: Sequence[float], suite: Suite, points: int | None = None) -> Audit:
    """The same for the held-out points of a run."""
    grid = checked(suite.members, radii, suite.controls)
    made = problems(run, suite.threat, grid[-1], points or run.experiment.samples.test)
    return examined(made, grid, suite)


def examined(made: Sequence[Problem], radii: tuple[float, ...], suite: Suite) -> Audit:
    """Attack, then answer every question."""
    members = (*suite.members, Square())
    attacked = carried_out(made, members, radii, suite.controls)
    findings = [_verified(attacked), _clean(attacked, made), _curve(attacked)]
    findings += [_deterministic(made), _outputs(made), _gradient(made)]
    if findings[-1].told != NONE:
        findings += [_scale(made, radii), _cross_entropy(made, radii, attacked)]
        findings += [_iteration(made, radii, attacked, suite.pgd)]
    findings += [_directions(attacked), _gradient_free(made, radii, attacked)]
    findings += [_clean_start(attacked)]
    return Audit(attacked, tuple(findings))


NONE = "the model gives no gradient at all: adaptive evaluation needed"


def _verified(attacked: Attacked) -> Finding:
    bad = attacked.unverified
    told = f"{bad} successes of a search did not hold in float64" if bad else "every success holds"
    return Finding("verified", "red" if bad else "sound", told)


def _clean(attacked: Attacked, made: Sequence[Problem]) -> Finding:
    accuracy = float(attacked.clean_accuracy.mean())
    counts = torch.stack([p.y.bincount(minlength=2).amax() / len(p.y) for p in made])
    chance = float(counts.mean())
    status: Status = "red" if accuracy <= chance else "sound"
    return Finding("clean", status, f"accuracy {accuracy:.3f}, the commonest label {chance:.3f}")


def _curve(attacked: Attacked) -> Finding:
    left = float(attacked.robust_accuracy().mean(0)[-1])
    told = f"{left:.3f} left at the largest radius, {attacked.radii[-1]:.4g}"
    return Finding("curve", "note" if left > POINT else "sound", told)


def _deterministic(made: Sequence[Problem]) -> Finding:
    frames = [p.inputs for p in made]
    same = all(torch.equal(f.scores_at(f.z0), f.scores_at(f.z0)) for f in frames)
    told = "two evaluations agree" if same else "two evaluations differ: randomised outputs"
    return Finding("deterministic", "sound" if same else "red", told)


def _outputs(made: Sequence[Problem]) -> Finding:
    scores = torch.cat([p.clean for p in made])
    # A binary net has scores (-f/2, f/2), which are never all positive.
    likely = bool((scores >= 0).all() and ((scores.sum(1) - 1).abs() < 1e-4).all())
    ties = float(((scores == 0) | (scores == 1)).any(1).double().mean())
    if not likely:
        return Finding("outputs", "sound", "scores are no probabilities")
    told = f"outputs are probabilities, {ties:.1%} of the points saturated: attack the logits"
    return Finding("outputs", "red" if ties > POINT else "note", told)


def _gradient(made: Sequence[Problem]) -> Finding:
    """On random lines, against central differences at steps of several sizes; the best counts."""
    wrong = missing = total = 0
    for problem in made:
        point, frame = problem.todo, problem.inputs
        lowered = objective("margin", problem.y[point])
        try:
            value, slopes = frame.pull(frame.still(point), lowered)[1:]
        except AttackError:
            return Finding("gradient", "red", NONE)
        missing, total = missing + int((slopes == 0).all(1).sum()), total + len(point)
        draws = problem.draw("checklist", LINES, frame.width)[point]
        error = torch.stack([_error(problem, lowered, slopes, u) for u in draws.unbind(1)])
        size = value.abs() / problem.largest
        wrong += int((error.amin(0) > SLOPE * (size + slopes.norm(dim=1))).sum())
    if not total:
        return Finding("gradient", "note", "no point is classified correctly")
    told = (
        f"missing at {missing / total:.1%}, unlike differences at {wrong / total:.1%} of the points"
    )
    bad = missing / total > POINT or wrong / total > 0.1
    return Finding("gradient", "red" if bad else "sound", told)


def _error(problem: Problem, lowered: Objective, slopes: Tensor, u: Tensor) -> Tensor:
    """Directional derivatives along u [p d] against differences, the best of all steps."""
    frame, point = problem.inputs, problem.todo
    unit = u / u.norm(dim=1, keepdim=True)
    wanted = (slopes * unit).sum(1)
    errors = []
    for share in STEPS:
        h = share * problem.largest
        ends = [lowered(frame.scores_at(frame.z0[point] + s * h * unit))[0] for s in (1, -1)]
        errors.append(((ends[0] - ends[1]) / (2 * h) - wanted).abs())
    return torch.stack(errors).amin(0)


def _scale(made: Sequence[Problem], radii: tuple[float, ...]) -> Finding:
    plain = _pgd(made, radii, PGD())
    worst, where = 0.0, ""
    for factor in SCALES:
        scaled = [replace(p, target=Scaled(p.searched, factor)) for p in made]
        gap, at = lead(*_ordered(plain, _pgd(scaled, radii, PGD())), radii)
        if gap > worst:
            worst, where = gap, f": {at} with scores times {factor:g}"
    told = f"scores times 1e-2 and 1e3 move the margin attack by {worst:.3f}{where}"
    return Finding("scale", "red" if worst > POINT else "sound", told)


def _cross_entropy(
    made: Sequence[Problem], radii: tuple[float, ...], attacked: Attacked
) -> Finding:
    """From the clean points alone: starts that know the features would hide the effect."""
    plain = curve(attacked.control["pgd-clean-start"], radii)
    gap, at = lead(plain, _pgd(made, radii, PGD(loss="ce", start="clean")), radii)
    told = f"cross-entropy would report {at}" if gap > POINT else "cross-entropy is not masked"
    return Finding("scale", "note" if gap > POINT else "sound", told)


def _iteration(
    made: Sequence[Problem], radii: tuple[float, ...], attacked: Attacked, pgd: PGD
) -> Finding:
    twice = pgd.override(f"steps={2 * pgd.steps}", f"restarts={2 * pgd.restarts}")
    gap, at = lead(_pgd(made, radii, twice), _union(attacked), radii)
    one, at_one = lead(_curve_of(attacked, "fgm"), _curve_of(attacked, "pgd"), radii)
    if gap > DOUBLED:
        return Finding("iteration", "red", f"twice the work gains: {at}")
    if one > POINT:
        return Finding("iteration", "red", f"one step beats many: {at_one}")
    return Finding("iteration", "sound", "twice the work gains nothing, many steps beat one")


def _directions(attacked: Attacked) -> Finding:
    told = [f for f in attacked.flags if "closed form" in f]
    first, second = _curve_of(attacked, "min-norm"), _curve_of(attacked, "pgd")
    for low, high, names in (
        (first, second, "minimum norm beats fixed radii"),
        (second, first, "fixed radii beat minimum norm"),
    ):
        gap, at = lead(low, high, attacked.radii)
        if gap > POINT:
            told.append(f"{names}: {at}")
    return Finding("directions", "red" if told else "sound", "; ".join(told) or "all agree")


def _gradient_free(
    made: Sequence[Problem], radii: tuple[float, ...], attacked: Attacked
) -> Finding:
    told = [f for f in attacked.flags if "without gradients" in f or "control" in f]
    noise = carried_out(made, [RandomDirections(draws=32)], radii)
    gap, at = lead(_union(noise), _union(attacked), radii)
    if gap > 0:
        told.append(f"noise beats the suite: {at}")
    return Finding(
        "gradient-free", "red" if told else "sound", "; ".join(told) or "they gain nothing"
    )


def _clean_start(attacked: Attacked) -> Finding:
    name = "pgd-clean-start"
    gap, at = lead(_union(attacked), curve(attacked.control[name], attacked.radii), attacked.radii)
    told = f"gradients from the clean points alone would report {at}"
    return Finding("clean start", *(("note", told) if gap > POINT else ("sound", "it agrees")))


def _pgd(made: Sequence[Problem], radii: tuple[float, ...], pgd: PGD) -> Tensor:
    return _union(carried_out(made, [pgd], radii))


def _union(attacked: Attacked) -> Tensor:
    return curve(attacked.smallest, attacked.radii)


def _curve_of(attacked: Attacked, name: str) -> Tensor:
    return curve(attacked.by_attack[name], attacked.radii)


def _ordered(one: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """So that `lead` sees the largest difference, whichever curve lies below."""
    return torch.minimum(one, other), torch.maximum(one, other)
