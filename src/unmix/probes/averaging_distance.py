"""Distance of a binary net to the nearest multiple of f_FA on the sphere (Thm 4.6).

    inf_C sup_{|x| = |mu|} |C f_FA(x) - f(x)|

The supremum is searched by projected gradient ascent from many starts inside span(W, mu), which is
all that both functions see; the value is therefore a lower bound of the supremum. The triangle
inequality with C = lambda/|mu|^2 (proof of Thm B.27) gives the upper bound `bound`.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from unmix.data.clusters import Clusters
from unmix.errors import DataError
from unmix.experiment import Run
from unmix.probes.base import Measured, on
from unmix.probes.weight_error import weight_error

SCALES = torch.linspace(0.85, 1.15, 13)
STARTS, STEPS = 64, 200


@on(Clusters)
def averaging_distance(run: Run) -> Measured:
    """`distance` (searched), `bound` (proved) and `size` = sup |C f_FA|, all at the best C."""
    if run.model.class_signs is not None:
        raise DataError("Thm 4.6 speaks of a binary net", "--set net.kind=two-layer")
    level = weight_error(run)["lambda"]
    best = torch.full_like(level, torch.inf)
    for scale in SCALES.tolist():
        best = torch.minimum(best, _sup(run, level * scale))
    size = level * max(len(run.data.plus), len(run.data.minus)) ** 0.5
    return Measured({"distance": best, "bound": _bound(run, level), "size": size})


def _sup(run: Run, level: Float[Tensor, " R"]) -> Float[Tensor, " R"]:
    """Largest |level/|mu|^2 f_FA - f| found on the sphere, in coordinates of span(W, mu)."""
    basis = torch.linalg.qr(torch.cat([run.params["w"], run.centres], 1).transpose(1, 2)).Q
    w, b = run.params["w"] @ basis, run.model.b.unsqueeze(1)
    mu = run.centres @ basis
    sides = torch.stack([mu[:, list(s)].sum(1) for s in (run.data.plus, run.data.minus)], 1)
    sides = level.reshape(-1, 1, 1) / run.data.unit**2 * sides
    readout = run.model.readout[:, 0]
    v = normalize(_starts(w, sides), dim=-1)
    for step in range(STEPS):
        x = run.data.unit * v
        z, a = x @ w.transpose(1, 2) + b, x @ sides.transpose(1, 2)
        sign = torch.tensor([1.0, -1.0], dtype=w.dtype)
        gap = a.relu() @ sign - z.relu() @ readout
        slope = ((a > 0) * sign) @ sides - ((z > 0) * readout) @ w
        ascent = normalize(slope * gap.sign().unsqueeze(-1), dim=-1)
        v = normalize(v + 0.5 * (1 - step / STEPS) * ascent, dim=-1)
    return gap.abs().amax(1)


def _starts(w: Tensor, sides: Tensor) -> Float[Tensor, "R S r"]:
    """All neurons, both averages, their negatives, and a fixed low-discrepancy spread."""
    spread = torch.sin(
        torch.arange(1, STARTS + 1, dtype=w.dtype)[:, None]
        * torch.arange(1, w.shape[2] + 1, dtype=w.dtype).sqrt()
        * 7
    )
    ends = torch.cat([w, sides], 1)
    return torch.cat([ends, -ends, spread.expand(w.shape[0], -1, -1)], 1)


def _bound(run: Run, level: Tensor) -> Float[Tensor, " R"]:
    """sum over both sides of mean_r |mu| |w_r - lambda sum mu/|mu|^2| + mean |b|."""
    signs = run.model.neuron_signs
    total = torch.zeros_like(level)
    for sign, side in ((1, run.data.plus), (-1, run.data.minus)):
        target = level.unsqueeze(1) * run.centres[:, list(side)].sum(1) / run.data.unit**2
        gaps = (run.params["w"][:, signs == sign] - target.unsqueeze(1)).norm(dim=-1)
        total += run.data.unit * gaps.mean(1) + run.model.b[:, signs == sign].abs().mean(1)
    return total
