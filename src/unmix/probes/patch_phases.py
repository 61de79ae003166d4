"""The phases of a patch CNN's training, found in its trace, class by class.

    peak         step at which max_r B grows fastest
    saturation   first step after the peak at which B grows at less than a tenth of that
    takeoff      first step after the peak at which A grows faster than B
    crossing     first step after the peak from which A > B to the end

Steps are those of the record, and a phase that was not met is NaN. A may exceed B at the start,
which is why a crossing must be after the peak and last. `leak` is the clean loss minus the
adversarial one at the end: where it is large, the net reads the label from the perturbation.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from unmix.data.patches import Patches
from unmix.errors import DataError
from unmix.experiment import Run
from unmix.probes.base import Measured, on
from unmix.train.base import Trace

SATURATED = 0.1
PHASES = ("peak", "saturation", "takeoff", "crossing")


@on(Patches)
def patch_phases(run: Run) -> Measured:
    """Times [R k] of each phase, their means over classes, and the end of the losses."""
    if "A1" not in run.trace.columns:
        raise DataError("phases are found in the trace of a patch CNN", "train a patch-cnn net")
    times = phases(run.trace, run.data.k)
    values = {name: time.mean(1) for name, time in times.items()}
    columns = run.trace.columns
    values["loss"] = columns["loss"][:, -1].double()
    if "clean_loss" in columns:
        values["clean_loss"] = columns["clean_loss"][:, -1].double()
        values["leak"] = values["clean_loss"] - values["loss"]
    return Measured(values, {f"{name}s": time for name, time in times.items()})


def phases(trace: Trace, k: int) -> dict[str, Float[Tensor, "R k"]]:
    """Steps of each phase of each class."""
    steps = torch.tensor(trace.steps, dtype=torch.float64)
    a, b = (
        torch.stack([trace.columns[f"{name}{i + 1}"] for i in range(k)], 1).double()
        for name in "AB"
    )
    da, db = (x.diff(dim=-1) / steps.diff() for x in (a, b))
    peak = db.argmax(-1, keepdim=True)
    after = torch.arange(db.shape[-1]) > peak
    fastest = db.gather(-1, peak)
    lasting = (a > b).flip(-1).cumprod(-1).flip(-1).bool()
    return {
        "peak": steps[peak[..., 0]],
        "saturation": _first(after & (db < SATURATED * fastest), steps),
        "takeoff": _first(after & (da > db), steps),
        "crossing": _first(after & lasting[..., 1:], steps[1:]),
    }


def _first(found: Bool[Tensor, "R k T"], steps: Float[Tensor, " S"]) -> Float[Tensor, "R k"]:
    """The step of the first True, NaN where there is none."""
    at = steps[found.int().argmax(-1)]
    return torch.where(found.any(-1), at, torch.nan)
