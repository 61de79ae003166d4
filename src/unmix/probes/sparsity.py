"""Sparse reconstruction with a net's features (purification, section 8.3, Figs 4 and 12).

Lasso with the unit living neurons as dictionary: of inputs, with random, clean and robust features;
of the FGM perturbations of the clean and of the robust net, with the robust ones. `*_needs` is the
number of nonzeros at a relative squared error of 0.05, the median over the points.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from unmix.data.sparse_code import SparseCode
from unmix.experiment import Run
from unmix.perturbations.base import dense
from unmix.perturbations.gradient import FGM
from unmix.probes.base import Measured, on
from unmix.probes.coded import Coded
from unmix.probes.lasso import Path, lasso_path

POINTS, LEVEL = 24, 0.05


@on(SparseCode)
def sparsity(run: Run) -> Measured:
    """Of a run with an adversarial part; its start, its clean weights and its last ones."""
    paths: dict[str, list[Path]] = {}
    start, clean, robust = (Coded.of(run, name) for name in ("start", "before", "after"))
    x, y = robust.points(POINTS)
    inputs = dense(x)
    nets = {"clean": clean, "robust": robust}
    deltas = {name: FGM().perturb(net.scene, x, y, 1.0) for name, net in nets.items()}
    living = {"random": clean.alive(), "clean": clean.alive(), "robust": robust.alive()}
    for r in range(run.replicas):
        weights = {"random": start.w[r], "clean": clean.w[r], "robust": robust.w[r]}
        units = {name: normalize(u[living[name][r]], dim=-1) for name, u in weights.items()}
        for name, columns in units.items():
            paths.setdefault(f"inputs_{name}", []).append(lasso_path(inputs[r], columns))
        for name, delta in deltas.items():
            moved = delta[r][delta[r].norm(dim=-1) > 0]
            paths.setdefault(f"delta_{name}", []).append(lasso_path(moved, units["robust"]))
    values = {f"{name}_needs": _needs(each) for name, each in paths.items()}
    arrays = {}
    for name, each in paths.items():
        arrays[f"{name}_error"] = torch.stack([path.error.mean(1) for path in each])
        arrays[f"{name}_nonzeros"] = torch.stack([path.nonzeros.mean(1) for path in each])
    return Measured(values, arrays)


def _needs(paths: list[Path]) -> Tensor:
    return torch.stack([path.needed(LEVEL).double().median() for path in paths])
