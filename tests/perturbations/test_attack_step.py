"""Attacks of the house as perturbations of training, beside the built-in FGM."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from small_runs import small_purified
from unmix.attacks import gradient
from unmix.attacks.directions import RandomDirections
from unmix.attacks.gradient import PGD
from unmix.attacks.minimum import MinimumNorm
from unmix.data.sparse_code import SparseCode
from unmix.errors import AttackError, SpecError, UnmixError
from unmix.experiment import Experiment, run
from unmix.nets.contrast import CodeLinear
from unmix.perturbations.attack import AttackStep
from unmix.perturbations.base import Norm, Scene, dense
from unmix.perturbations.gradient import FGM
from unmix.train.contrast import ContrastDescent
from unmix.train.engines.symmetric import SymmetricGemm

CODE = SparseCode(d=12, k=4.0, basis="haar")
TAU = 0.2


def scene(size: float = 1 / 3) -> Scene:
    made = torch.Generator().manual_seed(0)
    w = torch.randn(2, 30, 12, generator=made).double() * size
    w = w + size * CODE.label_vector((0, 1)).unsqueeze(1)
    params = {"w": w, "b": torch.tensor([0.2, 0.2]), "sigma": torch.tensor([0.02, 0.02])}
    learner = SymmetricGemm.still(params, reach=9.0)
    return Scene(learner, CODE.label_vector((0, 1)), CODE.dictionary((0, 1)), (0, 1), "test")


def points(n: int = 60):
    return CODE.override("basis=identity").codes((0, 1), n, "train")


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_fgm_as_an_attack_is_the_built_in_one(norm: Norm) -> None:
    at, (x, y) = scene(), points()
    wanted = FGM(norm=norm).perturb(at, x, y, TAU)
    both = AttackStep(norm=norm, attack=gradient.FGM()).perturb(at, x, y, TAU)
    torch.testing.assert_close(both, wanted, rtol=1e-10, atol=1e-12)
    # By itself it speaks of the points that it fools: those that were right and no longer are.
    alone = AttackStep(norm=norm, attack=gradient.FGM(), otherwise="nothing").perturb(at, x, y, TAU)
    before, after = ((y * at.learner.outputs(dense(x) + d)) for d in (0 * wanted, wanted))
    fooled = (before > 0) & (after < 0)
    assert 0.02 < fooled.double().mean() < 0.9
    torch.testing.assert_close(alone[fooled], wanted[fooled], rtol=1e-10, atol=1e-12)
    assert (alone[~fooled] == 0).all()


@pytest.mark.parametrize("attack", [PGD(steps=10, restarts=2), MinimumNorm()], ids=["pgd", "min"])
def test_stronger_attacks_fool_more_points(attack) -> None:
    at, (x, y) = scene(), points()
    before = at.learner.w.clone()

    def fooled(rule) -> torch.Tensor:
        return y * at.learner.outputs(dense(x) + rule.perturb(at, x, y, TAU)) < 0

    step = AttackStep(attack=attack)
    assert fooled(step).sum() >= fooled(FGM()).sum()
    moved = AttackStep(attack=attack, otherwise="nothing").perturb(at, x, y, TAU)
    assert ((moved.norm(dim=-1) - TAU).abs() < 1e-9)[moved.norm(dim=-1) > 0].all()
    assert torch.equal(at.learner.w, before), "the learner stays as it is"


def test_a_step_has_its_own_random_starts_and_replicas_share_nothing() -> None:
    at, (x, y) = scene(), points(20)
    rule = AttackStep(attack=PGD(steps=5, restarts=4), otherwise="nothing")
    both = rule.perturb(at, x, y, TAU)
    torch.testing.assert_close(rule.perturb(at.one(1), x.one(1), y[1:], TAU)[0], both[1])
    drawn = AttackStep(attack=RandomDirections(draws=30), otherwise="nothing")
    one, same = (drawn.perturb(at, x, y, TAU) for _ in range(2))
    assert one.any()
    assert torch.equal(one, same)
    assert not torch.equal(one, drawn.perturb(replace(at, purpose="later"), x, y, TAU))


def test_a_dead_net_is_left_alone() -> None:
    at, (x, y) = scene(size=1e-4), points(20)
    assert (at.learner.outputs(x).abs() < 1e-9).all()
    assert (AttackStep(attack=PGD()).perturb(at, x, y, TAU) == 0).all()


def test_training_against_fgm_as_an_attack_is_training_against_fgm() -> None:
    short = ("train.steps=12", "train.clean.steps=80", "dtype=float64", "data.basis=haar")
    plain = run(small_purified(*short))
    named = run(small_purified(*short, "train.attack.kind=attack", "train.attack.attack.kind=fgm"))
    moved = plain.params["w"] - plain.trace.final["before"]
    assert moved.norm() > 0.05 * plain.params["w"].norm()
    torch.testing.assert_close(named.params["w"], plain.params["w"], rtol=1e-7, atol=1e-9)
    for name, column in plain.trace.columns.items():
        torch.testing.assert_close(named.trace.columns[name], column, rtol=1e-6, atol=1e-9)


def test_a_collapse_is_seen_under_any_attack() -> None:
    e = small_purified("train.tau=2.0", "train.steps=60", "train.clean.schedule.decay=0.1")
    done = run(e.override("train.attack.kind=attack", "train.attack.attack.kind=fgm", "seeds=[3]"))
    assert {stop.reason for stop in done.trace.stops} == {"collapsed"}


def test_learners_for_contrast_train_against_it_too() -> None:
    trained = []
    for attack in (FGM(), AttackStep(attack=gradient.FGM())):
        train = ContrastDescent(steps=8, batch=40, tau=0.1, attack=attack)
        e = Experiment(data=CODE, net=CodeLinear(), train=train, seeds=(0, 1))
        trained.append(run(e).params["v"])
    torch.testing.assert_close(*trained, rtol=1e-5, atol=1e-7)


def test_what_is_no_single_attack_is_refused() -> None:
    with pytest.raises(SpecError, match="suite-l2 is a union of attacks"):
        small_purified("train.attack.kind=attack", "train.attack.attack.kind=suite-l2")
    with pytest.raises(UnmixError, match="fggm"):
        small_purified("train.attack.kind=attack", "train.attack.attack.kind=fggm")
    at, (x, y) = scene(), points(5)
    rule = AttackStep.parse({"attack": {"kind": "label-direction"}})
    with pytest.raises(AttackError, match="label-direction needs more than a learner"):
        rule.perturb(at, x, y, TAU)
