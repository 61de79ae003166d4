"""Merged and pruned nets: their brackets are those of the whole net."""

from __future__ import annotations

import pytest
import torch
from small_nets import question

from unmix import certificate
from unmix.certify.base import EXACT, Question
from unmix.certify.exact import ExactL2
from unmix.certify.margins import margins
from unmix.certify.merged import Crowd, MergedL2, rescaled
from unmix.data.clusters import Clusters
from unmix.experiment import Experiment, Samples, run
from unmix.nets.activations import (
    Activation,
    GaussianRelu,
    LeakyRelu,
    Power,
    Relu,
    SmoothedRelu,
)
from unmix.nets.form import Form
from unmix.nets.two_layer import TwoLayer
from unmix.train.descent import GradientDescent

CURVES: list[Activation] = [
    Relu(),
    LeakyRelu(0.1),
    Power(3.0),
    SmoothedRelu(q=3.0, rho=0.7),
    GaussianRelu(0.3),
]


def crowded(seed: int, activation: Activation, outputs: int = 1, apart: float = 1e-3) -> Question:
    """Every neuron three times, a little apart, among ten quiet ones; labels are the net's own."""
    base = question(seed, activation, outputs=outputs, d=3)
    made = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=made, dtype=torch.float64)

    form, M = base.form, base.form.w.shape[1]
    w = form.w.repeat(1, 3, 1) + apart * normal(1, 3 * M, 3)
    w, b = torch.cat([w, normal(1, 10, 3)], 1), torch.cat([form.b.repeat(1, 3), normal(1, 10)], 1)
    a = torch.cat([form.readout.repeat(1, 3, 1), 1e-5 * normal(1, 10, outputs)], 1)
    wide = Form(w, b, a, activation)
    if outputs > 1:
        y = wide.outputs(wide.preactivations(base.x)).argmax(-1)
    else:
        y = torch.where(wide.decision(base.x) > 0, 1.0, -1.0).double()
    return Question(wide, base.x, y)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("activation", CURVES, ids=repr)
def test_its_bracket_meets_the_whole_nets(activation: Activation) -> None:
    shares = []
    for seed in range(3):
        asked = crowded(seed, activation, outputs=1 + seed % 2)
        found, whole = MergedL2(nodes=300).answer(asked), ExactL2(tol=1e-2, nodes=300).answer(asked)
        assert (found.lower <= whole.upper * (1 + 1e-9)).all(), seed
        assert (found.upper >= whole.lower * (1 - 1e-9)).all(), seed
        near = (whole.status == EXACT) & (whole.upper < 100) & (whole.upper > 1e-3)
        shares += (found.lower / whole.upper)[near].tolist()
    assert max(shares) > 0.97


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("activation", CURVES, ids=repr)
@pytest.mark.parametrize("angle", [0.5, 0.2])
def test_the_small_net_lies_below_the_whole_within_the_ball(
    activation: Activation, angle: float
) -> None:
    made = torch.Generator().manual_seed(0)
    fewer = 0
    for seed in range(10):
        asked = crowded(seed, activation, apart=0.1)
        for margin in margins(asked, 0):
            x = asked.x[0, margin.points]
            rho = torch.rand(len(x), generator=made, dtype=torch.float64)
            crowd = Crowd.of(rescaled(margin), x, rho, 1e-2, angle)
            fewer += crowd.merges
            for i, (point, ball) in enumerate(zip(x, rho, strict=True)):
                small = crowd.small(point, float(ball), i)
                step = torch.randn(300, len(point), generator=made, dtype=torch.float64)
                moved = point + step / step.norm(dim=-1, keepdim=True) * ball
                whole, less = (m.value(moved @ m.w.T + m.b) for m in (margin, small))
                right = margin.value(margin.w @ point + margin.b) > 0
                assert not right or (less <= whole + 1e-12).all(), seed
    assert fewer > 5


@pytest.mark.usefixtures("unchecked")
def test_a_wide_averaging_net_closes() -> None:
    made = run(
        Experiment(
            data=Clusters(k=4, d=256),
            net=TwoLayer(m=100),
            train=GradientDescent(eta=1e-2, steps=100),
            samples=Samples(train=100, test=5),
            seeds=(0,),
        )
    )
    found = certificate(made)
    assert found.method == "merged-l2"
    assert found.closed.all()
    assert found.mean_radius().item() > 0.2
