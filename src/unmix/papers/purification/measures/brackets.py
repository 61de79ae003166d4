"""Radii of the symmetric net that are proved, and the best that a net could have.

Both stand beside the attacks in the table across papers.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from unmix.certify.base import Certificate, Question
from unmix.certify.bounds import Interval
from unmix.data.sparse_code import SparseCode
from unmix.errors import DataError
from unmix.experiment import Run
from unmix.nets.symmetric import SymmetricModel
from unmix.papers.base import Evidence
from unmix.papers.purification.measures.robust import attacked_run
from unmix.papers.standing import Best

# Radii below this are those of points on the decision surface.
SURFACE = 1e-12


def best(evidence: Evidence, setting: str) -> Best:
    """Half-way to a nearby code of the other label, where features are orthonormal."""
    run, norm = evidence.run(setting), evidence.attacked(setting).threat.norm
    if norm != "l2" or not run.data.orthonormal:
        raise DataError("none is known beyond l2 and orthonormal features")
    radii = halfway_radii(run, _points(evidence, setting))
    return Best(radii.mean(1), "half-way to a code of the other label, in l2")


def halfway_radii(run: Run, points: int) -> Float[Tensor, "R n"]:
    """sqrt(m/k)/2, where m steps of length 1/sqrt k in z turn the label: a small entry for the
    label is taken away, or one against it put where there is none, the largest |w*_j| first.

    A classifier that is right on both codes has at most this radius at one of them.
    """
    data: SparseCode = run.data
    z, y = data.codes(run.experiment.seeds, points, "test")
    w = data.label_vector(run.experiment.seeds).unsqueeze(1)
    codes, small = z.dense(), data.k**-0.5
    helps = codes * (w * y.unsqueeze(-1)).sign()
    movable = (codes == 0) | torch.isclose(helps, codes.new_tensor(small))
    gains = (movable * w.abs() * small).sort(-1, descending=True).values.cumsum(-1)
    score = (codes * w).sum(-1).abs().unsqueeze(-1)
    steps = (gains <= score).sum(-1) + 1
    return (steps.to(w) / data.k).sqrt() / 2


def certified(evidence: Evidence, setting: str) -> Certificate:
    """Interval bounds of the net as 2m smoothed neurons, on the attacked points.

    A point on the decision surface, such as x = 0, has radius 0, whatever rounding says.
    """
    run = evidence.run(setting)
    batch = run.fresh(_points(evidence, setting))
    net = attacked_run(evidence, setting).classifier
    if not isinstance(net, SymmetricModel):
        raise DataError("this certificate is for symmetric nets")
    found = Interval().answer(Question(net.double().form, batch.x.double(), batch.y.double()))
    return replace(found, lower=found.lower.where(found.lower > SURFACE, 0.0))


def _points(evidence: Evidence, setting: str) -> int:
    return int(evidence.attacked(setting).smallest.shape[1])
