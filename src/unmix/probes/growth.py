"""The race of the features in a neuron (purification, Lemmas C.8 to C.10, C.16, C.18, C.22).

    growth_ij = D E[y (1[<w_i,x> + rho >= b] + 1[-<w_i,x> + rho >= b]) z_j]

at the start: Theta(1) for sure neurons on their feature, small for neurons without a ticket, and so
with l' at the end (C.16). For a winner of a trained net the pull of its own feature,
E[y l' (1 + 1) z_j], does not depend on the neuron (C.18): it equals E[y l' z_j].
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from unmix.data.sparse_code import SparseCode
from unmix.data.sparse_rows import SparseRows
from unmix.experiment import Run
from unmix.nets.mixture import Mixture, mean_over
from unmix.probes.base import Measured, on
from unmix.probes.coded import Coded
from unmix.probes.tickets import tickets
from unmix.train.losses import pull

# Points for the means over the distribution.
BATCH, BATCHES = 4000, 5


@on(SparseCode)
def growth(run: Run) -> Measured:
    """Lucky and unlucky neurons at the start; coupling and mean l' of the trained net."""
    sure = tickets(run).arrays["sure_each"]
    start, coded = Coded.of(run, "start"), Coded.of(run)
    own, others = _at_start(start)
    trained, others_after, whole = _at_end(coded)
    parts, alive = coded.mixture, coded.alive()
    reach = 2 * coded.data.k**0.5 * coded.params["b"].reshape(-1, 1)
    coupled = alive & (parts.peak.abs() >= reach)
    ratio = trained / whole.gather(1, parts.top)
    x, y = coded.points()
    values = {
        "lucky": coded.data.count * mean_over(own, sure),
        "unlucky": coded.data.count * others,
        "unlucky_after": coded.data.count * others_after,
        "coupling": _median(ratio, coupled),
        "coupling_sd": _spread(ratio, coupled),
        "coupled": coupled.double().mean(1) * coupled.shape[1] / coded.data.count,
        "pull": pull(y * coded.learner.outputs(x), "logistic").mean(1),
    }
    return Measured({name: v.double() for name, v in values.items()})


def _at_start(coded: Coded) -> tuple[Tensor, Tensor]:
    """E[y (1 + 1) z_j] at each neuron's top, with the label's sign; its mean size elsewhere."""
    parts, table = coded.mixture, torch.zeros_like(coded.u)
    for z, y in _batches(coded):
        table += _response(coded, z, y)
    own = _at(table, parts.top) * coded.label_vector.gather(1, parts.top).sign()
    return own, _elsewhere(table, parts)


def _at_end(coded: Coded) -> tuple[Tensor, Tensor, Tensor]:
    """E[y l' (1 + 1) z_j] at each neuron's top, its mean size elsewhere, and E[y l' z_j]."""
    table, whole = torch.zeros_like(coded.u), torch.zeros_like(coded.label_vector)
    for z, y in _batches(coded):
        weight = y * pull(y * coded.reader.outputs(z), "logistic")
        table += _response(coded, z, weight)
        codes = z.dense()[..., : coded.data.count]
        whole += (weight.unsqueeze(1) @ codes)[:, 0] / (BATCH * BATCHES)
    parts = coded.mixture
    return _at(table, parts.top), _elsewhere(table, parts), whole


def _response(coded: Coded, z: SparseRows, weight: Tensor) -> Tensor:
    """A batch's part of E[weight (1 + 1) z_j]."""
    return coded.reader.response(z, weight)[..., : coded.data.count] / BATCHES


def _elsewhere(table: Tensor, parts: Mixture) -> Tensor:
    """Mean size off the large coordinates of each neuron."""
    others = ~parts.large
    return (table.abs() * others).sum((1, 2)) / others.sum((1, 2))


def _batches(coded: Coded) -> Iterator[tuple[SparseRows, Tensor]]:
    """Fresh codes without noise, whose part of x has mean 0 against z_j."""
    for turn in range(BATCHES):
        yield coded.data.codes(coded.seeds, BATCH, f"probe.growth.{turn}", coded.u.dtype)


def _at(table: Tensor, index: Tensor) -> Tensor:
    return table.gather(-1, index.unsqueeze(-1))[..., 0]


def _median(values: Tensor, chosen: Tensor) -> Tensor:
    return _each(values, chosen, lambda row: row.median())


def _spread(values: Tensor, chosen: Tensor) -> Tensor:
    return _each(values, chosen, lambda row: row.std(correction=0))


def _each(values: Tensor, chosen: Tensor, of: Callable[[Tensor], Tensor]) -> Tensor:
    """A statistic of the chosen neurons of each replica; NaN where there are none."""
    none = values.new_full((), torch.nan)
    rows = zip(values, chosen, strict=True)
    return torch.stack([of(row[mask]) if mask.any() else none for row, mask in rows])
