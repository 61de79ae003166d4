"""Activation sets (Lemma 5.5, Prop A.12) and dead neurons.

A neuron is dead when no training point of its own label (class) activates it: its gradient towards
what it should learn is zero. At initialisation the active share of a cluster is uniform on (0, 1),
so a k-class neuron starts with none of its cluster's n/k points with probability 1/(n/k + 1).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from unmix.data.clusters import Clusters
from unmix.experiment import Run
from unmix.nets.base import Model
from unmix.probes.base import Measured, on


@on(Clusters)
def activation(run: Run) -> Measured:
    """Shares of active (point, neuron) pairs at the end and at t=0, first step with all own on."""
    own = _own(run)
    now, start = (_on(run, p) for p in (run.params, run.initial))
    per_cluster = _counts(start, run)
    dead = ((now * own).sum(1) == 0).to(now)
    values = {
        "own": _share(now, own),
        "off": _share(now, 1 - own),
        "all_on_from": _first_full(run),
        "dead": dead.mean(1),
        "dead_classes": _dead_classes(run.model, dead),
        "start_min_count": per_cluster.amin((1, 2)),
        "start_share_sd": (per_cluster / _sizes(run).unsqueeze(1)).std((1, 2)),
        "start_own_none": ((start * own).sum(1) == 0).to(now).mean(1),
    }
    return Measured(values, {"dead_neurons": dead, "start_counts": per_cluster})


def _on(run: Run, params: dict[str, Tensor]) -> Tensor:
    z = Model(run.experiment.net, run.data, params).preactivations(run.train_batch.x)
    return (z >= 0).to(z)


def _own(run: Run) -> Tensor:
    """[R n M]: 1 where the neuron stands for the point's label (binary) or class."""
    form, batch = run.model.form, run.train_batch
    return form.own(run.model.net.targets(run.data, batch)).to(batch.x)


def _counts(on: Tensor, run: Run) -> Tensor:
    """[R M k]: active points of each cluster (T_{s,r,j} of Def A.11)."""
    members = one_hot(run.train_batch.cluster, run.data.k).to(on)
    return on.transpose(1, 2) @ members


def _sizes(run: Run) -> Tensor:
    sizes = one_hot(run.train_batch.cluster, run.data.k).sum(1)
    return sizes.to(run.train_batch.x).clamp_min(1)


def _share(on: Tensor, pairs: Tensor) -> Tensor:
    return (on * pairs).sum((1, 2)) / pairs.sum((1, 2)).clamp_min(1)


def _first_full(run: Run) -> Tensor:
    """First recorded step from which every own pair stays active (nan if never, or for a flow)."""
    if "active_own" not in run.trace.columns:
        return torch.full((run.replicas,), torch.nan, dtype=torch.float64)
    active = run.trace.columns["active_own"] >= 1
    steps = torch.tensor(run.trace.steps, dtype=torch.float64)
    since = active.flip(1).cumprod(1).flip(1).bool()
    first = torch.where(since, steps, torch.inf).amin(1)
    return torch.where(first.isinf(), torch.nan, first)


def _dead_classes(model: Model, dead: Tensor) -> Tensor:
    """Number of classes (k-class nets) or labels (binary) all of whose neurons are dead."""
    form = model.form
    groups = (form.readout != 0).to(dead)
    if form.signs is None:
        groups = torch.stack([form.votes > 0, form.votes < 0], -1).to(dead)
    silent = (dead.unsqueeze(1) @ groups).squeeze(1)
    return (silent == groups.sum(1)).to(dead).sum(1)
