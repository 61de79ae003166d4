"""All engines take the same steps as plain autograd, and autograd those of the formulas.

Tolerances, relative to the largest weight: 1e-10 in float64 over 200 steps, 2e-4 in float32 (each
step rounds to 6e-8; a ReLU that switches one step earlier or later gives the rest).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from small_runs import small
from unmix.data.clusters import Clusters
from unmix.experiment import run as train
from unmix.nets.base import Params
from unmix.nets.k_class import KClass
from unmix.nets.prelu import PReLU
from unmix.nets.two_layer import TwoLayer
from unmix.train.engines import ENGINES, choose, product
from unmix.train.engines.base import Problem
from unmix.train.engines.columns import Held
from unmix.train.engines.reference import Reference
from unmix.train.losses import Loss

FAST = sorted(set(ENGINES) - {"reference"})
TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-4}
DATA = Clusters(k=4, d=12, sigma=1.5)
STEPS = 200
LOGISTIC, SUM = Loss(), Loss("exponential", "sum")


class Case:
    """One training problem, small and nasty, for engines in the raw."""

    def __init__(
        self, net, n: int = 40, edit=lambda x, p: None, eta: float = 0.05, loss: Loss = LOGISTIC
    ) -> None:
        batch = DATA.sample((0, 1), n, "train")
        self.x, self.params = batch.x, net.init(DATA, (0, 1), torch.float64)
        edit(self.x, self.params)
        self.targets, self.net, self.eta, self.loss = net.targets(DATA, batch), net, eta, loss

    def engine(self, name: str, dtype: torch.dtype = torch.float64, rows: slice = slice(None)):
        targets = self.targets[rows]
        targets = targets.to(dtype) if targets.is_floating_point() else targets
        params = {n: p[rows].to(dtype) for n, p in self.params.items()}
        x = self.x[rows].to(dtype)
        eta = torch.full((len(x),), self.eta, dtype=dtype)
        top = self.net.top(DATA, x)
        return ENGINES[name](Problem(params, Held(x), targets, top, self.loss, eta))


def duplicated(x: torch.Tensor, params: Params) -> None:
    x[:, 1::2] = x[:, ::2]


def zero_row(x: torch.Tensor, params: Params) -> None:
    x[:, 5] = 0


def all_dead(x: torch.Tensor, params: Params) -> None:
    params["b"].fill_(-1e6)


def all_dead_without_bias(x: torch.Tensor, params: Params) -> None:
    x.abs_()
    params["w"].abs_().neg_()


def one_zero_neuron(x: torch.Tensor, params: Params) -> None:
    params["w"][:, 1] = 0


def pushed_away(x: torch.Tensor, params: Params) -> None:
    x.abs_()
    params["w"].abs_().neg_()


def power(p: float, **fields) -> PReLU:
    return PReLU(**({"p": p, "h": 5, "sigma": 0.3} | fields))


BINARY, FINE = TwoLayer(m=3, sigma_w=0.1, sigma_b=0.1), KClass(h=2, sigma_w=0.1)
NO_START = {"sigma_w": 0.0}
CASES = {
    "binary": Case(BINARY),
    "k-class": Case(FINE),
    "two labels": Case(KClass(h=3, labels=2, sigma_w=0.1)),
    "torch's slope": Case(TwoLayer(m=3, sigma_w=0.1, slope_at_zero=0)),
    "more points than dimensions": Case(BINARY, n=120),
    "duplicates": Case(BINARY, edit=duplicated),
    "duplicates, k-class": Case(FINE, edit=duplicated),
    "a zero row": Case(BINARY, edit=zero_row),
    "a zero row, k-class": Case(FINE, edit=zero_row),
    "one point": Case(BINARY, n=1),
    "one point, k-class": Case(FINE, n=1),
    "all dead": Case(BINARY, edit=all_dead),
    "all dead, k-class": Case(FINE, edit=all_dead_without_bias),
    "zero start": Case(TwoLayer(m=3, sigma_b=0.0, **NO_START)),
    "zero start, k-class": Case(KClass(h=2, **NO_START)),
    "zero start, torch": Case(TwoLayer(m=3, sigma_b=0.0, slope_at_zero=0, **NO_START)),
    "zero start, torch, k-class": Case(KClass(h=2, slope_at_zero=0, **NO_START)),
    "pReLU, p=1": Case(power(1.0)),
    "pReLU, p=2": Case(power(2.0)),
    "pReLU, p=2.5": Case(power(2.5)),
    "pReLU, p=3": Case(power(3.0)),
    "pReLU, p=3, balanced": Case(power(3.0, initial="balanced")),
    "pReLU, exponential sum": Case(power(3.0, sigma=0.1), eta=1e-5, loss=SUM),
    "pReLU, one point": Case(power(3.0), n=1),
    "pReLU, duplicates": Case(power(3.0), edit=duplicated),
    "pReLU, a zero row": Case(power(3.0), edit=zero_row),
    "pReLU, a zero neuron": Case(power(3.0), edit=one_zero_neuron),
    "pReLU, all dead": Case(power(3.0), edit=pushed_away),
}
EVERY = torch.tensor([True, True])


def walk(engine, steps: int = STEPS, alive: torch.Tensor = EVERY):
    for _ in range(steps):
        engine.forward()
        engine.advance(alive)
    return engine


def assert_near(one: Params, other: Params, tolerance: float) -> None:
    assert one.keys() == other.keys()
    for name, p in one.items():
        scale = float(other[name].abs().max())
        assert (p - other[name]).abs().max() <= tolerance * scale, name


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("name", FAST)
def test_an_engine_equals_the_reference(name: str, case: Case, dtype: torch.dtype) -> None:
    wanted, mine = walk(case.engine("reference")), walk(case.engine(name, dtype))
    assert_near(
        {n: p.double() for n, p in mine.params().items()}, wanted.params(), TOLERANCE[dtype]
    )
    if case is not CASES["a zero row"]:
        rounding = TOLERANCE[dtype] * float(wanted.z().abs().max())
        assert (mine.z() - wanted.z()).abs().max() <= rounding


def spoiled(dup: bool, zero: bool, dead: bool) -> Callable[[torch.Tensor, Params], None]:
    """Points that repeat, a point at the origin, neurons that are all off."""

    def edit(x: torch.Tensor, params: Params) -> None:
        if dup:
            x[:, 1::2] = x[:, : x.shape[1] // 2 * 2 : 2]
        if dead:
            pushed_away(x, params)
        if zero:
            x[:, 0] = 0

    return edit


SHAPES = st.sampled_from([
    lambda h: TwoLayer(m=h, sigma_w=0.1, sigma_b=0.1),
    lambda h: TwoLayer(m=h, sigma_w=0.1, slope_at_zero=0),
    lambda h: KClass(h=h, sigma_w=0.1),
    lambda h: KClass(h=h, labels=2, sigma_w=0.1, slope_at_zero=0),
    lambda h: power(1.0, h=h, sigma=0.1), lambda h: power(2.0, h=h, sigma=0.1),
    lambda h: power(2.5, h=h, sigma=0.1), lambda h: power(3.0, h=h, initial="balanced"),
])  # fmt: skip


# The same shapes each time: one in thousands is chaotic, and magnifies rounding past any tolerance.
@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    net=SHAPES, h=st.integers(1, 9), n=st.integers(1, 70), dup=st.booleans(), zero=st.booleans(),
    dead=st.booleans(), binary=st.sampled_from(["logistic", "exponential"]),
    reduction=st.sampled_from(["mean", "sum"]), small=st.sampled_from([0, 10**9]),
)  # fmt: skip
def test_any_shape_and_loss_gives_the_steps_of_autograd(
    net, h: int, n: int, dup: bool, zero: bool, dead: bool, binary, reduction, small: int
) -> None:
    """200 steps, with the products of small sizes and with those of large ones."""
    # Steps for which the steepest of these losses does not blow up: chaos magnifies rounding.
    eta = (0.05 if binary == "logistic" else 0.002) / (1 if reduction == "mean" else n)
    case = Case(net(h), n, spoiled(dup, zero, dead), eta, Loss(binary, reduction))
    wanted = walk(case.engine("reference"))
    assert all(p.isfinite().all() for p in wanted.params().values())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(product, "SMALL", small)
        patch.setattr(product, "SHORT", min(small, 64))
        for name in FAST:
            mine = walk(case.engine(name))
            assert_near(mine.params(), wanted.params(), TOLERANCE[torch.float64])


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_pre_activations_are_those_of_the_weights(name: str, case: Case) -> None:
    engine = walk(case.engine(name), 20)
    p = engine.params()
    z = torch.einsum("rnd,rmd->rnm", case.x, p["w"])
    z = z + p["b"][:, None] if "b" in p else z
    torch.testing.assert_close(engine.z(), z, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ENGINES)
def test_the_dead_do_not_move(name: str) -> None:
    for label in ("all dead", "all dead, k-class"):
        case = CASES[label]
        assert_near(walk(case.engine(name), 5).params(), case.params, 0.0)


@pytest.mark.parametrize("name", ENGINES)
def test_a_zero_start_is_active_in_the_paper_and_dead_in_torch(name: str) -> None:
    for label in ("zero start", "zero start, k-class"):
        moved = walk(CASES[label].engine(name), 1).params()["w"]
        assert (moved.norm(dim=-1) > 0).all()
    for label in ("zero start, torch", "zero start, torch, k-class"):
        stays = walk(CASES[label].engine(name)).params()
        assert all((p == 0).all() for p in stays.values())


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("label", ["binary", "k-class"])
def test_replicas_share_nothing(name: str, label: str) -> None:
    case = CASES[label]
    together = walk(case.engine(name)).params()
    for r in (0, 1):
        alone = walk(case.engine(name, rows=slice(r, r + 1)), alive=EVERY[:1]).params()
        assert_near({n: p[r : r + 1] for n, p in together.items()}, alone, 1e-12)


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("label", ["binary", "k-class"])
def test_only_the_living_step(name: str, label: str) -> None:
    case = CASES[label]
    engine = walk(case.engine(name), 3)
    before = engine.params()
    for n, p in walk(engine, 1, torch.tensor([True, False])).params().items():
        assert torch.equal(p[1], before[n][1])
        assert not torch.equal(p[0], before[n][0])


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("label", ["binary", "k-class"])
def test_a_restored_engine_goes_on_bit_for_bit(name: str, label: str) -> None:
    case = CASES[label]
    engine = walk(case.engine(name), 7)
    saved = {n: t.clone() for n, t in engine.state().items()}
    calm = walk(engine, 13).params()
    resumed = case.engine(name)
    resumed.restore(saved)
    for n, p in walk(resumed, 13).params().items():
        assert torch.equal(p, calm[n])


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("name", FAST)
def test_the_same_training_gives_the_same_bits(name: str, dtype: torch.dtype, monkeypatch) -> None:
    monkeypatch.setattr(product, "SMALL", 0)
    monkeypatch.setattr(product, "SHORT", 0)
    case = CASES["more points than dimensions"]
    one, other = (walk(case.engine(name, dtype), 50).params() for _ in range(2))
    assert all(torch.equal(p, other[n]) for n, p in one.items())


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("label", ["binary", "k-class", "pReLU, p=3"])
def test_an_engine_stays_on_its_device(name: str, label: str, monkeypatch) -> None:
    """On one without numbers: nothing is read back, nothing compiled for the CPU is met."""
    monkeypatch.setattr(product, "SMALL", 0)
    case = CASES[label]
    given = case.engine("reference").problem
    params = {n: p.to("meta") for n, p in given.params.items()}
    top = case.net.top(DATA, torch.empty(0, device="meta", dtype=torch.float64))
    points, targets = Held(case.x.to("meta")), given.targets.to("meta")
    engine = ENGINES[name](Problem(params, points, targets, top, given.loss, given.eta.to("meta")))
    moved = walk(engine, 2, EVERY.to("meta")).params()
    assert {n: (p.device.type, p.shape) for n, p in moved.items()} == {
        n: ("meta", p.shape) for n, p in params.items()
    }


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_leaves_its_input_alone(name: str) -> None:
    case = CASES["binary"]
    before = [t.clone() for t in (case.x, case.targets, *case.params.values())]
    walk(case.engine(name), 3)
    now = [case.x, case.targets, *case.params.values()]
    assert all(torch.equal(a, b) for a, b in zip(before, now, strict=True))
    assert not any(p.requires_grad for p in case.params.values())


class Textbook(nn.Module):
    """Both learners as anyone would write them with torch.nn."""

    def __init__(self, params: Params, readout: torch.Tensor) -> None:
        super().__init__()
        m, d = params["w"].shape
        self.first = nn.Linear(d, m, bias="b" in params, dtype=torch.float64)
        self.first.weight.data = params["w"].clone()
        if "b" in params:
            self.first.bias.data = params["b"].clone()
        self.second = nn.Linear(*readout.shape, bias=False, dtype=torch.float64)
        self.second.weight = nn.Parameter(readout.T.clone(), requires_grad=False)

    def loss(self, x: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        out = self.second(torch.relu(self.first(x)))
        if out.shape[1] == 1:
            return torch.log(1 + torch.exp(-targets * out[:, 0])).mean()
        return nn.CrossEntropyLoss()(out, targets)


@pytest.mark.parametrize("label", ["binary", "k-class", "two labels", "a zero row, k-class"])
def test_the_reference_steps_along_the_textbook_gradient(label: str) -> None:
    case = CASES[label]
    moved = walk(case.engine("reference"), 1).params()
    for r in (0, 1):
        net = Textbook({n: p[r] for n, p in case.params.items()}, case.net.readout(DATA))
        net.loss(case.x[r], case.targets[r]).backward()
        wanted = {"w": net.first.weight, "b": net.first.bias}
        for n, p in moved.items():
            step = (case.params[n][r] - p[r]) / case.eta
            torch.testing.assert_close(step, wanted[n].grad, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("label", ["binary", "k-class"])
def test_the_reference_steps_along_finite_differences(label: str) -> None:
    case, h = CASES[label], 1e-6
    moved = walk(case.engine("reference"), 1).params()
    made = torch.Generator().manual_seed(0)
    direction = {
        n: torch.randn(p.shape[1:], generator=made, dtype=torch.float64)
        for n, p in case.params.items()
    }
    ends = [
        Textbook(
            {n: p[0] + s * h * direction[n] for n, p in case.params.items()},
            case.net.readout(DATA),
        )
        .loss(case.x[0], case.targets[0])
        .item()
        for s in (1, -1)
    ]
    slope = sum(
        float(((case.params[n][0] - p[0]) / case.eta * direction[n]).sum())
        for n, p in moved.items()
    )
    assert slope == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-6)


@pytest.mark.parametrize("kind", ["two-layer", "k-class"])
def test_engines_agree_through_an_experiment(kind: str) -> None:
    changes = (f"net.kind={kind}", "train.steps=200", "train.eta=0.1")
    wanted = train(small(*changes, "train.engine=reference"))
    for name in FAST:
        mine = train(small(*changes, f"train.engine={name}"))
        assert_near(mine.params, wanted.params, 1e-10)
        assert_near(mine.trace.columns, wanted.trace.columns, 1e-10)
        assert_near(mine.trace.final, wanted.trace.final, 1e-10)


def test_every_engine_can_be_asked_for() -> None:
    problem = CASES["binary"].engine("reference").problem
    for name in ENGINES:
        assert choose(name, problem, 10, None) == name
    assert ENGINES["reference"] is Reference
