"""The patch CNN's engine takes the steps of autograd, and autograd those of the formulas.

Tolerances, relative to the largest weight: 1e-10 in float64 over 200 steps; in float32, over 100
steps, 2e-5 for standard training and 2e-4 for adversarial training, whose attack has a kink at the
radius of the clip. Where the attack is far steeper than it is here, training is chaotic and no two
roundings stay together; the steps themselves still agree.
"""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from unmix.data.patches import Patches
from unmix.errors import SpecError
from unmix.nets.activations import SmoothedRelu
from unmix.train.engines import patches
from unmix.train.engines.patches import OneStep, PatchGemm, PatchReference
from unmix.train.engines.smooth import CubicCpu, Smooth

ATTACKS = {
    "standard": None,
    "own": OneStep(step=10.0, eps=0.6),
    "own, mean": OneStep(step=30.0, eps=0.6, reduction="mean"),
    "own, patch": OneStep(step=10.0, eps=0.3, clip="patch"),
    "margin": OneStep(step=2.0, eps=0.4, objective="margin"),
    "margin, mean, patch": OneStep(
        step=20.0, eps=0.4, objective="margin", clip="patch", reduction="mean"
    ),
}
TOLERANCE = {"standard": 2e-5}
CUBIC = SmoothedRelu(3.0, 1.0)
ENGINES = (PatchReference, PatchGemm)


class Case:
    """One training problem; `edit` may spoil its points and weights."""

    def __init__(
        self,
        k: int = 2,
        n: int = 9,
        replicas: int = 2,
        activation: SmoothedRelu = CUBIC,
        edit=lambda x, w: None,
        shape: tuple[int, int, int] = (4, 3, 12),
        scale: float = 0.3,
    ) -> None:
        p, m, d = shape
        data = Patches(k=k, d=d, patches=p, robust=1).sample(tuple(range(replicas)), n, "train")
        self.x, self.y, self.activation = data.x, data.y, activation
        made = torch.Generator().manual_seed(0)
        self.w = scale * torch.randn(replicas, k, m, d, generator=made, dtype=torch.float64)
        edit(self.x, self.w)

    def engine(self, cls, attack: OneStep | None, dtype=torch.float64, rows=slice(None)):
        start = ({"w": self.w[rows].to(dtype)}, self.x[rows].to(dtype), self.y[rows])
        return cls(*start, self.activation, 0.1, attack)


def duplicated(x: torch.Tensor, w: torch.Tensor) -> None:
    x[:, 1::2] = x[:, : x.shape[1] // 2 * 2 : 2]


def zero_points(x: torch.Tensor, w: torch.Tensor) -> None:
    x[:, 0] = 0
    x[:, 1:, 2] = 0


def all_dead(x: torch.Tensor, w: torch.Tensor) -> None:
    x.abs_()
    w.abs_().neg_()


def zero_start(x: torch.Tensor, w: torch.Tensor) -> None:
    w.zero_()


CASES = {
    "two classes": Case(),
    "three classes": Case(k=3, n=14),
    "a class without points": Case(k=4, n=3),
    "one point": Case(n=1),
    "one replica": Case(replicas=1),
    "duplicates": Case(edit=duplicated),
    "zero points": Case(edit=zero_points),
    "all dead": Case(edit=all_dead),
    "zero start": Case(edit=zero_start),
    "another power": Case(activation=SmoothedRelu(4.0, 0.5)),
    "a broken power": Case(activation=SmoothedRelu(2.5, 0.7)),
}


def walk(engine, steps: int):
    alive = torch.ones(len(engine.w), dtype=torch.bool)
    for _ in range(steps):
        engine.advance(alive)
    return engine


def apart(one: torch.Tensor, other: torch.Tensor) -> float:
    scale = float(other.abs().max()) or 1.0
    return float((one.double() - other).abs().max()) / scale


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_engine_equals_autograd(case: Case, attack: OneStep | None) -> None:
    wanted, mine = (case.engine(cls, attack) for cls in ENGINES)
    assert apart(mine.attacked(), wanted.attacked()) < 1e-12
    walk(wanted, 200), walk(mine, 200)
    assert apart(mine.params()["w"], wanted.params()["w"]) < 1e-10
    assert apart(mine.outputs(), wanted.outputs()) < 1e-9


@pytest.mark.parametrize("label", ATTACKS)
def test_single_precision_follows(label: str) -> None:
    case = Case(n=20, shape=(8, 16, 40))
    wanted = walk(case.engine(PatchReference, ATTACKS[label]), 100)
    mine = walk(case.engine(PatchGemm, ATTACKS[label], torch.float32), 100)
    assert mine.params()["w"].dtype == torch.float32
    assert apart(mine.params()["w"], wanted.params()["w"]) < TOLERANCE.get(label, 2e-4)


@settings(max_examples=25, deadline=None)
@given(
    k=st.integers(2, 4), n=st.integers(1, 7), replicas=st.integers(1, 3), p=st.integers(1, 4),
    m=st.integers(1, 4), d=st.integers(8, 11), label=st.sampled_from(sorted(ATTACKS)),
    q=st.sampled_from([2.0, 2.5, 3.0, 4.0]), rho=st.sampled_from([0.3, 1.0]),
)  # fmt: skip
def test_one_step_of_any_shape_is_that_of_autograd(k, n, replicas, p, m, d, label, q, rho) -> None:
    case = Case(k, n, replicas, SmoothedRelu(q, rho), shape=(p, m, d), scale=0.5)
    wanted, mine = (walk(case.engine(cls, ATTACKS[label]), 1) for cls in ENGINES)
    step, true = mine.params()["w"] - case.w, wanted.params()["w"] - case.w
    assert float((step - true).abs().max()) <= 1e-12 * max(1.0, float(true.abs().max()))


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_passes_over_groups_of_replicas_change_nothing(attack, monkeypatch) -> None:
    case = Case(replicas=3)
    whole = walk(case.engine(PatchGemm, attack), 20)
    monkeypatch.setattr(patches, "PASS", 1)
    single = case.engine(PatchGemm, attack)
    assert (whole.group, single.group) == (3, 1)
    assert apart(walk(single, 20).w, whole.w) < 1e-12
    assert apart(single.outputs(), whole.outputs()) < 1e-12
    assert apart(single.attacked(), whole.attacked()) < 1e-12


@pytest.mark.parametrize("cls", ENGINES)
@pytest.mark.parametrize("label", ["standard", "own", "margin"])
def test_replicas_share_nothing(cls, label: str) -> None:
    case = Case(replicas=3, n=11)
    together = walk(case.engine(cls, ATTACKS[label]), 50)
    for r in range(3):
        alone = walk(case.engine(cls, ATTACKS[label], rows=slice(r, r + 1)), 50)
        assert apart(alone.params()["w"][0], together.params()["w"][r]) < 1e-12


@pytest.mark.parametrize("cls", ENGINES)
@pytest.mark.parametrize("attack", [None, ATTACKS["own"]], ids=["standard", "own"])
def test_a_restored_engine_goes_on_bit_for_bit(cls, attack) -> None:
    case = CASES["three classes"]
    engine = walk(case.engine(cls, attack), 7)
    saved = {name: t.clone() for name, t in engine.state().items()}
    kept = {name: t.clone() for name, t in saved.items()}
    calm = walk(engine, 13).params()["w"]
    resumed = case.engine(cls, attack)
    resumed.restore(saved)
    assert torch.equal(walk(resumed, 13).params()["w"], calm)
    assert torch.equal(saved["w"], kept["w"])


@pytest.mark.parametrize("attack", [None, ATTACKS["own"]], ids=["standard", "own"])
def test_the_same_training_gives_the_same_bits(attack) -> None:
    case = Case(replicas=3, n=20, shape=(8, 16, 40))
    one, other = (walk(case.engine(PatchGemm, attack, torch.float32), 20) for _ in range(2))
    assert torch.equal(one.w, other.w)


@pytest.mark.parametrize("cls", ENGINES)
def test_only_the_living_step_and_a_step_can_be_taken_back(cls) -> None:
    engine = walk(Case().engine(cls, ATTACKS["own"]), 3)
    before = engine.params()["w"].clone()
    engine.advance(torch.tensor([True, False]))
    after = engine.params()["w"]
    assert torch.equal(after[1], before[1])
    assert not torch.equal(after[0], before[0])
    engine.undo(torch.tensor([True, False]))
    assert torch.equal(engine.params()["w"], before)


@pytest.mark.parametrize("cls", ENGINES)
def test_a_diverged_replica_harms_no_other(cls) -> None:
    case = Case()
    calm = walk(case.engine(cls, None), 5).params()["w"][0]
    case.w[1] = torch.inf
    engine = case.engine(cls, None)
    for _ in range(5):
        engine.advance(torch.tensor([True, False]))
    assert apart(engine.params()["w"][0], calm) < 1e-12
    assert (engine.params()["w"][1] == torch.inf).all()


@pytest.mark.parametrize("cls", ENGINES)
def test_noiseless_standard_training_has_no_orthogonal_drift(cls) -> None:
    # D.2: w stays in its start plus the span of the features, exactly.
    data = Patches(k=2, d=20, patches=6, sigma_n=0.0).sample((0,), 12, "train")
    w = 0.3 * torch.randn(1, 2, 5, 20, generator=torch.Generator().manual_seed(1)).double()
    engine = walk(cls({"w": w}, data.x, data.y, CUBIC, 0.1), 300)
    moved = engine.params()["w"] - w
    assert (moved[..., 4:] == 0).all()
    assert moved[..., :4].abs().max() > 0.1


@pytest.mark.parametrize("cls", ENGINES)
def test_the_dead_do_not_move(cls) -> None:
    for label in ("all dead", "zero start"):
        case = CASES[label]
        for attack in (None, ATTACKS["own"], ATTACKS["margin"]):
            engine = case.engine(cls, attack)
            assert torch.equal(engine.attacked(), case.x)
            assert torch.equal(walk(engine, 5).params()["w"], case.w)


@pytest.mark.parametrize("cls", ENGINES)
def test_kinks_follow_the_declared_slopes(cls) -> None:
    # s'(0) = 0 and s'(rho) = 1: one filter e_1, patches at z = 0, rho and 2 rho.
    x = torch.zeros(1, 1, 3, 4, dtype=torch.float64)
    x[0, 0, 1, 0], x[0, 0, 2, 0] = 1.0, 2.0
    x[..., 3] = 1.0
    w = torch.zeros(1, 2, 1, 4, dtype=torch.float64)
    w[0, 0, 0, 0] = 1.0
    y = torch.zeros(1, 1, dtype=torch.int64)
    attack = OneStep(step=0.25, eps=10.0)
    engine = cls({"w": w}, x, y, CUBIC, 1.0, attack)
    wanted = x.clone()
    wanted[0, 0, 1:, 0] -= 0.25
    assert torch.equal(engine.attacked(), wanted)


class Textbook(nn.Module):
    """The CNN as anyone would write it: a 1 x 1 convolution over patches."""

    def __init__(self, w: torch.Tensor, activation: SmoothedRelu) -> None:
        super().__init__()
        self.k, m, d = w.shape
        self.filters = nn.Conv1d(d, self.k * m, 1, bias=False, dtype=torch.float64)
        self.filters.weight.data = w.reshape(-1, d, 1).clone()
        self.q, self.rho = activation.q, activation.rho

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        z = self.filters(x.transpose(1, 2))
        foot = z.clamp(min=0) ** self.q / (self.q * self.rho ** (self.q - 1))
        s = torch.where(z >= self.rho, z - (1 - 1 / self.q) * self.rho, foot)
        return s.unflatten(1, (self.k, -1)).sum((2, 3))


@pytest.mark.parametrize("label", ["two classes", "three classes", "a broken power"])
def test_the_reference_steps_along_the_textbook_gradient(label: str) -> None:
    case = CASES[label]
    moved = walk(case.engine(PatchReference, None), 1).params()["w"]
    for r, w in enumerate(case.w):
        net = Textbook(w, case.activation)
        nn.CrossEntropyLoss()(net(case.x[r]), case.y[r]).backward()
        step = (w - moved[r]) / 0.1
        torch.testing.assert_close(step, net.filters.weight.grad.view_as(w), rtol=1e-9, atol=1e-13)


def test_the_attack_is_the_papers() -> None:
    case, attack = CASES["two classes"], OneStep(step=0.8, eps=0.3)
    x = case.x[0].clone().requires_grad_()
    f = Textbook(case.w[0], CUBIC)(x)
    f[torch.arange(9), case.y[0]].sum().backward()
    assert (x.grad.abs() * 0.8 > 0.3).any(), "some coordinates must be clipped"
    wanted = case.x[0] - (0.8 * x.grad).clamp(-0.3, 0.3)
    for cls in ENGINES:
        torch.testing.assert_close(case.engine(cls, attack).attacked()[0], wanted)
        mean = attack.override("reduction=mean", "step=7.2")
        torch.testing.assert_close(case.engine(cls, mean).attacked()[0], wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rho", [1.0, 0.3])
def test_the_compiled_cubic_is_the_activation(rho: float, dtype: torch.dtype) -> None:
    activation = SmoothedRelu(3.0, rho)
    z = torch.linspace(-1, 2, 2 * 3 * 2 * 2 * 5, dtype=dtype).reshape(2, 3, 2, 2, 5)
    z[0, 0, 0, 0, :3] = torch.tensor([0.0, rho, -0.0])
    by = torch.randn(2, 3, 2, dtype=dtype)
    tight = 1e-14 if dtype == torch.float64 else 1e-5
    slope = activation.slope(z) * rho**2
    for kernels in (Smooth(activation), CubicCpu(activation)):
        mine = z.clone()
        total = kernels.total(mine)
        torch.testing.assert_close(total, activation.value(z).sum((2, 4)), rtol=tight, atol=tight)
        torch.testing.assert_close(mine, slope, rtol=tight, atol=tight)
        kernels.scale(mine, by)
        wanted = slope * by[:, :, None, :, None]
        torch.testing.assert_close(mine, wanted, rtol=tight, atol=tight)
        again = z.clone()
        kernels.steepen(again)
        torch.testing.assert_close(again, slope, rtol=tight, atol=tight)


@pytest.mark.parametrize("cls", [Smooth, CubicCpu])
def test_a_pre_activation_that_is_no_number_is_not_hidden(cls) -> None:
    for bad in (torch.nan, torch.inf):
        z = torch.tensor([-1.0, bad, 0.5]).reshape(1, 1, 1, 1, 3)
        steep = z.clone()
        cls(CUBIC).steepen(steep)
        assert not torch.isfinite(cls(CUBIC).total(z)).any()
        assert torch.isnan(steep).any() == (bad != torch.inf)


def test_a_patch_clip_keeps_directions() -> None:
    move = torch.tensor([[0.1, -0.2], [3.0, 1.5], [0.0, 0.0]])
    clipped = OneStep(eps=1.5, clip="patch").clipped(move.clone())
    torch.testing.assert_close(clipped, torch.tensor([[0.1, -0.2], [1.5, 0.75], [0.0, 0.0]]))


def test_classes_must_exist() -> None:
    case = Case()
    with pytest.raises(SpecError, match=r"classes must lie in 0\.\.1"):
        PatchGemm({"w": case.w}, case.x, case.y + 1, CUBIC, 0.1)
