"""What every attack must do; a new one is tested as soon as the catalog lists it.

Everything an attack reports is replayed here on the untouched model in float64, with the shapes of
all that it calls checked on the way.
"""

from __future__ import annotations

import pytest
import torch

from lab import gaussian, still, times, trained, trained_fine
from unmix import catalog
from unmix.attacks.base import Attack, attack
from unmix.attacks.gradient import PGD
from unmix.attacks.minimum import MinimumNorm
from unmix.attacks.problem import problems
from unmix.attacks.suite import Suite
from unmix.attacks.threat import Threat
from unmix.data.clusters import Clusters
from unmix.errors import SpecError
from unmix.experiment import Run
from unmix.nets.constructed import FeatureAveraging, FeatureDecoupling, NonRobustMultiClass

MEMBERS = {name: catalog.load("attacks", name) for name in catalog.names("attacks")}
# Closed forms of other data, and what needs a second run, have their own tests.
ELSEWHERE = {"label-direction", "transfer"}
ATTACKS = {n: m for n, m in MEMBERS.items() if issubclass(m, Attack) and n not in ELSEWHERE} | {
    "pgd, clean start": lambda: PGD(start="clean"),
}
SUITES = [n for n, m in MEMBERS.items() if issubclass(m, Suite)]
SMALL = Clusters(k=4, d=32)
RUNS = {
    "binary": trained,
    "k-class": trained_fine,
    "single precision": lambda: trained("dtype=float32"),
    "random": lambda: gaussian(trained(), seed=3),
    "random, k-class": lambda: gaussian(trained_fine(), seed=3),
    "averaging": lambda: still(FeatureAveraging(), SMALL, test=8, seeds=(0, 1)),
    "decoupling": lambda: still(FeatureDecoupling(), SMALL, test=8, seeds=(0, 1)),
    "non-robust": lambda: still(NonRobustMultiClass(), SMALL, test=8, seeds=(0, 1)),
}
SHARES = (0.25, 0.75, 1.5)


def make(name: str) -> Attack:
    """The attack at a size for tests."""
    sizes = {"pgd": {"steps": 10, "restarts": 3}, "min-norm": {"steps": 8, "hops": 1}}
    sizes |= {"apgd": sizes["pgd"], "pgd-targeted": sizes["pgd"], "square": {"queries": 40}}
    small = sizes.get(name, {})
    return ATTACKS[name](**small)


def radii(run: Run) -> list[float]:
    return [share * run.data.alpha * run.data.unit for share in SHARES]


@pytest.mark.parametrize("label", RUNS)
@pytest.mark.parametrize("name", ATTACKS)
def test_whatever_is_reported_fools_the_model(name: str, label: str) -> None:
    run, mine = RUNS[label](), make(name)
    made = problems(run, Threat(), max(radii(run)), 4)
    for r, problem in enumerate(made):
        held = mine.judged(problem, radii(run))
        assert held.unverified == 0
        assert held.radius.shape == (4,)
        assert held.delta.shape == (4, 32)
        assert (held.radius >= 0).all()
        model, batch = run.model.double(), run.fresh(4)
        x, y = batch.x[r].double(), batch.y[r].double()
        clean = model.predict(batch.x.double())[r] != y
        assert torch.equal(held.radius == 0, clean)
        outputs = torch.relu((x + held.delta) @ model.w[r].mT + model.b[r]) @ model.readout
        if outputs.shape[-1] == 1:
            f = outputs[..., 0]
        else:
            side = model.class_signs > 0
            f = outputs[..., side].logsumexp(-1) - outputs[..., ~side].logsumexp(-1)
        reported = held.radius.isfinite() & ~clean
        assert (torch.where(f > 0, 1.0, -1.0) != y)[reported].all()
        length = held.delta.norm(dim=-1)
        torch.testing.assert_close(length[reported], held.radius[reported], rtol=1e-12, atol=0)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", ATTACKS)
def test_it_never_beats_the_lipschitz_bound(name: str) -> None:
    for label in ("binary", "k-class", "random"):
        run = RUNS[label]()
        radius = attack(run, [make(name)], radii(run), points=4).smallest
        margin = run.model.decision(run.fresh(4).x).abs()
        right = run.model.predict(run.fresh(4).x) == run.fresh(4).y
        assert (radius >= margin / run.model.lipschitz[:, None] * (1 - 1e-9))[right].all()


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", ATTACKS)
def test_it_is_deterministic_and_touches_nothing(name: str) -> None:
    run = trained()
    before = {n: p.clone() for n, p in run.params.items()}
    state = torch.get_rng_state()
    one, other = (attack(run, [make(name)], radii(run), points=3).smallest for _ in range(2))
    assert torch.equal(one, other)
    assert all(torch.equal(run.params[n], p) for n, p in before.items())
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("scale", [1e-2, 1e3])
@pytest.mark.parametrize("name", ATTACKS)
def test_the_scale_of_a_binary_nets_output_does_not_matter(name: str, scale: float) -> None:
    run = gaussian(trained(), seed=5)
    one, other = (attack(r, [make(name)], radii(run), points=3) for r in (run, times(run, scale)))
    assert one.smallest.isfinite().any()
    torch.testing.assert_close(other.smallest, one.smallest, rtol=1e-6, atol=0)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", ATTACKS)
def test_accuracy_falls_with_the_radius_and_starts_at_the_clean_one(name: str) -> None:
    run = gaussian(trained_fine(), seed=6)
    found = attack(run, [make(name)], [0.0, *radii(run)], points=8)
    accuracy = found.robust_accuracy()
    assert (accuracy.diff(dim=1) <= 0).all()
    torch.testing.assert_close(accuracy[:, 0], run.model.accuracy(run.test_batch))
    assert (found.success.int().diff(dim=1) >= 0).all()


@pytest.mark.parametrize("name", MEMBERS)
def test_it_is_a_spec(name: str) -> None:
    mine = MEMBERS[name]()
    assert type(mine).parse(mine.plain()) == mine
    with pytest.raises(SpecError):
        type(mine)(strength=1)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", SUITES)
def test_a_suite_is_the_point_wise_union_of_its_members(name: str) -> None:
    suite = MEMBERS[name](minimum=MinimumNorm(steps=3), pgd=PGD(steps=5, restarts=2))
    assert isinstance(suite, Suite)
    run, shares = trained_fine(), [r / (1 if name == "suite-l2" else 6) for r in radii(trained())]
    found = suite.curve(run, shares, points=2)
    mine = [m for m in suite.members if m.name in found.names]
    assert found.names == tuple(member.name for member in mine)
    # A suite of one attack says so by its name; that of sparse codes has no form for clusters.
    closed = set() if name == "suite-code" else {"average-direction"}
    assert name == "suite-of-one" or {"min-norm", "pgd"} | closed <= set(found.names)
    assert set(found.control) == {member.name for member in suite.controls}
    alone = [attack(run, [m], shares, points=2, threat=suite.threat).smallest for m in mine]
    torch.testing.assert_close(found.smallest, torch.stack(alone).amin(0), rtol=0, atol=0)
