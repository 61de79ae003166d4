"""Attacks on patch CNNs within an l_inf ball, and the suites that judge by them.

What is allowed decides what a net is robust to (robust and non-robust features), so each closed
form is a named threat; with y' another class, on the patches that it names,

    model-free      -beta_p v_y + eps v_y' on J_NR (Thm 4.3; knows the data, not the net)
    own-features    -eps (u_y + v_y) on every patch: what was learned is taken away
    in-place        -eps u_y + eps u_y' on J_R, -eps v_y + eps v_y' on J_NR
    all-features    -eps (u_y + v_y) + eps (u_y' + v_y') on every patch

and `ascent` searches the whole ball by gradients, as published evaluations do. An attack yields
perturbations; the base class projects each onto the ball and judges it on the net in float64. A
tie of outputs is an error of the net. `strong` judges every iterate from several starts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor

from unmix.attacks.patch_view import Objective, PatchView
from unmix.spec import Spec
from unmix.streams import stream


@dataclass(frozen=True)
class Judged:
    """Who is misclassified on the net in float64; how many points the search, in the run's own
    precision, takes for misclassified where none of its perturbations holds (ties aside)."""

    broken: Bool[Tensor, "R n"]
    unverified: int


class PatchAttack(Spec, ABC):
    """One way to look for perturbations within a ball of radius eps."""

    kind: str

    @property
    def name(self) -> str:
        """What tables and figures call it."""
        return self.kind

    @abstractmethod
    def search(self, view: PatchView, eps: float) -> Iterator[Float[Tensor, "R n P d"]]:
        """Perturbations; the base class clamps each to the ball."""

    def judged(self, view: PatchView, eps: float) -> Judged:
        """What holds of `search` on the net in float64."""
        broken = view.broken(torch.zeros_like(view.batch.x))
        claimed = torch.zeros_like(broken)
        for delta in self.search(view, eps):
            moved = delta.clamp(-eps, eps)
            doubtful, taken = view.looked(moved)
            if (doubtful & ~broken).any():
                broken = broken | view.broken(moved)
            if (taken & ~broken).any():
                claimed = claimed | (taken & ~broken & ~view.tied(moved))
            if broken.all():
                break
        return Judged(broken, int((claimed & ~broken).sum()))

    def success(self, view: PatchView, eps: float) -> Bool[Tensor, "R n"]:
        """Who is misclassified by one of them, or without any."""
        return self.judged(view, eps).broken


class ModelFree(PatchAttack):
    """Each non-robust feature gives way to that of another class (Thm 4.3)."""

    kind: Literal["model-free"] = "model-free"

    def search(self, view: PatchView, eps: float) -> Iterator[Tensor]:
        signal = view.batch.signal.unsqueeze(-1)
        gone = -signal * view.direction("non-robust", view.batch.y)
        new = eps * view.direction("non-robust", view.rival)
        yield (gone + new).masked_fill(view.batch.robust.unsqueeze(-1), 0)


class OwnFeatures(PatchAttack):
    """Both features of the own class are weakened on every patch."""

    kind: Literal["own-features"] = "own-features"

    def search(self, view: PatchView, eps: float) -> Iterator[Tensor]:
        y = view.batch.y
        step = -eps * (view.direction("robust", y) + view.direction("non-robust", y))
        yield step.expand_as(view.batch.x)


class InPlace(PatchAttack):
    """On each patch its own feature is weakened, and the rival's of the same type put there."""

    kind: Literal["in-place"] = "in-place"

    def search(self, view: PatchView, eps: float) -> Iterator[Tensor]:
        robust = view.batch.robust.unsqueeze(-1)
        for rival in view.rivals:
            u, v = _exchanged(view, rival)
            yield eps * torch.where(robust, u, v)


class AllFeatures(PatchAttack):
    """On every patch both own features are weakened, and both of a rival's put there."""

    kind: Literal["all-features"] = "all-features"

    def search(self, view: PatchView, eps: float) -> Iterator[Tensor]:
        yield from aligned(view, eps)


class PatchAscent(PatchAttack):
    """Gradient steps within the whole ball, judged where they end, as published evaluations do.

    direction="sign" steps by `step` times eps, direction="raw" by `step` times the gradient.
    """

    kind: Literal["patch-ascent"] = "patch-ascent"
    label: str = "patch-ascent"
    objective: Objective = "ce"
    direction: Literal["sign", "raw"] = "sign"
    start: Literal["zero", "random"] = "random"
    step: float = Field(0.25, gt=0)
    steps: int = Field(10, ge=1)

    @property
    def name(self) -> str:
        return self.label

    def search(self, view: PatchView, eps: float) -> Iterator[Tensor]:
        delta = torch.zeros_like(view.batch.x)
        if self.start == "random":
            delta = uniform(view, eps, self.name)
        for _ in range(self.steps):
            g = view.ascent(view.batch.x + delta, self.objective)
            move = self.step * (eps * g.sign() if self.direction == "sign" else g)
            delta = (delta + move).clamp(-eps, eps)
        yield delta


class Strong(PatchAttack):
    """Sign steps on the margin from four starts (zero, the features, random, both mixed); a point
    counts as broken when one iterate breaks it."""

    kind: Literal["patch-strong"] = "patch-strong"
    step: float = Field(0.25, gt=0, description="in units of eps, falling to a tenth of it")
    steps: int = Field(15, ge=1)

    def search(self, view: PatchView, eps: float) -> Iterator[Tensor]:
        noise = uniform(view, eps, self.name)
        starts = [torch.zeros_like(noise), *aligned(view, eps), noise]
        starts += [(start + noise) / 2 for start in aligned(view, eps)]
        for delta in starts:
            yield delta
            for turn in range(self.steps):
                g = view.ascent(view.batch.x + delta, "margin")
                size = self.step * eps * 0.1 ** (turn / self.steps)
                delta = (delta + size * g.sign()).clamp(-eps, eps)
                yield delta


def aligned(view: PatchView, eps: float) -> Iterator[Float[Tensor, "R n P d"]]:
    """eps (u_y' + v_y' - u_y - v_y) on every patch, for each rival y'."""
    for rival in view.rivals:
        u, v = _exchanged(view, rival)
        yield (eps * (u + v)).expand_as(view.batch.x)


def _exchanged(view: PatchView, rival: Int[Tensor, "R n"]) -> tuple[Tensor, Tensor]:
    """u_y' - u_y and v_y' - v_y."""
    y = view.batch.y
    return (
        view.direction("robust", rival) - view.direction("robust", y),
        view.direction("non-robust", rival) - view.direction("non-robust", y),
    )


def uniform(view: PatchView, eps: float, name: str) -> Float[Tensor, "R n P d"]:
    """A random start, the same for one seed whatever the radius."""
    shape = view.batch.x.shape[1:]
    draws = [stream(seed, f"attack.{name}").random(shape) for seed in view.seeds]
    return (eps * (2 * torch.stack([torch.from_numpy(u) for u in draws]) - 1)).to(view.batch.x)
