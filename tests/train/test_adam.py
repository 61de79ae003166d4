"""Adam: its gradients by hand, its steps beside torch's own, its records, its resumption."""

from __future__ import annotations

import pytest
import torch

from pictures import install
from unmix.data.images.distribution import Images
from unmix.errors import SpecError
from unmix.experiment import Experiment, Samples, Supervisor, run
from unmix.nets.k_class import KClass
from unmix.nets.prelu_classes import PReLUClasses
from unmix.store import Store
from unmix.train.adam import Adam
from unmix.train.base import Checkpoint
from unmix.train.power_steps import PlainSteps, Points, Steps, stable_rank


@pytest.fixture(autouse=True)
def _tiny(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, tmp_path / "data", 150, 50)


def experiment(p: float = 3.0, seeds: tuple = (0, 4), **train: object) -> Experiment:
    # 150 points in batches of 40: the last one of an epoch is smaller.
    made = Adam(**({"epochs": 4, "batch": 40, "watch": 50, "eta": 0.01} | train))
    samples = Samples(train=150, test=50)
    return Experiment(data=Images(), net=PReLUClasses(p=p, h=20), train=made, samples=samples,
                      seeds=seeds)  # fmt: skip


@pytest.mark.parametrize("degree", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, 4.0])
def test_gradients_by_hand_are_those_of_autograd(p: float, degree: float) -> None:
    made = torch.Generator().manual_seed(0)
    shapes = {"w": (9, 12), "v": (9, 4), "b": (4,)}
    params = {n: torch.randn(s, generator=made, dtype=torch.float64) for n, s in shapes.items()}
    x = torch.randn(30, 12, generator=made, dtype=torch.float64)
    length = x.norm(dim=1)
    y = torch.randint(0, 4, (30,), generator=made)
    points = Points(x / length.unsqueeze(1), length**degree, y)
    rows = torch.randperm(30, generator=made)[:17]
    engines = [engine(p, params, points, 20) for engine in (Steps, PlainSteps)]
    (loss, hand), (plain, auto) = (engine.gradient(rows) for engine in engines)
    torch.testing.assert_close(loss, plain, rtol=1e-12, atol=0)
    for name in ("w", "v", "b"):
        torch.testing.assert_close(hand[name], auto[name], rtol=1e-10, atol=1e-13)


def test_a_neuron_of_length_zero_stays_finite() -> None:
    params = {"w": torch.zeros(2, 3), "v": torch.ones(2, 2), "b": torch.zeros(2)}
    points = Points(torch.eye(3), torch.ones(3), torch.tensor([0, 1, 0]))
    for p in (1.0, 3.0):
        _, moves = Steps(p, params, points, 3).gradient(torch.arange(3))
        assert all(move.isfinite().all() for move in moves.values())


@pytest.mark.parametrize("p", [1.0, 3.0])
def test_the_steps_are_torchs_adam(p: float) -> None:
    """120 steps of torch.optim.Adam on the definition; rounding grows by the steps: 1e-8."""
    mine = run(experiment(p, seeds=(0,), epochs=30), device="cpu")
    net, batch = mine.experiment.net, mine.train_batch
    params = {n: t.clone() for n, t in mine.initial.items()}
    leaves = [params[n].requires_grad_() for n in net.trained]
    optimiser = torch.optim.Adam(leaves, lr=0.01, foreach=False)
    from unmix.train.descent import Order

    order = Order((0,), 150, 40)
    for step in range(30 * 4):
        rows = order.rows(step)[0]
        optimiser.zero_grad()
        outputs = net.classifier(mine.data, params).outputs(batch.x[:, rows])
        torch.nn.functional.cross_entropy(outputs[0], batch.y[0, rows]).backward()
        optimiser.step()
    for name in net.trained:
        torch.testing.assert_close(mine.params[name], params[name], rtol=1e-8, atol=1e-9)
    assert torch.equal(mine.params["centre"], mine.initial["centre"])


def test_both_engines_agree() -> None:
    one, other = (run(experiment(engine=e), device="cpu") for e in ("hand", "reference"))
    for name, value in one.params.items():
        torch.testing.assert_close(value, other.params[name], rtol=1e-9, atol=1e-10)


def test_a_replica_alone_is_the_same() -> None:
    both, lone = (run(experiment(seeds=s), device="cpu") for s in ((0, 4), (4,)))
    assert all(torch.equal(both.params[n][1:], lone.params[n]) for n in both.params)
    assert not torch.equal(both.params["w"][0], both.params["w"][1])


def test_records_say_what_the_net_does() -> None:
    mine = run(experiment(), device="cpu")
    assert mine.trace.steps[0] == 0
    assert mine.trace.steps[-1] == 4
    columns, net = mine.trace.columns, mine.classifier
    torch.testing.assert_close(columns["accuracy"][:, -1], net.accuracy(mine.train_batch))
    torch.testing.assert_close(columns["test_accuracy"][:, -1], net.accuracy(mine.test_batch))
    assert (columns["loss"][:, -1] < columns["loss"][:, 0]).all()
    singular = torch.linalg.svdvals(net.features(mine.train_batch.x))
    wanted = (singular**2).sum(1) / singular[:, 0] ** 2
    torch.testing.assert_close(columns["stable_rank"][:, -1], wanted)


def test_it_learns() -> None:
    found = run(experiment(epochs=25), device="cpu").trace.columns["test_accuracy"][:, -1]
    assert (found > 0.9).all()


def test_resumption_is_bit_for_bit() -> None:
    saved: list[Checkpoint] = []
    keep = Supervisor(wants_checkpoint=lambda: True, save=lambda part, s: saved.append(s))
    whole = run(experiment(), device="cpu", supervisor=keep)
    for state in saved:
        again = run(experiment(), device="cpu", supervisor=Supervisor(load=lambda part: state))  # noqa: B023
        assert all(torch.equal(again.params[n], p) for n, p in whole.params.items())
        for name, column in whole.trace.columns.items():
            assert torch.equal(again.trace.columns[name], column)


def test_a_store_gives_back_what_was_trained(tmp_path) -> None:
    store = Store(tmp_path / "runs")
    first, second = store.run(experiment(), device="cpu"), store.run(experiment(), device="cpu")
    assert all(torch.equal(first.params[n], p) for n, p in second.params.items())


def test_what_blows_up_is_stopped_with_advice() -> None:
    mine = run(experiment(p=1.0, eta=1e300), device="cpu")
    assert mine.trace.diverged == (0, 1)
    assert "lower train.eta" in mine.trace.stops[0].advice
    assert len(mine.trace.steps) == mine.trace.columns["loss"].shape[1]


def test_biases_can_stay_out() -> None:
    start = experiment().with_("net.offset=none")
    assert (run(start, device="cpu").params["b"] == 0).all()


def test_only_what_fits_is_trained() -> None:
    with pytest.raises(SpecError, match="cannot train"):
        Experiment(data=Images(), net=PReLUClasses(), train={"kind": "flow"})
    with pytest.raises(SpecError, match="takes clusters"):
        Experiment(data=Images(), net=KClass(), train=Adam())


@pytest.mark.parametrize("shape", [(5, 3), (3, 5)])
def test_stable_rank_is_that_of_the_singular_values(shape: tuple) -> None:
    a = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    singular = torch.linalg.svdvals(a.double())
    wanted = float((singular**2).sum() / singular[0] ** 2)
    assert stable_rank(a.T @ a) == pytest.approx(wanted, rel=1e-5)
    assert stable_rank(torch.eye(4)) == pytest.approx(4)
    assert stable_rank(torch.zeros(3, 3)) == 0
