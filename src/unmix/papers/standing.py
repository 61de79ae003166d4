"""Nets beside nets, across papers: accuracy, robustness and mixing of each, side by side.

The radius of a net lies between its certificate and its attacks, whose union the certificate's
witnesses join. Both are means over the same held-out points, those that attack and certificate
have both seen, as shares of a best radius: half-way to the nearest point of another label, say,
beyond which nobody gets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from unmix.certify.base import Certificate, sandwich
from unmix.claims import confidence
from unmix.errors import AttackError, Contradiction, DataError, UnmixError
from unmix.papers.base import Contender, Evidence, Paper


@dataclass(frozen=True)
class Estimate:
    """A mean over replicas with its interval, or why there is none; red flags of the attack."""

    mean: float | None = None
    low: float | None = None
    high: float | None = None
    why_not: str = ""
    flagged: str = ""


@dataclass(frozen=True)
class Best:
    """A mean radius [R] (or one for all) that stands for 100 %, and what it is in words."""

    radius: Tensor | float
    words: str


@dataclass(frozen=True)
class Standing:
    """A net and its training: radii as a share of the best one, features a neuron."""

    paper: str
    title: str
    setting: str
    run: str
    replicas: int
    accuracy: Estimate
    best: Estimate
    best_is: str
    certified: Estimate
    attacked: Estimate
    features: Estimate
    closest: Estimate


def standings(paper: Paper, evidence: Evidence) -> list[Standing]:
    """A row for each contender of a paper whose setting is at hand."""
    at_hand = [c for c in paper.contenders if not evidence.why_not((c.setting,))]
    return [_Row(paper, contender, evidence.watched()).standing() for contender in at_hand]


@dataclass(frozen=True)
class _Row:
    """What is known of one contender."""

    paper: Paper
    contender: Contender
    evidence: Evidence

    def standing(self) -> Standing:
        name, evidence = self.contender.setting, self.evidence
        run = evidence.run(name)
        attacked = _estimate(lambda: self.attacked() / self.best.radius)
        return Standing(
            self.paper.name,
            self.contender.title,
            name,
            run.experiment.digest(),
            run.replicas,
            _estimate(lambda: run.classifier.accuracy(run.test_batch)),
            _estimate(lambda: torch.as_tensor(self.best.radius).expand(run.replicas)),
            self._best_is(),
            _estimate(lambda: self._certificate.lower.mean(1) / self.best.radius),
            replace(attacked, flagged=evidence.flagged),
            _estimate(lambda: evidence.probe(name, "mixtures")["features"]),
            _estimate(lambda: evidence.probe(name, "mixtures")["closest"]),
        )

    @cached_property
    def best(self) -> Best:
        """In the units of the inputs and the norm of the attack."""
        if self.contender.best:
            found: Best = self._take(self.contender.best)
            return found
        radius = self.evidence.run(self.contender.setting).data.best_radius
        if radius is None:
            raise DataError("none is known on these data")
        return Best(radius, "half-way to an opposite centre, in l2")

    def attacked(self) -> Tensor:
        """Mean length [R] of the shortest perturbation that is known to fool the net."""
        shortest = self._found
        try:
            witnesses = self._certificate.upper
            shortest = torch.minimum(shortest[:, : witnesses.shape[1]], witnesses)
        except Contradiction:
            raise
        except UnmixError:
            # Without a certificate there are no witnesses.
            pass
        if not shortest.isfinite().all():
            raise AttackError("some points withstood every radius that was tried")
        return shortest.mean(1)

    @cached_property
    def _found(self) -> Tensor:
        """What the attacks found [R n], on the points that all of them saw."""
        names = (self.contender.setting, *self.contender.also)
        found = [self.evidence.attacked(name).smallest for name in names]
        points = min(smallest.shape[1] for smallest in found)
        return torch.stack([smallest[:, :points] for smallest in found]).amin(0)

    @cached_property
    def _certificate(self) -> Certificate:
        """Of the attacked points; the sandwich is checked."""
        name, points = self.contender.setting, self._found.shape[1]
        if self.contender.certified:
            found: Certificate = self._take(self.contender.certified)
        else:
            found = self.evidence.certified(name)
        sandwich(found.lower, self._found, f"{name}: an attack")
        held = {f.name: getattr(found, f.name)[:, :points] for f in fields(found)[:4]}
        return replace(found, **held)

    def _best_is(self) -> str:
        try:
            return self.best.words
        except UnmixError as error:
            return error.message

    def _take(self, measure: str) -> Any:
        return self.paper.take(measure, (self.contender.setting,), self.evidence)


def _estimate(values: Callable[[], Tensor]) -> Estimate:
    try:
        found = [float(v) for v in values()]
    except Contradiction:
        raise
    except UnmixError as error:
        return Estimate(why_not=error.message)
    low, high = confidence(found)
    return Estimate(sum(found) / len(found), low, high)
