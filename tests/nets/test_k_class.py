"""The fine-grained net, by hand."""

from __future__ import annotations

import math

import pytest
import torch

from lab import by_hand, still
from unmix.data.clusters import Clusters
from unmix.nets.k_class import KClass
from unmix.probes.activation import activation


def test_a_net_computed_by_hand() -> None:
    data = Clusters(k=2, d=2)
    w = torch.tensor([[1.0, 0.0], [3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    model = by_hand(KClass(h=2), data, w=w)
    x = torch.tensor([[[1.0, 2.0], [-1.0, -4.0]]]).double()
    assert model.outputs(x)[0].tolist() == [[2.0, 1.0], [0.0, 2.0]]
    assert model.decision(x)[0].tolist() == [1.0, -2.0]
    # One neuron a class: the larger class norm of each side.
    assert model.lipschitz.tolist() == [2.0 + 1.0]


def test_sides_of_several_classes_add_their_probabilities() -> None:
    data = Clusters(k=3, d=3, positive=(0, 1))
    model = by_hand(KClass(), data, w=torch.eye(3))
    x = torch.tensor([[[1.0, 2.0, 3.0]]]).double()
    wanted = math.log(math.exp(1) + math.exp(2)) - 3
    assert model.decision(x).item() == pytest.approx(wanted, rel=1e-14)


def test_labels_group_clusters_and_set_the_width() -> None:
    data = Clusters(k=6, d=8)
    net = KClass(h=3, labels=4)
    assert (net.neurons(data), KClass(h=3).neurons(data)) == (12, 18)
    readout = net.readout(data)
    assert tuple(readout.shape) == (12, 4)
    assert readout.sum(0).tolist() == pytest.approx([1.0] * 4)
    assert (readout > 0).sum(1).tolist() == [1] * 12
    assert net.init(data, (0,), torch.float64)["w"].shape == (1, 12, 8)
    batch = data.sample((0,), 30, "train")
    assert torch.equal(net.targets(data, batch), data.groups(4)[batch.cluster])


@pytest.mark.parametrize("labels", [None, 4])
def test_silent_neurons_are_drawn_again_and_no_others(labels: int | None) -> None:
    # Five points a cluster: a sixth of the neurons starts silent.
    data, seeds = Clusters(k=8, d=16, sizes="balanced"), tuple(range(10))
    kept, again = (
        still(KClass(h=3, labels=labels, silent=s), data, n=40, seeds=seeds)
        for s in ("keep", "redraw")
    )
    silent = activation(kept)["dead_neurons"].bool()
    assert silent.any()
    assert not activation(again)["dead_neurons"].any()
    changed = (kept.initial["w"] != again.initial["w"]).any(-1)
    assert torch.equal(changed, silent)
    assert torch.equal(again.params["w"], again.initial["w"])
    assert again.initial["w"][silent].std() == pytest.approx(1e-5, rel=0.2)


def test_drawing_again_leaves_other_seeds_alone() -> None:
    data, net = Clusters(k=8, d=16, sizes="balanced"), KClass(silent="redraw")
    many, one = (still(net, data, n=16, seeds=seeds).initial["w"] for seeds in ((0, 1, 2), (2,)))
    assert torch.equal(many[2:], one)
