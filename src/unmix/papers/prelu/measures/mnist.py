"""What is measured on nets that were trained on images."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from unmix.claims import Sample
from unmix.papers.base import Evidence

# Images that are compared pair by pair.
PAIRS = 1000


def clean(evidence: Evidence, setting: str) -> Sample:
    """Accuracy on the held-out images."""
    return evidence.sample(setting, _last(evidence, setting, "test_accuracy"))


def clean_gain(evidence: Evidence, one: str, other: str) -> Sample:
    """Test accuracy of the second net minus that of the first."""
    gain = _last(evidence, other, "test_accuracy") - _last(evidence, one, "test_accuracy")
    return evidence.sample(other, gain)


def robust(evidence: Evidence, radius: str, setting: str) -> Sample:
    """Robust accuracy."""
    return evidence.sample(setting, left(evidence, setting, float(radius)))


def left_more(evidence: Evidence, radius: str, one: str, other: str) -> Sample:
    """Robust accuracy under another attack minus that under the first, on the same images."""
    r, points = float(radius), evidence.attacked(other).smallest.shape[1]
    gap = left(evidence, other, r) - left(evidence, one, r, points)
    return evidence.sample(other, gap)


def under_other(evidence: Evidence, radius: str, one: str, other: str) -> Sample:
    """Robust accuracy under another attack: the first's, and what the other leaves more.

    The first sees more images; on those of both the two go together, so the difference is known
    far better than the accuracy.
    """
    more = left_more(evidence, radius, one, other).values
    every = left(evidence, one, float(radius)).tolist()
    return evidence.sample(other, [a + b for a, b in zip(every, more, strict=True)])


def left_less(evidence: Evidence, radius: str, one: str, other: str) -> Sample:
    """The same gap the other way round."""
    more = left_more(evidence, radius, one, other)
    return Sample([-v for v in more.values], more.failed_premises, more.note)


def gain(evidence: Evidence, radius: str, one: str, other: str) -> Sample:
    """Robust accuracy of the second net minus that of the first."""
    r = float(radius)
    return evidence.sample(other, left(evidence, other, r) - left(evidence, one, r))


def smallest_step(evidence: Evidence, radius: str, *ladder: str) -> Sample:
    """Smallest increase of robust accuracy from one rung to the next."""
    rungs = [left(evidence, setting, float(radius)) for setting in ladder]
    steps = torch.stack([b - a for a, b in pairwise(rungs)])
    return evidence.sample(ladder[-1], steps.amin(0))


def lead(evidence: Evidence, one: str, other: str) -> Sample:
    """Smallest lead of the second net's robust accuracy over all radii."""
    curves = [evidence.attacked(s).robust_accuracy() for s in (one, other)]
    return evidence.sample(other, (curves[1] - curves[0]).amin(1))


def stable_rank_step(evidence: Evidence, *ladder: str) -> Sample:
    """Smallest ratio of the features' stable rank from one rung to the next, after training."""
    ranks = [_last(evidence, setting, "stable_rank") for setting in ladder]
    return evidence.sample(ladder[-1], torch.stack([b / a for a, b in pairwise(ranks)]).amin(0))


def other_cosine(evidence: Evidence, setting: str) -> Sample:
    """Mean cosine of two centred training images of different classes."""
    return evidence.sample(
        setting, [float(c[~same].mean()) for c, same in _pairs(evidence, setting)]
    )


def same_positive(evidence: Evidence, setting: str) -> Sample:
    """Share of positive cosines among pairs of one class."""
    shares = [float((c[same] > 0).double().mean()) for c, same in _pairs(evidence, setting)]
    return evidence.sample(setting, shares)


def left(
    evidence: Evidence, setting: str, radius: float, points: int | None = None
) -> Float[Tensor, " R"]:
    """Share of (the first) points that are right and not fooled within a radius."""
    smallest = evidence.attacked(setting).smallest[:, :points]
    return (smallest > radius).double().mean(1)


def cosines(evidence: Evidence, setting: str, images: int) -> tuple[Tensor, Tensor]:
    """Cosines of the first centred training images, sorted by class, and their classes."""
    run = evidence.run(setting)
    images = min(images, run.experiment.samples.train)
    kinds, order = run.train_batch.cluster[0, :images].sort(stable=True)
    x = normalize(run.train_batch.x[0, :images] - run.params["centre"][0], dim=1)[order]
    return x @ x.T, kinds


def _pairs(evidence: Evidence, setting: str) -> Iterator[tuple[Tensor, Tensor]]:
    """Cosines of all pairs of some images and whether they share a class, a replica at a time.

    Replicas see the same images, so these are the same numbers for each of them.
    """
    found, kinds = cosines(evidence, setting, PAIRS)
    upper = torch.ones_like(found, dtype=torch.bool).triu(1)
    # A class is what an image shows, whatever label it was given.
    same = (kinds.unsqueeze(0) == kinds.unsqueeze(1))[upper]
    for _ in range(evidence.run(setting).replicas):
        yield found[upper], same


def _last(evidence: Evidence, setting: str, column: str) -> Float[Tensor, " R"]:
    return evidence.run(setting).trace.columns[column][:, -1]
