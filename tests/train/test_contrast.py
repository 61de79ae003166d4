"""Learners of low complexity: their values by hand, their training beside torch's own Adam."""

from __future__ import annotations

import math

import pytest
import torch

from small_runs import started
from unmix.data.sparse_code import SparseCode
from unmix.errors import SpecError
from unmix.experiment import Experiment, Samples, run
from unmix.nets.contrast import CodeLinear, CodePolynomial, CodeTangent, Contrast
from unmix.nets.symmetric import Symmetric
from unmix.perturbations.base import descending
from unmix.train.base import Checkpoint, Hooks, Record
from unmix.train.contrast import ContrastDescent

CODE = SparseCode(d=12, k=4.0)
NETS = [CodeLinear(), CodePolynomial(q=9), CodeTangent(m=20), CodeTangent(m=20, sign="minus")]
nets = pytest.mark.parametrize("net", NETS, ids=["linear", "polynomial", "tangent", "printed"])


def experiment(net: Contrast, *changes: str) -> Experiment:
    train = ContrastDescent(steps=12, batch=30, record=Record(points=4))
    start = Experiment(
        data=CODE, net=net, train=train, samples=Samples(train=1, test=20), seeds=(3, 1)
    )
    return start.with_(*changes)


@nets
@pytest.mark.parametrize("tau", [0.0, 0.1])
def test_training_equals_torchs_adam(net: Contrast, tau: float) -> None:
    e = experiment(net, f"train.tau={tau}", "data.basis=haar")
    done = run(e)
    for r, seed in enumerate(e.seeds):
        start = net.start(e.data, (seed,), e.data.sample((seed,), 1, "train"))
        params = {name: value.clone() for name, value in start.items()}
        moving = {name: params[name].requires_grad_() for name in net.learned}
        adam = torch.optim.Adam(moving.values(), lr=e.train.eta)
        for step in range(12):
            batch = e.data.sample((seed,), 30, f"train.step.{step}")
            x = batch.x
            if tau:
                at = x.clone().requires_grad_()
                (g,) = torch.autograd.grad(net.value(params, at).sum(), at)
                x = x + tau * descending(g, batch.y, "l2", 1e-6)
            adam.zero_grad()
            margin = batch.y * net.value(params, x)
            torch.nn.functional.softplus(-margin).mean().backward()
            adam.step()
        for name, value in moving.items():
            torch.testing.assert_close(done.params[name][[r]], value.detach())


@nets
def test_values_are_those_of_the_formulas(net: Contrast) -> None:
    made = torch.Generator().manual_seed(0)
    start = net.start(CODE, (0,), CODE.sample((0,), 1, "train"))
    params = {n: torch.randn(p.shape, generator=made).double() for n, p in start.items()}
    x = torch.randn(12, generator=made).double()
    p = float(net.value(params, x.reshape(1, 1, -1)))
    one = {n: value[0] for n, value in params.items()}
    if isinstance(net, CodeLinear):
        assert p == pytest.approx(float(one["v"] @ x))
    elif isinstance(net, CodePolynomial):
        assert p == pytest.approx(float(one["a"] @ x + ((one["u"] @ x) ** 3).sum()))
    else:
        assert isinstance(net, CodeTangent)
        total, sign = 0.0, 1 if net.sign == "plus" else -1
        for v, w in zip(one["v"], one["w"], strict=True):
            sides = [
                0.5 * math.erfc(-(s * float(w @ x) - net.b) / net.sigma / math.sqrt(2))
                for s in (1, -1)
            ]
            total += float(v @ x) * (sides[0] + sign * sides[1])
        assert p == pytest.approx(total)
    mirrored = float(net.value(params, -x.reshape(1, 1, -1)))
    even = isinstance(net, CodeTangent) and net.sign == "minus"
    assert mirrored == pytest.approx(p if even else -p)


@nets
def test_targets_pull_the_true_gradient(net: Contrast) -> None:
    made = run(experiment(net, "seeds=[3]"))
    target = made.classifier.double().target()
    x = CODE.sample((0,), 6, "test").x[0]
    at = x.clone().requires_grad_()
    f = made.classifier.double().decision(at[None])[0]
    (wanted,) = torch.autograd.grad(f.sum(), at)

    def lowered(scores: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return scores[:, 1], torch.tensor([-1.0, 1.0]).double().expand_as(scores)

    scores, _, gradient = target.pull(x, lowered)
    torch.testing.assert_close(scores[:, 1] - scores[:, 0], f.detach())
    torch.testing.assert_close(gradient, wanted)


def test_a_training_goes_on_from_a_checkpoint_bit_for_bit() -> None:
    e, kept = experiment(CodePolynomial(q=9), "train.tau=0.1"), list[Checkpoint]()
    whole = run(e)
    batch = e.data.sample(e.seeds, 1, "train")
    params = e.net.start(e.data, e.seeds, batch)

    def walk():
        return started(e.train, e.net, e.data, dict(params), batch, e.seeds)

    seen = iter(range(100))
    walk().run(Hooks(wants_checkpoint=lambda: next(seen) == 7, checkpoint=kept.append))
    again = walk()
    again.resume(kept[0])
    found, trace = again.run(Hooks())
    assert all(torch.equal(found[n], whole.params[n]) for n in found)
    assert all(torch.equal(trace.columns[n], whole.trace.columns[n]) for n in trace.columns)


def test_replicas_share_nothing() -> None:
    e = experiment(CodeTangent(m=20))
    torch.testing.assert_close(run(e).params["v"][1:], run(e.with_("seeds=[1]")).params["v"])


def test_only_such_learners_are_trained_so() -> None:
    with pytest.raises(SpecError, match="cannot train a 'symmetric' net"):
        Experiment(data=CODE, net=Symmetric(), train=ContrastDescent())
