"""One replica under attack: its points, its classifier, the threat, and the ways to search.

Replicas share nothing, so each is a problem of its own and agrees with a lone run by construction.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from unmix.attacks.foreign import ReplicaTarget, module_target
from unmix.attacks.frame import Frame, InputFrame, NeuronFrame
from unmix.attacks.objectives import fooled, gap
from unmix.attacks.target import FormTarget, Target, labels
from unmix.attacks.threat import Threat
from unmix.data.base import Batch
from unmix.data.clusters import Clusters
from unmix.errors import AttackError
from unmix.experiment import Run
from unmix.streams import normals

# Directions are followed up to this multiple of alpha |mu|; centres are sqrt(2) of it apart. Of
# other data the unit is the largest radius that is asked for.
REACH = 3.0
# A two-layer net of more neurons than this is searched in its own precision.
WIDE = 128
# Numbers in points that are converted and judged at a time: what fits into a cache.
BLOCK = 2**18


@dataclass(frozen=True)
class Problem:
    """Correct points [n] (flattened to [n d]) of one replica and everything known about them."""

    target: Target
    x: Float[Tensor, "n d"]
    y: Int[Tensor, " n"]
    threat: Threat
    largest: float
    seed: int
    batch: Batch
    data: Any = None
    # Another net for the same task, whose perturbations `transfer` takes.
    lender: Target | None = None

    @cached_property
    def judge(self) -> Target:
        """The untouched model in float64."""
        return self.target.double()

    @cached_property
    def clean(self) -> Float[Tensor, "n C"]:
        """Scores of the clean points, in float64."""
        if isinstance(self.judge, FormTarget):
            return self.judge.head.scores(self.preactivations)
        return self.judge.scores(self.x.double())

    @cached_property
    def preactivations(self) -> Float[Tensor, "n M"]:
        """Of the clean points, for two-layer nets, in float64."""
        assert isinstance(self.judge, FormTarget)
        blocks = self.x.split(max(1, BLOCK // self.x.shape[1]))
        return torch.cat([self.judge.preactivations(block.double()) for block in blocks])

    @cached_property
    def right(self) -> Bool[Tensor, " n"]:
        """Correctly classified: the only points worth an attack."""
        return ~fooled(self.clean, self.y)

    @cached_property
    def centres(self) -> Float[Tensor, "k d"]:
        """Of clusters; drawing them again costs more than an attack."""
        centres: Tensor = self.data.centres([self.seed])[0]
        return centres

    @property
    def reach(self) -> float:
        """How far rays are followed."""
        if isinstance(self.data, Clusters) and self.threat.norm == "l2":
            return REACH * self.data.alpha * self.data.unit
        return REACH * self.largest

    @cached_property
    def safe(self) -> Float[Tensor, " n"]:
        """Radii below which no attempt can succeed: margin over Lipschitz bound, or 0."""
        if self.threat.norm != "l2" or not isinstance(self.judge, FormTarget):
            return torch.zeros(len(self.y), dtype=torch.float64)
        return gap(self.clean, self.y).clamp_min(0) / self.judge.lipschitz

    @cached_property
    def searched(self) -> Target:
        """The classifier in the precision of the search: float64 where that costs little."""
        if isinstance(self.target, FormTarget) and len(self.target.w) <= WIDE:
            return self.judge
        return self.target

    @cached_property
    def frame(self) -> Frame:
        """Where perturbations are searched."""
        target, threat = self.searched, self.threat
        free = threat.norm == "l2" and threat.box is None
        if free and isinstance(target, FormTarget) and len(target.w) <= target.w.shape[1]:
            return NeuronFrame.of(target, self.preactivations.to(target.dtype))
        return self.inputs

    @cached_property
    def inputs(self) -> InputFrame:
        """Perturbations as such, whatever the net."""
        return InputFrame(self.searched, self.x.to(self.searched.dtype), self.threat)

    @property
    def todo(self) -> Int[Tensor, " p"]:
        """Indices of the points worth an attack."""
        return self.right.nonzero().squeeze(1)

    def draw(self, purpose: str, count: int, width: int) -> Float[Tensor, "n S w"]:
        """Standard normals, a stream an attack; more points do not change those of the others."""
        shape = (len(self.x), count, width)
        return normals([self.seed], f"attack.{purpose}", shape, self.searched.dtype)[0]

    @property
    def linear(self) -> bool:
        """Are rays straight lines of pre-activations? In a box they bend."""
        return isinstance(self.judge, FormTarget) and self.threat.box is None


def problems(run: Run, threat: Threat, largest: float, points: int) -> list[Problem]:
    """The first held-out points of each replica."""
    data, batch = run.data, run.fresh(points)
    nets = targets(run, tuple(batch.x.shape[2:]))
    threat.check(batch.x)
    made = []
    for r, (seed, target) in enumerate(zip(run.experiment.seeds, nets, strict=True)):
        row = replica(batch, r)
        x = row.x[0].flatten(1)
        made.append(Problem(target, x, labels(row.y[0]), threat, largest, seed, row, data))
    return made


def targets(run: Run, shape: tuple[int, ...]) -> list[Target]:
    """The net of each replica, at points of a shape."""
    if any(not torch.isfinite(p).all() for p in run.params.values()):
        raise AttackError("the model holds NaN or infinite weights", "see why the run stopped")
    net, data = run.experiment.net, run.data
    rows = [{n: p[r : r + 1].detach() for n, p in run.params.items()} for r in range(run.replicas)]
    return [target_of(net.classifier(data, params), shape) for params in rows]


def target_of(classifier: Any, shape: tuple[int, ...]) -> Target:
    """A classifier of one replica: its own target, its normal form, or its outputs."""
    if hasattr(classifier, "target"):
        own: Target = classifier.target()
        return own
    if hasattr(classifier, "form"):
        return FormTarget.of(classifier.form)
    if hasattr(classifier, "outputs"):
        return ReplicaTarget.of(classifier, shape)
    came = f"{type(classifier).__name__} has neither a normal form nor outputs to attack"
    raise AttackError(came)


def module_problem(
    module: nn.Module, x: Tensor, y: Tensor, threat: Threat, largest: float, seed: int = 0
) -> Problem:
    """A user's own model on points [n *shape] with labels [n]: classes, or -1 and +1."""
    if x.ndim < 2 or y.shape != x.shape[:1]:
        came = f"x {tuple(x.shape)}, y {tuple(y.shape)}"
        raise AttackError(f"expected points x [n *shape] and labels y [n], got {came}")
    if not len(x):
        raise AttackError("expected at least one point to attack, got an empty batch")
    threat.check(x)
    target = module_target(module, tuple(x.shape[1:]))
    x, y = x.detach().cpu(), y.cpu()
    if y.is_floating_point() or bool((y < 0).any()):
        if not ((y.abs() == 1) | (y == 0)).all() or bool((y == 0).any() and (y < 0).any()):
            raise AttackError("expected whole numbers for labels, or two of -1, 0 and +1")
        y = torch.where(y > 0, 1.0, -1.0)
    batch = Batch(x[None], y[None], torch.zeros(1, len(y), dtype=torch.int64))
    flat = x.flatten(1).to(target.dtype)
    problem = Problem(target, flat, labels(batch.y[0]), threat, largest, seed, batch)
    classes = problem.clean.shape[1]
    if int(problem.y.max()) >= classes:
        raise AttackError(f"label {int(problem.y.max())} but the model has {classes} scores")
    return problem


def replica(batch: Batch, r: int) -> Batch:
    """One row of a batch: points, labels and what they were drawn from."""
    rows = slice(r, r + 1)
    return Batch(batch.x[rows], batch.y[rows], batch.cluster[rows])
