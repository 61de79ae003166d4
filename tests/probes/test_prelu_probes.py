"""Probes for pReLU nets beside plain references: Algorithm 1, the alignment field, invariants."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn.functional import normalize

from lab import still
from unmix.data.clusters import Clusters
from unmix.experiment import Experiment, Run, Samples
from unmix.experiment import run as train
from unmix.nets.prelu import PReLU
from unmix.nets.prelu_constructed import PReLUAveraging, PReLUSubclasses
from unmix.probes.alignment_field import alignment_field
from unmix.probes.invariants import invariants
from unmix.probes.phases import phases
from unmix.probes.reference_distance import Search, crossing, estimate, reference_distance
from unmix.probes.spectrum import stable_rank
from unmix.train.base import Trace
from unmix.train.flow import GradientFlow
from unmix.train.reduced_flow import ReducedFlow

DATA = Clusters(k=4, d=20, sigma=0.1, scale="unit", positive=(0, 1, 2))


def drawn(p: float, scale: float = 1.0, loss: str = "exponential", reduction: str = "sum") -> Run:
    """A random net, not trained, that says what it would be trained by."""
    experiment = Experiment(
        data=DATA,
        net=PReLU(p=p, h=7, initial="balanced", sigma=scale),
        train=GradientFlow(time=1e-9, loss=loss, reduction=reduction),
        samples=Samples(train=12, test=8),
        seeds=(0, 1),
    )
    return train(experiment)


@pytest.mark.parametrize("net", [PReLUAveraging(), PReLUSubclasses(p=3), PReLUSubclasses(p=2.5)])
def test_a_reference_has_no_distance_to_itself_at_any_scale(net) -> None:
    run = still(net, DATA, seeds=(0, 1))
    for scale in (1.0, 30.0):
        moved = replace(run, params={n: scale * t for n, t in run.params.items()})
        probe = reference_distance(moved)
        assert float(probe["scale"].max()) == pytest.approx(scale**-2, rel=1e-9)
        for name in ("distance", "best", "lower"):
            assert float(probe[name].max()) < 1e-12
        # The angle of parallel directions is known to the root of the rounding.
        assert float(probe["upper"].max()) < 1e-6


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_bounds_enclose_what_is_searched(p: float) -> None:
    run = drawn(p)
    probe = reference_distance(run)
    assert (probe["lower"] <= probe["best"] + 1e-12).all()
    assert (probe["best"] <= probe["distance"] + 1e-9).all()
    assert (probe["distance"] <= probe["upper"] + 1e-9).all()


def test_the_other_reference_is_far() -> None:
    run = still(PReLUSubclasses(p=3), DATA, seeds=(0, 1))
    assert (estimate(run, PReLUAveraging()).searched > 0.5).all()


def test_the_texts_search_finds_no_more_than_the_default() -> None:
    run = drawn(1.0)
    text = estimate(run, PReLUAveraging(), Search(starts="sphere", random=20, steps=100))
    assert (text.searched <= estimate(run, PReLUAveraging()).searched * 1.02).all()


def test_two_lines_decide_the_best_scale() -> None:
    made = torch.Generator().manual_seed(0)
    a, b = torch.randn(2, 3, 9, generator=made, dtype=torch.float64)
    scales = torch.linspace(-20, 20, 400_001, dtype=torch.float64)
    for r in range(3):
        worst = (scales[:, None] * a[r] - b[r]).abs().amax(1)
        assert float(crossing(a, b)[r]) == pytest.approx(float(worst.min()), rel=1e-3)


@pytest.mark.parametrize(("loss", "half"), [("exponential", 1.0), ("logistic", 0.5)])
@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_lemma_1s_error_is_that_of_the_gradient(p, reduction, loss, half) -> None:
    run = drawn(p, 0.3, loss, reduction)
    batch, found = run.train_batch, alignment_field(run)
    w, v = (run.params[n].clone().requires_grad_() for n in ("w", "v"))
    z = batch.x @ w.transpose(1, 2)
    f = ((z.relu() ** p / w.norm(dim=-1)[:, None] ** (p - 1)) * v[:, None]).sum(-1)
    q = batch.y * f
    each = torch.exp(-q) if loss == "exponential" else torch.log1p(torch.exp(-q))
    total = each.sum() if reduction == "sum" else each.mean(1).sum()
    (slope,) = torch.autograd.grad(total, w)
    u = normalize(w.detach(), dim=-1)
    turning = -slope / w.detach().norm(dim=-1, keepdim=True)
    turning = turning - (turning * u).sum(-1, keepdim=True) * u
    c = (batch.x @ u.transpose(1, 2)).relu()
    inner = (c > 0).double() if p == 1 else c ** (p - 1)
    field = p * torch.einsum("rn,rnh,rnd->rhd", batch.y, inner, batch.x)
    field = field / (1 if reduction == "sum" else batch.points)
    field = (field - (field * u).sum(-1, keepdim=True) * u) * v.detach().sign().unsqueeze(-1)
    for name, target in (("error", field), ("error_scaled", half * field)):
        wanted = (turning - target).norm(dim=-1).amax(1)
        torch.testing.assert_close(found[name], wanted, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(found["output"], f.detach().abs().amax(1), rtol=1e-9, atol=1e-12)


def test_constructed_neurons_are_extremal() -> None:
    exact = DATA.override("sigma=0.0", "sizes=balanced")
    probe = alignment_field(still(PReLUSubclasses(p=3), exact, n=4, seeds=(0, 1)))
    torch.testing.assert_close(probe["extremal"], torch.ones(2, dtype=torch.float64))


def test_the_flow_keeps_the_balance_and_the_degree_is_two() -> None:
    longer = ("samples.train=40", "train.time=60.0", "train.reduction=mean")
    trained = train(drawn(3.0, 1e-4).experiment.with_(*longer))
    probe = invariants(trained)
    assert (probe["balance_drift"] < 1e-12).all()
    assert (probe["flipped"] == 0).all()
    assert ((probe["degree"] - 2).abs() < 1e-12).all()
    bent = replace(trained, params=trained.params | {"v": -1.5 * trained.params["v"]})
    probe = invariants(bent)
    assert (probe["flipped"] == 1).all()
    assert (probe["balance_drift"] > 0.1).all()


def test_phases_are_read_off_the_records() -> None:
    run = drawn(3.0)
    columns = {
        "loss": torch.tensor([[1.0, 0.9, 0.2, 0.05], [1.0, 1.0, 1.0, 1.0]]).double(),
        "margin_max": torch.tensor([[0.0, 0.1, 1.5, 3.0], [0.0, 0.1, 0.2, 0.3]]).double(),
    }
    trace = Trace((0, 5, 10, 20), columns, run.trace.stops)
    probe = phases(replace(run, trace=trace))
    assert probe["escape"][0] == 10
    assert probe["fitted"][0] == 20
    assert probe["escape_share"][0] == 0.5
    assert probe["fitting"][0] == 2
    assert probe["escape"][1].isnan()


def test_stable_ranks() -> None:
    eye, one = torch.eye(6)[None], torch.ones(1, 5, 9)
    assert float(stable_rank(eye)) == pytest.approx(6)
    assert float(stable_rank(one)) == pytest.approx(1)
    a = torch.randn(2, 8, 5, generator=torch.Generator().manual_seed(0)).double()
    wanted = a.square().sum((1, 2)) / torch.linalg.matrix_norm(a, 2).square()
    torch.testing.assert_close(stable_rank(a), wanted)


def test_a_step_that_overflows_is_taken_again() -> None:
    """p = 6 creeps for long and then grows within one of the steps that were long before."""
    experiment = Experiment(
        data=Clusters(k=4, d=60, sigma=0.1, scale="unit"),
        net=PReLU(p=6, h=40, initial="balanced", sigma=1e-6),
        train=ReducedFlow(time=30_000.0),
        samples=Samples(train=100, test=4),
        dtype="float32",
    )
    run = train(experiment)
    assert run.trace.stops[0].reason == "time"
    assert float(run.trace.columns["accuracy"][0, -1]) > 0.4
