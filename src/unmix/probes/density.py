"""How dense the perturbations are that fool a net (purification, section 5.1, Fig 7).

In the coordinates of the features, delta = M^T of an FGM perturbation:

    participation = |delta|_1^2 / (d |delta|_2^2)   (1: all coordinates alike, 1/d: one coordinate)
    on_support    = share of |delta|^2 on supp(z),     universal = cos(delta, -y M w*)
"""

from __future__ import annotations

import torch

from unmix.data.sparse_code import SparseCode
from unmix.experiment import Run
from unmix.perturbations.base import dense
from unmix.perturbations.gradient import FGM
from unmix.probes.base import Measured, on
from unmix.probes.coded import Coded


@on(SparseCode)
def density(run: Run) -> Measured:
    """Before (where there was adversarial training) and after."""
    values = _of(Coded.of(run), "")
    if "before" in run.trace.final:
        values |= _of(Coded.of(run, "before"), "_before")
    return Measured(values)


def _of(coded: Coded, suffix: str) -> dict[str, torch.Tensor]:
    x, y = coded.points()
    delta = FGM().perturb(coded.scene, x, y, 1.0)
    z = coded.data.codes(coded.seeds, y.shape[1], "test")[0].dense()
    # All of R^d, beyond D < d features, too.
    held = delta if coded.data.orthonormal else coded.reading.coordinates(delta)
    squares = held.square().sum(-1)
    moved = squares > 0
    w = torch.nn.functional.normalize(coded.reading.ahead, dim=-1)
    each = {
        "participation": held.abs().sum(-1).square() / coded.data.width / squares,
        "on_support": (held.square() * (z != 0)).sum(-1) / squares,
        "universal": -y * (delta @ w.unsqueeze(-1))[..., 0],
    }
    means = {name: _mean(v, moved) for name, v in each.items()}
    means["zeroed"] = 1 - moved.double().mean(1)
    means["active"] = coded.learner.activity(dense(x)).double().mean(1)
    return {f"{name}{suffix}": value for name, value in means.items()}


def _mean(values: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """Mean over the points that were moved."""
    kept = values.masked_fill(~chosen, 0).double()
    return kept.sum(1) / chosen.double().sum(1).clamp_min(1)
