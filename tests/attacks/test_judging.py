"""The base class replays every perturbation, keeps the books, and touches nothing."""

from __future__ import annotations

from typing import Literal

import pytest
import torch

from lab import gaussian, put, still, trained, trained_fine
from unmix.attacks.base import Attack, Found, attack
from unmix.attacks.directions import AverageDirection, NearestOpposite, RandomDirections
from unmix.attacks.gradient import PGD
from unmix.attacks.line import Line
from unmix.attacks.minimum import MinimumNorm
from unmix.attacks.problem import problems
from unmix.attacks.suite import SuiteL2, robustness
from unmix.attacks.threat import Threat
from unmix.data.clusters import Clusters
from unmix.errors import AttackError
from unmix.nets.constructed import FeatureAveraging
from unmix.nets.two_layer import TwoLayer

DATA = Clusters(k=4, d=32, sigma=0.0)
RADII = (1.0, 2.0, 3.0, 4.0)
ALL = (
    AverageDirection(),
    NearestOpposite(),
    RandomDirections(draws=2),
    PGD(steps=10, restarts=3),
    MinimumNorm(steps=6),
)


def averaging():
    return still(FeatureAveraging(), DATA, test=6)


class Scripted(Attack):
    """Claims a step of a length that a test wrote down, along -y u."""

    kind: Literal["scripted"] = "scripted"
    length: float = 1.0

    def search(self, problem, radii) -> Found:
        u = problem.data.signs @ problem.centres
        step = -problem.batch.y[0][:, None] * u / u.norm()
        return Found(self.length * step, torch.ones_like(problem.right))


class Spoilt(Scripted):
    """The same with numbers that are none."""

    def search(self, problem, radii) -> Found:
        found = super().search(problem, radii)
        found.delta[:3, 5], found.delta[3:, 7] = torch.nan, torch.inf
        return found


# f_FA flips along u at |mu|/sqrt k = sqrt(32/4) = 2.83.
EDGE = 8**0.5


@pytest.mark.parametrize("length", [2.83, 3.5, 30.0])
def test_a_success_is_shortened_to_the_edge_of_its_own_ray(length: float) -> None:
    found = attack(averaging(), [Scripted(length=length)], RADII)
    torch.testing.assert_close(
        found.smallest, torch.full((1, 6), EDGE, dtype=torch.float64), rtol=1e-8, atol=0
    )
    assert found.unverified == 0


@pytest.mark.parametrize("length", [2.82, 0.0, -2.9, 1e308])
def test_only_what_fools_the_model_counts(length: float) -> None:
    check_that_none_counts(Scripted(length=length))


def test_numbers_that_are_none_never_count() -> None:
    check_that_none_counts(Spoilt(length=3.5))


def check_that_none_counts(script: Attack) -> None:
    found = attack(averaging(), [script], RADII)
    assert found.smallest.isinf().all()
    assert found.unverified == 6
    assert found.robust_accuracy().tolist() == [[1.0] * 4]


def test_a_search_may_fall_short_by_its_own_rounding() -> None:
    found = attack(averaging(), [Scripted(length=EDGE * (1 - 3e-6))], RADII)
    assert found.unverified == 0
    assert found.smallest.tolist() == [pytest.approx([EDGE] * 6, rel=1e-5)]


def test_a_misclassified_point_has_radius_zero() -> None:
    run = averaging()
    against = put(run, w=run.params["w"].flip(1), b=run.params["b"])
    found = attack(against, ALL, RADII)
    assert all((radius == 0).all() for radius in found.by_attack.values())
    assert found.robust_accuracy().tolist() == [[0.0] * 4]
    assert found.unverified == 0


def test_on_the_boundary_zero_is_minus_one() -> None:
    # f = relu(<mu_0, x>)/m with nothing against it: 0 on every negative centre.
    run = still(TwoLayer(m=1, sigma_w=0.0, sigma_b=0.0), Clusters(k=2, d=8, sigma=0.0), test=6)
    mu = run.centres[0]
    w = torch.stack([mu[0], torch.zeros(8, dtype=torch.float64)])
    found = attack(put(run, w=w[None], b=torch.zeros(1, 2)), ALL, RADII)
    y = run.test_batch.y
    # y = -1 is right, and the smallest step towards mu_0 is enough to be wrong.
    assert found.smallest[y < 0].max() < 1e-9
    assert found.smallest[y < 0].min() > 0
    # y = +1 must undo all of <mu_0, x> = d: length |mu|.
    assert found.smallest[y > 0].tolist() == pytest.approx([8**0.5] * int((y > 0).sum()), rel=1e-3)
    nothing = put(run, w=torch.zeros(1, 2, 8), b=torch.zeros(1, 2))
    found = attack(nothing, ALL, RADII)
    assert (found.smallest[y > 0] == 0).all()
    assert found.smallest[y < 0].isinf().all()


@pytest.mark.parametrize("radii", [(), (-0.1, 1.0), (float("nan"),), (1.0, float("inf"))])
def test_radii_must_be_some_finite_and_not_negative(radii: tuple) -> None:
    with pytest.raises(AttackError, match="non-negative finite radii"):
        attack(averaging(), ALL, radii)
    with pytest.raises(AttackError, match="non-negative finite radii"):
        robustness(averaging(), radii)


def test_an_attack_needs_attacks_and_points() -> None:
    with pytest.raises(AttackError, match="at least one attack"):
        attack(averaging(), [], RADII)
    for points in (0, -3):
        with pytest.raises(AttackError, match=f"at least one point to attack, got points={points}"):
            attack(averaging(), ALL, RADII, points=points)
    with pytest.raises(AttackError, match="two attacks have one name"):
        attack(averaging(), [PGD(steps=3), PGD(steps=9)], RADII)


@pytest.mark.parametrize("name", ["w", "b"])
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_refused(name: str, bad: float) -> None:
    run = averaging()
    params = {n: p.clone() for n, p in run.params.items()}
    params[name][0, 0] = bad
    with pytest.raises(AttackError, match=r"NaN or infinite weights\n.*why the run stopped"):
        attack(put(run, **params), ALL, RADII)


def test_nothing_of_the_model_is_changed() -> None:
    for run in (trained(), trained_fine()):
        before = {n: p.clone() for n, p in run.params.items()}
        state = torch.get_rng_state()
        attack(run, ALL, RADII)
        assert all(torch.equal(run.params[n], p) for n, p in before.items())
        assert not any(p.requires_grad or p.grad is not None for p in run.params.values())
        assert torch.equal(torch.get_rng_state(), state)


def test_weights_with_gradients_are_attacked_as_any_others() -> None:
    run = trained()
    wanted = attack(run, ALL, RADII)
    leaves = {n: p.clone().requires_grad_() for n, p in run.params.items()}
    found = attack(type(run)(run.experiment, leaves, run.trace), ALL, RADII)
    assert torch.equal(found.smallest, wanted.smallest)
    assert not found.smallest.requires_grad
    assert all(p.requires_grad and p.grad is None for p in leaves.values())


def test_an_attack_is_a_function_of_its_arguments() -> None:
    for run in (trained(), trained_fine()):
        one, other = attack(run, ALL, RADII), attack(run, ALL, RADII)
        for name in one.by_attack:
            assert torch.equal(one.by_attack[name], other.by_attack[name])


FIXED = (AverageDirection(), NearestOpposite(), RandomDirections(), PGD(start="clean"))


def test_more_points_do_not_change_the_others() -> None:
    run = trained_fine()
    few, many = (attack(run, FIXED, RADII, points=n) for n in (3, 8))
    for name in few.by_attack:
        torch.testing.assert_close(
            many.by_attack[name][:, :3], few.by_attack[name], rtol=1e-12, atol=0
        )
    assert few.smallest.shape == (2, 3)


def test_points_default_to_all_test_points() -> None:
    assert attack(trained(), FIXED[:1], RADII).smallest.shape == (2, 8)
    assert attack(trained(), FIXED[:1], RADII, points=20).smallest.shape == (2, 20)


def test_replicas_do_not_see_each_other() -> None:
    both = attack(trained_fine(), FIXED, RADII)
    alone = attack(trained_fine("seeds=[1]"), FIXED, RADII)
    for name in both.by_attack:
        torch.testing.assert_close(
            both.by_attack[name][1:], alone.by_attack[name], rtol=1e-6, atol=0
        )


def test_directions_do_not_depend_on_the_radii() -> None:
    run = trained()
    one, other = attack(run, FIXED[:3], (1.0,)), attack(run, FIXED[:3], (0.5, 2.0, 9.0))
    for name in one.by_attack:
        assert torch.equal(one.by_attack[name], other.by_attack[name])


def test_accuracies_are_read_off_the_smallest_radii() -> None:
    run = gaussian(trained(), seed=1)
    found = attack(run, ALL[:2], (0.5, 3.0, 1.0, 1.0, 0.0), control=ALL[2:])
    assert found.radii == (0.0, 0.5, 1.0, 1.0, 3.0)
    assert found.names == ("average-direction", "nearest-opposite")
    smallest = torch.minimum(*found.by_attack.values())
    assert torch.equal(found.smallest, smallest)
    for e, radius in enumerate(found.radii):
        assert torch.equal(found.success[:, e], smallest <= radius)
        wanted = (smallest > radius).double().mean(1)
        torch.testing.assert_close(found.robust_accuracy()[:, e], wanted)
    assert (found.robust_accuracy().diff(dim=1) <= 0).all()
    torch.testing.assert_close(found.robust_accuracy()[:, 0], run.model.accuracy(run.test_batch))
    names = [found.names[i] for i in found.winner.flatten().tolist()]
    for name, value, at in zip(names, smallest.flatten(), range(16), strict=True):
        assert found.by_attack[name].flatten()[at] == value
    for name in ("pgd", "random", "average-direction"):
        every = found.by_attack | found.control
        torch.testing.assert_close(found.mean_radius(name), every[name].mean(1) / found.unit)
        wanted = (every[name] > 1.0).double().mean(1)
        torch.testing.assert_close(found.robust_accuracy(name)[:, 2], wanted)
    with pytest.raises(AttackError, match=r"no attack 'fgm'.*\n.*average-direction"):
        found.robust_accuracy("fgm")


def test_controls_do_not_join_the_union() -> None:
    found = attack(averaging(), [RandomDirections(draws=1)], RADII, control=[AverageDirection()])
    assert (found.control["average-direction"] < found.smallest).all()


def test_a_result_prints_a_row_an_attack() -> None:
    found = attack(averaging(), ALL[:2], RADII, control=[RandomDirections(draws=1)])
    lines = str(found).splitlines()
    assert [line.split()[0] for line in lines] == [
        "radius",
        "union",
        "average-direction",
        "nearest-opposite",
        "random",
    ]
    assert lines[0].split()[3:] == [f"{r / 32**0.5:.3f}" for r in RADII]
    assert lines[1].split()[1:] == ["1.000", "1.000", "0.000", "0.000"]


def test_relative_radii_are_in_units_of_the_signal() -> None:
    run = trained("data.alpha=0.5")
    found = robustness(run, (0.2, 0.4), points=2, suite=SuiteL2(pgd=PGD(steps=2, restarts=1)))
    assert found.radii == pytest.approx((0.1 * 32**0.5, 0.2 * 32**0.5))
    assert found.smallest.shape == (2, 2)
    assert found.names == (
        "average-direction",
        "nearest-opposite",
        "other-means",
        "min-norm",
        "pgd",
        "fgm",
    )
    assert set(found.control) == {"pgd-clean-start", "random"}


def test_a_ray_stops_at_its_first_crossing() -> None:
    run = averaging()
    (problem,) = problems(run, Threat(), 4.0, 6)
    u = run.centres[0, 2] - run.centres[0, 0]
    direction = (u / u.norm()).expand(6, 32)
    first = Line.of(problem, direction, torch.arange(6)).first()
    for t, x, y in zip(first, run.test_batch.x[0], run.test_batch.y[0], strict=True):
        fine = torch.linspace(0, problem.reach, 20_001, dtype=torch.float64)[1:]
        hits = fine[run.model.predict((x + fine[:, None] * direction[0])[None])[0] != y]
        if len(hits):
            assert hits[0] - problem.reach / 20_000 - 1e-6 <= t <= hits[0] + 1e-6
        else:
            assert t.isinf()
    assert first.isfinite().any()
    assert first.isinf().any()
