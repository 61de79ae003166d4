"""The decision of trained nets in a plane through a centre, for a reader to explore."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import normalize

from unmix.experiment import Run
from unmix.papers.base import Evidence
from unmix.papers.story import Explorer, Plane

EXTENT, CELLS = 0.9, 61


def planes(evidence: Evidence, *settings: str) -> Explorer:
    """The plane through the first positive centre that holds the average direction (to the right)
    and the nearest opposite centre, for each setting and seed, beside its robust accuracy."""
    found = [plane for setting in settings for plane in _planes(evidence, setting)]
    attacked, run = evidence.attacked(settings[0]), evidence.run(settings[0])
    radii = tuple(round(radius / attacked.unit, 4) for radius in attacked.radii)
    k = run.data.k
    return Explorer(
        "How far can a point be moved?",
        f"Left: the plane through a positive centre that holds the average direction (to the "
        f"right) and an opposite centre; shaded where the trained net errs. Right: the share of "
        f"held-out points that no attack fools. Averaging fails at 1/√{k} = "
        f"{1 / math.sqrt(k):.3f}; nobody can do better than 1/√2 = 0.707.",
        "√d",
        (0.0, *radii),
        tuple(found),
    )


def _planes(evidence: Evidence, setting: str) -> list[Plane]:
    run, attacked = evidence.run(setting), evidence.attacked(setting)
    labels = 2 if run.experiment.net.classes(run.data) is None else run.data.k
    clean = run.model.accuracy(run.test_batch)
    robust = attacked.robust_accuracy()
    right = _right(run)
    return [
        Plane(
            f"{labels} labels",
            seed,
            EXTENT,
            tuple("".join("1" if cell else "0" for cell in row) for row in right[r].tolist()),
            tuple(round(float(v), 4) for v in (clean[r], *robust[r])),
        )
        for r, seed in enumerate(run.experiment.seeds)
    ]


def _right(run: Run) -> Tensor:
    """[R CELLS CELLS]: is the point classified as its centre is? Rows go from the top down."""
    data, mu = run.data, run.centres
    own, other = data.plus[0], data.minus[0]
    along = -normalize(torch.einsum("k,rkd->rd", data.signs.to(mu), mu), dim=-1)
    towards = mu[:, other] - mu[:, own]
    rest = towards - (towards * along).sum(-1, keepdim=True) * along
    across = normalize(rest, dim=-1)
    grid = torch.linspace(-EXTENT, EXTENT, CELLS, dtype=mu.dtype) * data.unit
    x = (
        data.alpha * mu[:, own, None, None]
        + grid[:, None] * along[:, None, None]
        + grid.flip(0)[:, None, None] * across[:, None, None]
    )
    return (run.model.predict(x.flatten(1, 2)) == data.signs[own]).unflatten(1, (CELLS, CELLS))
