"""Anybody's models and anybody's attacks: nothing of theirs is changed, everything is judged."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from planted import Honest, points
from unmix.attacks.foreign import ModuleTarget, module_target
from unmix.attacks.objectives import objective
from unmix.attacks.outside import judge, outside_curve
from unmix.attacks.representation import RepresentationPGD, distances
from unmix.attacks.suite import SuiteL1, SuiteL2, SuiteLinf
from unmix.attacks.target import FormTarget
from unmix.attacks.threat import Threat
from unmix.errors import AttackError

RADII = (0.5, 1.0, 2.0)


def net(classes: int = 3, d: int = 16, hidden: int = 12, seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(d, hidden), nn.ReLU(), nn.Linear(hidden, classes))


class Opaque(nn.Module):
    """The same function as a module whose layers nobody can read."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)


def labelled(model: nn.Module, n: int = 24):
    x, _ = points(n)
    return x, model(x).detach().argmax(1)


def test_a_plain_two_layer_module_is_taken_by_hand_and_any_other_by_autograd() -> None:
    model = net()
    by_hand, plain = module_target(model, (16,)), module_target(Opaque(model), (16,))
    assert isinstance(by_hand, FormTarget)
    assert isinstance(plain, ModuleTarget)
    x, y = labelled(model)
    for loss in ("margin", "ce", "dlr"):
        mine, theirs = (t.double().pull(x.double(), objective(loss, y)) for t in (by_hand, plain))
        for one, other in zip(mine, theirs, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loss", ["margin", "ce", "dlr"])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_losses_have_their_own_slopes(loss: str, classes: int) -> None:
    made = torch.Generator().manual_seed(3)
    scores = torch.randn(9, classes, generator=made, dtype=torch.float64).requires_grad_()
    y = torch.randint(0, classes, (9,), generator=made)
    value, slopes = objective(loss, y)(scores)
    (wanted,) = torch.autograd.grad(value.sum(), scores)
    torch.testing.assert_close(slopes.detach(), wanted)
    rival = (y + 1) % classes
    value, _ = objective("margin", y, rival)(scores.detach())
    rows = torch.arange(9)
    torch.testing.assert_close(value, (scores[rows, y] - scores[rows, rival]).detach())


@pytest.mark.parametrize("suite", [SuiteL2(), SuiteLinf(), SuiteL1(), SuiteL2(box=(-9.0, 9.0))])
def test_both_ways_find_about_the_same(suite) -> None:
    model = net()
    x, y = labelled(model)
    radii = [r * {"l2": 1, "linf": 0.3, "l1": 2.5}[suite.threat.norm] for r in RADII]
    mine, theirs = (suite.on(m, x, y, radii) for m in (model, Opaque(model)))
    # One is searched in the span of the neurons with many restarts, the other in input space.
    low, high = mine.smallest, theirs.smallest
    both = low.isfinite() & high.isfinite()
    assert both.double().mean() > 0.9
    assert ((high / low)[both] - 1).abs().median() < 1e-3
    assert (high / low)[both].max() < 1.35
    assert mine.clean_accuracy.item() == theirs.clean_accuracy.item() == 1


def test_nothing_of_a_model_is_changed() -> None:
    model = Opaque(nn.Sequential(nn.Linear(16, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3)))
    model.eval()
    model.inner[0].weight.requires_grad_(False)
    x, y = labelled(model)
    before = {name: t.clone() for name, t in model.state_dict().items()}
    flags = [p.requires_grad for p in model.parameters()]
    SuiteL2().on(model, x, y, RADII)
    assert all(torch.equal(t, model.state_dict()[name]) for name, t in before.items())
    assert flags == [p.requires_grad for p in model.parameters()]
    assert all(p.grad is None for p in model.parameters())
    assert not model.training
    assert x.grad is None
    model.train()
    with pytest.raises(AttackError, match=r"training mode and has BatchNorm1d layers\n.*eval"):
        SuiteL2().on(model, x, y, RADII)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda m, x, y: (m, x[:0], y[:0]), "an empty batch"),
        (lambda m, x, y: (m, x * torch.nan, y), "NaN or infinite"),
        (lambda m, x, y: (m, x, y[:-1]), "expected points x"),
        (lambda m, x, y: (m, x, y + 7), "but the model has 3 scores"),
        (lambda m, x, y: (m, x, y / 2), "whole numbers for labels"),
        (lambda m, x, y: (m, x, y - 1), "whole numbers for labels"),
        (lambda m, x, y: (m, x, y * torch.nan), "whole numbers for labels"),
        (lambda m, x, y: (_poisoned(m), x, y), "NaN or infinite weights"),
        (lambda m, x, y: (nn.Identity(), x.reshape(24, 4, 4), y), r"expected scores \[24 C\]"),
    ],
    ids=["empty", "nan", "shape", "label", "half", "minus", "none", "weights", "outputs"],
)
def test_what_cannot_be_attacked_is_told(spoil, message: str) -> None:
    model = net()
    with pytest.raises(AttackError, match=message):
        SuiteL2().on(*spoil(model, *labelled(model)), RADII)
    with pytest.raises(AttackError, match="non-negative"):
        SuiteL2().on(model, *labelled(model), (-1.0,))


def _poisoned(model: nn.Module) -> nn.Module:
    with torch.no_grad():
        model[0].weight[0, 0] = torch.nan
    return model


def test_data_outside_their_box_are_refused() -> None:
    model = net()
    with pytest.raises(AttackError, match=r"outside the box \[0, 1\]"):
        SuiteL2(box=(0.0, 1.0)).on(model, *labelled(model), RADII)


class Stubborn(Honest):
    """No gradient at all: the label by a comparison."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.detach() @ self.e > 0).float()


def test_a_model_without_gradients_is_an_error_that_says_what_to_use() -> None:
    with pytest.raises(AttackError, match=r"differentiable steps\n.*square, directions, random"):
        SuiteL2().on(Stubborn(), *points(), RADII)


def test_the_box_is_never_left() -> None:
    model = Opaque(net())
    x = torch.rand(20, 16)
    y = model(x).detach().argmax(1)
    seen = []

    class Watched(Opaque):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            assert len(x) > 0
            seen.append((x.min().item(), x.max().item()))
            return super().forward(x)

    SuiteLinf(box=(0.0, 1.0)).on(Watched(model), x, y, (0.1, 0.4))
    assert min(low for low, _ in seen) >= 0
    assert max(high for _, high in seen) <= 1 + 1e-7


def towards(model: Honest, length: float):
    """A plain attack: along the gradient by a given length."""
    return lambda x, y: x - length * (2 * y - 1).unsqueeze(1) * model.e


def test_an_outside_attack_is_judged_by_us() -> None:
    model, (x, y) = Honest(), points()
    f = (x @ model.e * (2 * y - 1)).double()
    held = judge(towards(model, 3.0), model, x, y, radius=3.0)
    assert held.robust_accuracy == float((f > 3).double().mean())
    some = held.radius.isfinite() & (held.radius > 0)
    # Rays of modules are halved 15 times, since each time is a pass.
    torch.testing.assert_close(held.radius[some], f[some], rtol=2e-4, atol=1e-5)
    # Too long, it does not count, and is told.
    cheat = judge(towards(model, 3.1), model, x, y, radius=3.0)
    assert cheat.outside.all()
    assert cheat.robust_accuracy == float((f > 0).double().mean())
    found = outside_curve({"plain": lambda r: towards(model, r)}, model, x, y, RADII)
    wanted = [float((f > r).double().mean()) for r in RADII]
    assert found.robust_accuracy()[0].tolist() == pytest.approx(wanted)
    with pytest.raises(AttackError, match=r"perturbed inputs \(60, 16\), got tuple"):
        judge(lambda x, y: (x, y), model, x, y, 1.0)


def by_foolbox(model: nn.Module, radius: float):
    library = pytest.importorskip("foolbox")
    bound = library.PyTorchModel(model.eval(), bounds=(-30.0, 30.0))
    attack = library.attacks.L2PGD(steps=20, rel_stepsize=0.2, random_start=False)
    return lambda x, y: attack(bound, x, y, epsilons=radius)[1]


def by_torchattacks(model: nn.Module, radius: float):
    library = pytest.importorskip("torchattacks")
    images = nn.Sequential(nn.Flatten(), Stretched(model)).eval()
    attack = library.PGDL2(images, eps=radius / 60, alpha=radius / 300, steps=20)
    return lambda x, y: 60 * attack((x[:, None, None] + 30) / 60, y)[:, 0, 0] - 30


class Stretched(Opaque):
    """The model of inputs that were brought into [0, 1]."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(60 * x - 30)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("made", [by_foolbox, by_torchattacks])
def test_attacks_of_libraries_are_judged_as_ours_are(made) -> None:
    model, (x, y) = Honest(), points(20)
    found = outside_curve({"theirs": lambda r: made(model, r)}, model, x, y, RADII)
    truth = (x @ model.e * (2 * y - 1)).double()
    # A linear model: steps along the gradient end on the sphere, and cannot do better.
    wanted = [float((truth > r).double().mean()) for r in RADII]
    assert found.robust_accuracy()[0].tolist() == pytest.approx(wanted)
    # The same library, clamping to its box without being told of the inputs' own.
    if made is by_torchattacks:
        blind = pytest.importorskip("torchattacks").PGDL2(nn.Sequential(nn.Flatten(), model))
        held = judge(lambda x, y: blind(x[:, None, None], y)[:, 0, 0], model, x, y, 1.0)
        assert held.outside.all()


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_a_linear_representation_is_matched_as_well_as_the_ball_allows(norm: str) -> None:
    x, _ = points(8, d=4)
    target = x.flip(0)
    threat = Threat(norm=norm)
    near = RepresentationPGD(threat, radius=0.5, steps=200)(lambda v: 2 * v, x, target)
    assert (threat.length(near - x) <= 0.5 * (1 + 1e-5)).all()
    wanted = threat.project(x, target - x, torch.full((8,), 0.5)) + x
    best = distances(lambda v: 2 * v, wanted, target)
    mine = distances(lambda v: 2 * v, near, target)
    torch.testing.assert_close(mine, best, rtol=0.02, atol=0.02)
    with pytest.raises(AttackError, match="a target for each point"):
        RepresentationPGD(threat, 0.5)(lambda v: v, x, target[:3])
    with pytest.raises(AttackError, match="not differentiable"):
        RepresentationPGD(threat, 0.5)(lambda v: v.detach(), x, target)
