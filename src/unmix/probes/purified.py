"""What adversarial training changed in each neuron (purification, Thm 5.3c, F.12, section 5.1).

    rel2 = sum |w_i - w'_i|^2 / sum |w_i|^2,   theta(w_i, w'_i),   |w' - w|^2 = own + along + rest

own: along the neuron's top feature; along: on the line of M w* off it, the dense direction; rest.
"""

from __future__ import annotations

from torch import Tensor

from unmix.data.sparse_code import SparseCode
from unmix.experiment import Run
from unmix.nets.mixture import Split, cosine, mean_over
from unmix.probes.base import Measured, on
from unmix.probes.coded import Coded


@on(SparseCode)
def purified(run: Run) -> Measured:
    """Size and direction of the change, over the neurons that were alive before it."""
    before, after = Coded.of(run, "before"), Coded.of(run)
    alive = before.alive()
    change, size = (after.w - before.w).square().sum(-1), before.w.square().sum(-1)
    split = Split.of(before.mixture, after.mixture)
    winners = alive & before.mixture.alone
    nu, nu_after = (mean_over(c.mixture.nu, winners) for c in (before, after))
    similar = cosine(before.w, after.w)
    values = {
        "rel2": change.sum(1) / size.sum(1),
        "theta": mean_over(similar, alive),
        "theta_above": mean_over((similar > 0.8).to(similar), alive),
        "own": _share(split.own, change, alive),
        "along": _share(split.along, change, alive),
        "rest": _share(split.rest, change, alive),
        "along_over_isotropic": _share(split.along, change, alive) * before.data.count,
        "nu_before": nu,
        "nu_after": nu_after,
        "nu_ratio": nu_after / nu,
    }
    return Measured({name: v.double() for name, v in values.items()}, {"theta_each": similar})


def _share(part: Tensor, whole: Tensor, chosen: Tensor) -> Tensor:
    """Part of the squared change of the chosen neurons."""
    weight = chosen.to(part)
    return (part * weight).sum(1) / (whole * weight).sum(1)
