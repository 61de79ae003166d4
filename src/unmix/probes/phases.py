"""The two phases of training from a small start, found in the trace (pReLU, section 4.1).

Alignment lasts while outputs are small: up to the first record at which the largest margin is 1
(a flow notes that time itself). Fitting is done where the loss has fallen to a tenth of its start.
"""

from __future__ import annotations

import torch
from torch import Tensor

from unmix.data.clusters import Clusters
from unmix.experiment import Run
from unmix.probes.base import Measured, on

ESCAPED, FITTED = 1.0, 0.1


@on(Clusters)
def phases(run: Run) -> Measured:
    """`escape` and `fitted` in steps or flow time (nan: not reached), and what they are of it."""
    trace = run.trace
    clock = torch.tensor(trace.times or trace.steps, dtype=torch.float64)
    loss, margin = trace.columns["loss"], trace.columns["margin_max"]
    escape = trace.final.get("escape_time")
    if escape is None:
        escape = _first(clock, margin >= ESCAPED)
    fitted = _first(clock, loss <= FITTED * loss[:, :1])
    last = clock[-1].clamp_min(1)
    values = {
        "escape": escape.double(),
        "fitted": fitted,
        "escape_share": escape / last,
        "fitting": fitted / escape,
    }
    return Measured({name: value.double() for name, value in values.items()})


def _first(clock: Tensor, met: Tensor) -> Tensor:
    """When each replica's condition is first met."""
    when = torch.where(met, clock, torch.inf).amin(1)
    return torch.where(when.isinf(), torch.nan, when)
