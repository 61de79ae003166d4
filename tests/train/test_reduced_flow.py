"""The reduced flow: exact on exact centres, close on noisy ones, and lifted back correctly."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import normalize

from lab import unchecked_shapes
from small_runs import started
from unmix.data.clusters import Clusters
from unmix.errors import SpecError
from unmix.experiment import Experiment, Run, Samples
from unmix.experiment import run as train
from unmix.nets.prelu import PReLU
from unmix.probes.contributions import contributions
from unmix.train.base import Hooks
from unmix.train.flow import GradientFlow
from unmix.train.reduced_flow import ReducedFlow

EXACT = Clusters(k=4, d=15, scale="unit", sigma=0.0, positive=(0, 2, 3), cosine=0.1)
NOISY = Clusters(k=4, d=60, scale="unit", sigma=0.1, positive=(0, 2, 3))


def ran(training, data: Clusters, p: float = 3.0, n: int = 40, h: int = 30, **net) -> Run:
    made = PReLU(p=p, h=h, **({"sigma": 1e-5} | net))
    samples = Samples(train=n, test=10)
    with unchecked_shapes():
        return train(Experiment(data=data, net=made, train=training, samples=samples, seeds=(0, 1)))


@pytest.mark.parametrize("p", [1.0, 2.5, 3.0])
@pytest.mark.parametrize("initial", ["gaussian", "balanced"])
def test_on_exact_centres_it_is_the_flow(p: float, initial: str) -> None:
    # Both take the same steps but for rounding, which the growth of the weights amplifies.
    # At p = 1 neurons slide along the kinks of oblique centres, in thousands of steps: not here.
    data = EXACT if p > 1 else EXACT.model_copy(update={"cosine": 0.0})
    wanted = ran(GradientFlow(time=60.0), data, p, h=12, initial=initial)
    for noise in ("smoothed", "none") if p == int(p) else ("none",):
        found = ran(ReducedFlow(time=60.0, noise=noise), data, p, h=12, initial=initial)
        for name in ("w", "v"):
            torch.testing.assert_close(
                found.params[name], wanted.params[name], rtol=1e-7, atol=1e-9
            )
        assert torch.equal(found.trace.final["evaluations"], wanted.trace.final["evaluations"])
    assert wanted.trace.columns["loss"][:, -1].max() < 0.7


# Largest difference of a dominant contribution, and of all in the sum, measured at n = 4000: the
# sample's own noise is most of it.
@pytest.mark.parametrize(("p", "one", "all_of_them"), [(1.0, 0.15, 0.03), (3.0, 0.1, 0.03)])
def test_smoothing_stands_for_noise_within_its_measured_error(
    p: float, one: float, all_of_them: float
) -> None:
    wanted = contributions(ran(GradientFlow(time=2000.0, prune=1e-7), NOISY, p, n=4000))
    found = contributions(ran(ReducedFlow(time=2000.0), NOISY, p, n=4000))
    q0, q = wanted["q"], found["q"]
    dominant = q0.abs() > 0.01 * q0.abs().amax(1, keepdim=True)
    assert (found["dominant"] - wanted["dominant"]).abs().max() <= 1
    assert ((q - q0).abs() / q0.abs())[dominant].max() < one
    assert ((q - q0).abs().sum(1) < all_of_them * q0.abs().sum(1)).all()
    if p == 3:
        # All neurons of a subclass together: within 1 %.
        sums, wanted_sums = (
            torch.einsum("rm,rmk->rk", c["q"], (c["cosine"] > 0.9).double())
            for c in (found, wanted)
        )
        assert (sums / wanted_sums - 1).abs().max() < 0.01
    cosine = (found["cosine"] - wanted["cosine"])[dominant].abs().max()
    assert cosine < 0.02


def test_forgetting_the_noise_leaves_partial_means_at_p_1() -> None:
    smooth, sharp = (
        contributions(ran(ReducedFlow(time=2000.0, noise=noise), NOISY, 1.0, h=100))
        for noise in ("smoothed", "none")
    )
    assert (smooth["to_mean"] > 0.998).all()
    assert (sharp["to_mean"] < 0.995).all()


def test_what_lies_outside_the_centres_only_changes_length() -> None:
    run = ran(ReducedFlow(time=100.0), NOISY)
    mu = run.centres
    outside = [w - (w @ mu.transpose(1, 2)) @ mu for w in (run.initial["w"], run.params["w"])]
    before, after = (normalize(part, dim=-1) for part in outside)
    # Of an aligned neuron only rounding is left outside.
    some = outside[1].norm(dim=-1) > 1e-6 * run.params["w"].norm(dim=-1)
    assert some.double().mean() > 0.5
    cosine = (before * after).sum(-1)[some]
    torch.testing.assert_close(cosine, torch.ones_like(cosine))
    torch.testing.assert_close(
        run.params["v"] ** 2 - run.params["w"].square().sum(-1),
        run.initial["v"] ** 2 - run.initial["w"].square().sum(-1),
        rtol=0,
        atol=1e-12,
    )


def test_frequencies_are_the_samples_or_the_distributions() -> None:
    uneven = NOISY.model_copy(update={"weights": (0.4, 0.3, 0.2, 0.1), "sigma": 0.0})
    population = [
        ran(ReducedFlow(time=300.0, frequencies="population"), uneven, n=n) for n in (40, 80)
    ]
    assert torch.equal(population[0].params["w"], population[1].params["w"])
    sample = ran(ReducedFlow(time=300.0), uneven)
    assert not torch.allclose(sample.params["w"], population[0].params["w"], rtol=1e-3)
    # Margins grow with the frequency of a subclass.
    margin = [run.model.decision(run.centres).abs()[:, [0, 3]] for run in population]
    assert (margin[0][:, 0] > margin[0][:, 1] + 0.5).all()


def test_a_cluster_without_points_is_not_seen() -> None:
    data = EXACT.model_copy(update={"weights": (0.5, 0.5 - 2e-9, 1e-9, 1e-9)})
    run = ran(ReducedFlow(time=300.0), data)
    assert run.trace.columns["margin_min"][:, -1].min() > 1


def test_what_it_cannot_do_it_refuses() -> None:
    with pytest.raises(SpecError, match="whole power, the net has p=2") as caught:
        ran(ReducedFlow(), NOISY, 2.5)
    assert "train.noise=none" in caught.value.hint


def test_it_resumes_and_records_like_the_flow() -> None:
    net, batch = PReLU(h=30, sigma=1e-5), NOISY.sample((0, 1), 40, "train")
    start = net.init(NOISY, (0, 1), torch.float64)
    training, saved, asked = ReducedFlow(time=300.0, prune=1e-5), [], iter(range(10**6))
    hooks = Hooks(wants_checkpoint=lambda: next(asked) == 90, checkpoint=saved.append)
    params, trace = started(training, net, NOISY, start, batch).run(hooks)
    other = started(training, net, NOISY, start, batch)
    other.resume(saved[0])
    again, again_trace = other.run(Hooks())
    assert all(torch.equal(again[name], params[name]) for name in params)
    assert all(torch.equal(again_trace.columns[c], trace.columns[c]) for c in trace.columns)
    assert again_trace.stops == trace.stops
