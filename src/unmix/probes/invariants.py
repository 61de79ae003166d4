"""What training must not change, and how a net scales (pReLU, sections 2 and 4.2).

    v_j^2 - |w_j|^2 is constant along gradient flow,      f(x; g theta) = g^2 f(x; theta)

and under a balanced start sign(v_j) is, too. A frozen second layer keeps none of the first two.
"""

from __future__ import annotations

import torch
from torch import Tensor

from unmix.data.clusters import Clusters
from unmix.experiment import Run
from unmix.nets.base import Model, Params
from unmix.probes.base import Measured, on

POINTS = 20


@on(Clusters)
def invariants(run: Run) -> Measured:
    """Drift of the balance against the largest neuron, degree in the parameters, flipped signs."""
    before, after = _sizes(run, run.initial), _sizes(run, run.params)
    (v0, w0), (v1, w1) = before, after
    largest = (v1.square().sum(-1) + w1.square()).amax(1)
    gap = v1.square().sum(-1) - w1.square() - (v0.square().sum(-1) - w0.square())
    values = {
        "balance_drift": gap.abs().amax(1) / largest,
        "degree": _degree(run),
        "flipped": (v1.sign() != v0.sign()).any(-1).double().mean(1),
    }
    return Measured(values)


def _sizes(run: Run, params: Params) -> tuple[Tensor, Tensor]:
    """v_j [R h C] and |w_j| [R h]."""
    length = params["w"].double().norm(dim=-1)
    if "v" in params:
        return params["v"].double().unsqueeze(-1), length
    return run.model.readout.double().expand(*length.shape, -1), length


def _degree(run: Run) -> Tensor:
    """log2 of f(x; 2 theta)/f(x; theta), the median over points."""
    model, x = run.model.double(), run.fresh(min(POINTS, run.experiment.samples.test)).x.double()
    twice = Model(model.net, model.data, {name: 2 * t for name, t in model.params.items()})
    ratio = (twice.decision(x) / model.decision(x)).abs()
    # Where no neuron is active f is 0 and has no ratio.
    return torch.log2(ratio).nanmedian(1).values
