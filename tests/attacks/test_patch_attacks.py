"""Attacks on patch CNNs: what each moves, that all stay in the ball, that each is judged fairly."""

from __future__ import annotations

import pytest
import torch

from lab import patched, put, times, trained
from unmix.attacks.patch_suite import PUBLISHED, THREATS, PatchPlan, PatchSuite
from unmix.attacks.patch_view import PatchView
from unmix.attacks.threat import Threat
from unmix.data.patches import Patches
from unmix.errors import AttackError
from unmix.experiment import Experiment, Run, Samples, run
from unmix.nets.patch_cnn import NonRobustMinimum, RobustMinimum
from unmix.train.patches import PatchDescent

EVERY = (*THREATS, *PUBLISHED, "patch-strong")
MEMBERS = {m.name: m for m in PatchSuite(attacks=EVERY).members}
EPS = 0.7


def constructed(net, **fields) -> Run:
    data = Patches(**{"k": 3, "d": 12, "patches": 4, "sigma_n": 0.0} | fields)
    still = PatchDescent(steps=0)
    samples = Samples(train=6, test=9)
    return run(Experiment(data=data, net=net, train=still, samples=samples, seeds=(0, 1)))


@pytest.mark.parametrize("name", EVERY)
def test_every_perturbation_that_is_judged_lies_in_the_ball(name: str, monkeypatch) -> None:
    judged = []
    view = PatchView.of(patched(), 6)
    broken = PatchView.broken

    def watched(self, delta):
        judged.append(float(delta.abs().max()))
        return broken(self, delta)

    monkeypatch.setattr(PatchView, "broken", watched)
    MEMBERS[name].success(view, EPS)
    assert len(judged) >= 2
    assert max(judged) <= EPS
    assert max(judged) > 0


@pytest.mark.parametrize("name", EVERY)
def test_a_success_is_one_on_the_net_in_float64(name: str) -> None:
    attacked = patched("dtype=float32")
    view, model = PatchView.of(attacked, 6), attacked.classifier.double()
    x, y = attacked.fresh(6).x.double(), attacked.fresh(6).y
    wrong = model.predict(x) != y
    for delta in MEMBERS[name].search(view, EPS):
        wrong |= model.predict(x + delta.clamp(-EPS, EPS).double()) != y
    assert torch.equal(MEMBERS[name].success(view, EPS), wrong)


def test_the_closed_forms_are_the_formulas() -> None:
    view = PatchView.of(constructed(RobustMinimum(), robust=2), 9)
    batch = view.batch
    u, v = torch.eye(12)[:3].double(), torch.eye(12)[3:6].double()
    found = {name: next(MEMBERS[name].search(view, EPS)) for name in THREATS}
    rival = (batch.y + 1) % 3
    assert not torch.equal(view.rival, batch.y)
    for r, n, p in torch.cartesian_prod(*(torch.arange(s) for s in (2, 9, 4))).tolist():
        y, j, random = int(batch.y[r, n]), int(rival[r, n]), int(view.rival[r, n])
        robust = bool(batch.robust[r, n, p])
        one = {name: delta[r, n, p] for name, delta in found.items()}
        torch.testing.assert_close(one["own-features"], -EPS * (u[y] + v[y]))
        swap = u[j] - u[y] if robust else v[j] - v[y]
        torch.testing.assert_close(one["in-place"], EPS * swap)
        torch.testing.assert_close(one["all-features"], EPS * (u[j] + v[j] - u[y] - v[y]))
        free = torch.zeros(12).double() if robust else EPS * v[random] - v[y]
        torch.testing.assert_close(one["model-free"], free)


def test_all_rivals_are_tried() -> None:
    """One rival class alone is easy to reach: its filter is ten times the others'."""
    attacked = constructed(NonRobustMinimum(gamma=1.0), robust=1)
    for strong in range(3):
        w = attacked.params["w"].clone()
        w[:, strong] *= 10
        found = MEMBERS["in-place"].success(PatchView.of(put(attacked, w=w), 9), 0.4)
        assert torch.equal(found, attacked.fresh(9).y != strong)


@pytest.mark.parametrize("objective", ["Fy", "margin", "ce"])
def test_the_gradient_is_autograds(objective) -> None:
    view = PatchView.of(patched(), 6)
    x, y = view.batch.x.clone().requires_grad_(), view.batch.y.unsqueeze(-1)
    f = view.model.outputs(x)
    own = f.gather(-1, y)[..., 0]
    rival = f.scatter(-1, y, -torch.inf).amax(-1)
    loss = {"Fy": -own, "margin": rival - own, "ce": f.logsumexp(-1) - own}[objective]
    (wanted,) = torch.autograd.grad(loss.sum(), x)
    torch.testing.assert_close(view.ascent(view.batch.x, objective), wanted, rtol=1e-9, atol=1e-13)


def test_a_plan_gives_the_smallest_radius_that_breaks_each_point() -> None:
    # Prop 3.1's net falls to the exchange of v where eps > beta / 2, at any size of its filters.
    attacked = constructed(NonRobustMinimum(), robust=1)
    plan = PatchPlan(PatchSuite(attacks=("in-place", "patch-strong")), (0.2, 0.45, 0.55, 0.9))
    found = plan.curve(attacked)
    assert found.names == ("in-place", "patch-strong")
    assert set(found.by_attack["in-place"].unique().tolist()) == {0.55}
    assert (found.smallest <= found.by_attack["in-place"]).all()
    assert found.robust_accuracy("in-place").tolist() == [[1.0, 1.0, 0.0, 0.0]] * 2
    same = plan.curve(times(attacked, 100.0))
    assert torch.equal(same.smallest, found.smallest)
    assert plan.cost(attacked.experiment) > 0


def test_the_worst_of_the_robust_minimum_is_closed_form() -> None:
    """n_R (alpha - eps) > P eps decides, for filters in the linear part (Prop 3.2, corrected)."""
    attacked = constructed(RobustMinimum(gamma=1e3), robust=1)
    plan = PatchPlan(PatchSuite(attacks=("all-features", "patch-strong")), (0.35, 0.38, 0.39, 0.42))
    radius = plan.curve(attacked).by_attack
    # alpha - eps = P eps at eps = 2/5; the foot of the smoothed ReLU moves it by rho/gamma.
    assert set(radius["all-features"].unique().tolist()) == {0.42}
    assert (radius["patch-strong"] >= 0.42).all()


def test_who_is_wrong_already_has_radius_zero_and_ties_are_wrong() -> None:
    still = put(patched(), w=torch.zeros_like(patched().params["w"]))
    plan = PatchPlan(PatchSuite(attacks=("own-features",)), (0.1,), points=4)
    assert (plan.curve(still).smallest == 0).all()


def test_a_suite_is_a_spec_and_repeats_itself() -> None:
    suite = PatchSuite(attacks=EVERY, step=7.0)
    assert PatchSuite.parse(suite.plain()) == suite
    assert suite.digest() != PatchSuite(attacks=EVERY).digest()
    one, other = (suite.curve(patched(), (EPS,), 4) for _ in range(2))
    assert all(torch.equal(one.by_attack[n], other.by_attack[n]) for n in one.names)


def test_other_runs_and_radii_are_refused() -> None:
    with pytest.raises(AttackError, match="patch CNNs"):
        PatchView.of(trained())
    with pytest.raises(AttackError, match="non-negative"):
        PatchSuite().curve(patched(), (-1.0,))
    torn = put(patched(), w=torch.full_like(patched().params["w"], torch.nan))
    with pytest.raises(AttackError, match="NaN"):
        PatchView.of(torn)


def test_the_outcome_names_its_threat() -> None:
    suite = PatchSuite(attacks=("in-place",))
    found = suite.curve(patched(), (EPS,), 4)
    assert found.threat == suite.threat == Threat(norm="linf")
    assert "linf radius" in str(found)


def test_what_a_search_takes_for_a_success_is_replayed_and_counted(monkeypatch) -> None:
    """The precision of the search errs here by more than any margin: it takes all for broken."""
    suite, grid = PatchSuite(attacks=("own-features", "patch-strong")), (1e-6, 2e-6)
    view = PatchView.of(patched(), 6)
    honest = suite.on(view, grid)
    assert honest.unverified == 0
    assert honest.flags == ()
    every = torch.ones_like(view.batch.y, dtype=torch.bool)
    monkeypatch.setattr(PatchView, "looked", lambda self, delta: (every, every))
    found = suite.on(view, grid)
    assert torch.equal(found.smallest, honest.smallest)
    # Two attacks at two radii.
    assert found.unverified == 4 * int(honest.smallest.isinf().sum()) > 0
    assert any(f"{found.unverified} successes of a search" in flag for flag in found.flags)


def test_a_tie_is_nobodys_false_claim() -> None:
    view = PatchView.of(constructed(NonRobustMinimum(), robust=1), 9)
    v = view.direction("non-robust", view.batch.y)
    rival = view.direction("non-robust", view.rival)
    # Half of the feature is given to a rival: two outputs are equal but for rounding.
    delta = (
        (0.5 * (rival - v)).expand_as(view.batch.x).masked_fill(view.batch.robust.unsqueeze(-1), 0)
    )
    assert view.tied(delta).all()
    assert not view.tied(0.9 * delta).any()


def test_closed_forms_that_beat_the_published_gradient_attacks_are_a_red_flag() -> None:
    # A raw step of next to nothing.
    attacked = constructed(NonRobustMinimum(), robust=1)
    suite = PatchSuite(attacks=("in-place", "one-step"), step=1e-9)
    (flag,) = suite.curve(attacked, (0.55,)).flags
    assert flag.startswith("'in-place' with a closed form beats every gradient attack")
    assert suite.override('attacks=["in-place"]').curve(attacked, (0.55,)).flags == ()
