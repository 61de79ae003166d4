"""Algorithms 1 and 2: beside plain autograd in input space, their phases, stops and resumption."""

from __future__ import annotations

import pytest
import torch

from small_runs import small_purified, started
from unmix.data.clusters import Clusters
from unmix.data.sparse_code import SparseCode
from unmix.errors import SpecError
from unmix.experiment import Experiment, Run, Samples, run
from unmix.nets.symmetric import Symmetric
from unmix.nets.two_layer import TwoLayer
from unmix.perturbations.base import descending
from unmix.probes.base import probe
from unmix.streams import normals
from unmix.train.base import Checkpoint, Hooks, Record
from unmix.train.engines.symmetric import Schedule
from unmix.train.engines.symmetric_reference import SymmetricReference
from unmix.train.noisy_descent import NoisyDescent
from unmix.train.purification import Purification
from unmix.train.walk import Phase

CLEAN = NoisyDescent(
    eta=2.0,
    steps=6,
    batch=30,
    opening=2,
    opening_eta=1.0,
    opening_batch=50,
    schedule=Schedule(b_max=0.25, growth=0.3, decay=0.01),
    record=Record(points=3),
)


def experiment(train: NoisyDescent | Purification, **data: object) -> Experiment:
    return Experiment(
        data=SparseCode(d=16, k=4.0, **data),
        net=Symmetric(m=40, b=0.2),
        train=train,
        samples=Samples(train=40, test=20),
        seeds=(3, 1),
    )


def by_hand(e: Experiment, clean: NoisyDescent, adversarial: int = 0, tau: float = 0.0) -> dict:
    """Both algorithms in input space, by autograd, one point set a step."""
    (seeds, data) = e.seeds, e.data
    start = e.net.start(data, seeds, data.sample(seeds, 1, "train"))
    rows = []
    for r, seed in enumerate(seeds):
        net = SymmetricReference({"w": start["w"][[r]], "b": start["b"][[r]]}, clean.schedule)
        for step in range(clean.steps + adversarial):
            opening = step < clean.opening
            n = clean.opening_batch if opening else clean.batch
            batch = data.sample((seed,), n, f"train.step.{step}")
            x, eta = batch.x, clean.opening_eta if opening else clean.eta
            if step >= clean.steps:
                net.schedule = clean.schedule.override("growth=0.0")
                x = x + tau * descending(net.input_gradient(x), batch.y, e.train.attack.norm, 1e-6)
            rho = None
            if clean.noise == "drawn":
                sigma = net.schedule.sigma(float(net.b[0]))
                rho = sigma * normals((seed,), f"train.rho.{step}", (n, e.net.m), x.dtype)
            net.step(x, batch.y, eta, rho)
        rows.append(net.params())
    return {name: torch.cat([row[name] for row in rows]) for name in rows[0]}


@pytest.mark.parametrize(
    ("noise", "basis", "features", "sigma_x", "norm"),
    [
        ("mean", "identity", None, 0.0, "l2"),
        ("drawn", "haar", None, 0.0, "l2"),
        ("mean", "haar", None, 0.3, "linf"),
        ("mean", "transform", None, 0.0, "linf"),
        ("mean", "transform", 11, 0.3, "l2"),
        ("mean", "frame", 24, 0.0, "l2"),
        ("drawn", "gaussian", 12, 0.3, "linf"),
    ],
)
def test_both_algorithms_equal_autograd_in_input_space(
    noise, basis, features, sigma_x, norm
) -> None:
    clean = CLEAN.override(f"noise={noise}")
    train = Purification(
        clean=clean, steps=3, batch=30, eta=2.0, tau=0.1, attack={"kind": "fgm", "norm": norm}
    )
    e = experiment(train, basis=basis, D=features, sigma_x=sigma_x)
    done = run(e)
    wanted = by_hand(e, clean, 3, 0.1)
    # The engine leaves out what lies more than five sigma below the threshold.
    torch.testing.assert_close(done.params["w"], wanted["w"], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(done.params["b"], wanted["b"])
    torch.testing.assert_close(
        done.trace.final["before"], by_hand(e, clean)["w"], rtol=1e-4, atol=1e-6
    )
    sigma = 0.1 if float(wanted["b"][0]) >= 0.25 else 0.15
    torch.testing.assert_close(done.params["sigma"], sigma * done.params["b"])


def test_input_space_and_the_basis_of_the_features_are_one_training(monkeypatch) -> None:
    train = Purification(clean=CLEAN, steps=3, batch=30, eta=2.0, tau=0.1)
    e = experiment(train, basis="haar")
    turned = run(e)
    monkeypatch.setattr(SparseCode, "orthonormal", property(lambda data: False))
    plain = run(e)
    torch.testing.assert_close(plain.params, turned.params, rtol=1e-5, atol=1e-7)
    for name, column in turned.trace.columns.items():
        torch.testing.assert_close(plain.trace.columns[name], column, rtol=1e-4, atol=1e-6)
    for name in ("dense-mixture", "tickets", "purified", "density"):
        found, wanted = probe(plain, name).values, probe(turned, name).values
        torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("basis", ["identity", "haar"])
def test_the_printed_cubic_term_is_that_of_input_space(basis: str) -> None:
    clean = CLEAN.override("schedule.cubic=l3", "schedule.decay=0.1")
    e = experiment(clean, basis=basis)
    done, wanted = run(e), by_hand(e, clean)
    torch.testing.assert_close(done.params["w"], wanted["w"], rtol=1e-4, atol=1e-6)
    other = run(e.override("train.schedule.cubic=l2")).params["w"]
    assert (done.params["w"] - other).norm() > 1e-3 * other.norm()
    w = wanted["w"]
    reg = w.square().sum((1, 2)) / 2 + w.abs().pow(3).sum((1, 2)) / 3
    torch.testing.assert_close(done.trace.columns["penalty"][:, -1], 0.1 * reg, rtol=1e-4, atol=0)


def test_clean_training_is_the_beginning_of_adversarial_training() -> None:
    clean = run(small_purified().override("train.steps=0"))
    both = run(small_purified())
    assert torch.equal(clean.params["w"], both.trace.final["before"])
    assert torch.equal(clean.params["w"], clean.trace.final["before"])
    alone = run(Experiment(**{**dict(small_purified()), "train": small_purified().train.clean}))
    assert torch.equal(alone.params["w"], clean.params["w"])


def test_training_teaches_and_purifies() -> None:
    columns = run(small_purified()).trace.columns
    assert (columns["accuracy"][:, 0] < 0.6).all()
    assert (columns["accuracy"][:, -1] > 0.85).all()
    assert (columns["right_sign"][:, -1] > 0.95).all()
    clean = run(small_purified().override("train.steps=0")).trace.columns
    assert (columns["dense"][:, -1] < 0.7 * clean["dense"][:, -1]).all()
    assert (columns["fgm"][:, -1] > clean["fgm"][:, -1]).all()


def test_a_fixed_set_is_used_again() -> None:
    fixed = experiment(CLEAN.override("points=fixed", "batch=40", "opening=0"))
    whole = experiment(CLEAN.override("points=fixed", "batch=null", "opening=0"))
    one, other = run(fixed), run(whole)
    torch.testing.assert_close(one.params["w"], other.params["w"], rtol=1e-9, atol=1e-12)
    few = run(experiment(CLEAN.override("points=fixed", "batch=10", "opening=0")))
    assert not torch.allclose(few.params["w"], other.params["w"], atol=1e-6)


def test_replicas_share_nothing() -> None:
    e = small_purified()
    both, alone = run(e), run(e.override("seeds=[1]"))
    assert torch.equal(both.params["w"][1:], alone.params["w"])
    for name, column in both.trace.columns.items():
        assert torch.equal(column[1:], alone.trace.columns[name])


@pytest.mark.parametrize("at", [0, 70, 125, 180 + 33])
def test_a_training_goes_on_from_a_checkpoint_bit_for_bit(at: int) -> None:
    e, kept = small_purified(), []
    whole = run(e)

    def trainer():
        batch = e.data.sample(e.seeds, 8, "train", torch.float32)
        params = e.net.start(e.data, e.seeds, batch)
        return started(e.train, e.net, e.data, params, batch, e.seeds)

    class Enough(Exception):
        pass

    def keep(state: Checkpoint) -> None:
        kept.append(state)
        raise Enough

    seen = iter(range(10**6))
    hooks = Hooks(wants_checkpoint=lambda: next(seen) == at, checkpoint=keep)
    with pytest.raises(Enough):
        trainer().run(hooks)
    again = trainer()
    again.resume(kept[0])
    params, trace = again.run(Hooks())
    assert torch.equal(params["w"], whole.params["w"])
    assert torch.equal(trace.final["before"], whole.trace.final["before"])
    for name, column in trace.columns.items():
        assert torch.equal(column, whole.trace.columns[name]), name


def stops(run: Run) -> set[str]:
    return {stop.reason for stop in run.trace.stops}


def test_a_radius_that_kills_the_net_is_called_a_collapse() -> None:
    e = small_purified("train.tau=2.0", "train.steps=60", "train.clean.schedule.decay=0.1")
    done = run(e)
    assert stops(done) == {"collapsed"}
    assert done.trace.diverged == (0, 1)
    assert "train.tau" in done.trace.stops[0].advice
    assert stops(run(small_purified())) == {"steps"}


def test_a_step_that_is_too_large_is_called_diverged() -> None:
    done = run(experiment(CLEAN.override("eta=1e30", "steps=6", "record.schedule=linear")))
    assert stops(done) == {"diverged"}
    assert "lower train.eta" in done.trace.stops[0].advice


def test_the_radius_waits_and_rises() -> None:
    phase = Phase(20, 1.0, 10, tau=0.3, hold=5, rise=3)
    radii = [phase.radius(step) for step in range(11)]
    assert radii[:5] == [0.0] * 5
    torch.testing.assert_close(radii[5:9], [0.075, 0.15, 0.225, 0.3])
    assert radii[9:] == [0.3] * 2
    assert Phase(20, 1.0, 10, tau=0.3).radius(0) == 0.3


def test_only_symmetric_nets_are_trained_so() -> None:
    with pytest.raises(SpecError, match="cannot train"):
        Experiment(data=Clusters(), net=TwoLayer(), train=CLEAN)
    with pytest.raises(SpecError, match="takes sparse-code data, got clusters"):
        Experiment(data=Clusters(), net=Symmetric(), train=CLEAN)
    with pytest.raises(SpecError, match=r"multiple of data\.d"):
        small_purified("net.initial=pure")
