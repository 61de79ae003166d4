"""What every certificate must do, on every net; a new one is tested as soon as the catalog has it.

The sandwich law is checked here on every net of the catalog that has a normal form.
"""

from __future__ import annotations

import pytest
import torch

from lab import gaussian, still, trained, trained_fine
from unmix import catalog, certificate
from unmix.attacks.minimum import MinimumNorm
from unmix.attacks.suite import SuiteL2, SuiteLinf
from unmix.certify.base import (
    STATUSES,
    UNSUPPORTED,
    Certifier,
    Question,
    lengths,
    sandwich,
)
from unmix.data.clusters import Clusters
from unmix.errors import SpecError
from unmix.experiment import Run
from unmix.nets.base import Net

MEMBERS = {name: catalog.load("certify", name) for name in catalog.names("certify")}
SMALL = Clusters(k=4, d=32)
POINTS = 4


def made(name: str) -> Certifier:
    """At a size for tests."""
    sizes = {"brute-force": {"most": 6}, "subsets": {"most": 6}, "softmax-dual": {"rounds": 2}}
    sizes |= {"merged-l2": {"nodes": 200}}
    sizes |= {exact: {"nodes": 200} for exact in ("exact-l2", "exact-linf", "softmax-exact")}
    return MEMBERS[name](**sizes.get(name, {}))


def of_norm(norm: str) -> dict[str, Certifier]:
    """Those that speak of a norm, some of several."""
    found = {}
    for name in MEMBERS:
        mine = made(name)
        if "threat" in type(mine).model_fields:
            mine = mine.model_copy(update={"threat": norm})
        if mine.norm == norm:
            found[name] = mine
    return found


def built(name: str) -> Run:
    """A net of the catalog as it starts, with weights of size 1 where it draws them."""
    net = catalog.load("nets", name)()
    sizes = {field: 1.0 for field in ("sigma_w", "sigma_b", "sigma") if hasattr(net, field)}
    return still(type(net)(**sizes), SMALL, test=POINTS)


def two_layer(name: str) -> bool:
    net = catalog.load("nets", name)
    return issubclass(net, Net) and SMALL.__class__ in getattr(net, "takes", (Clusters,))


RUNS = {
    "binary": trained,
    "k-class": trained_fine,
    "single precision": lambda: trained("dtype=float32"),
    "random": lambda: gaussian(trained(), seed=3),
    "random, k-class": lambda: gaussian(trained_fine(), seed=3),
} | {
    f"{name}, built": lambda name=name: built(name)
    for name in catalog.names("nets")
    if two_layer(name)
}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("suite", "norm"), [(SuiteL2, "l2"), (SuiteLinf, "linf")])
@pytest.mark.parametrize("label", RUNS)
def test_no_attack_lies_below_any_certificate(label: str, suite: type, norm: str) -> None:
    run = RUNS[label]()
    suite = suite(minimum=MinimumNorm(steps=10))
    largest = run.data.unit * (1.0 if norm == "l2" else SMALL.d**-0.5)
    radii = [share * largest for share in (0.25, 0.75, 1.5)]
    attacked = suite.curve(run, radii, points=POINTS)
    asked = Question.of(run, POINTS)
    uppers = [attacked.smallest.double()]
    lowers = []
    for name, mine in of_norm(norm).items():
        if asked.form.w.shape[1] > getattr(mine, "most", torch.inf):
            continue
        found = mine.answer(asked)
        sandwich(found.lower, attacked.smallest, f"{label}: an attack beside {name}")
        if (found.status != UNSUPPORTED).all():
            uppers.append(found.upper)
            lowers.append(found.lower)
    if not lowers:
        assert (norm, asked.reading) == ("linf", "difference"), "no certificate knows this net"
        return
    # Of one net all certificates speak: none may lie above another's witness.
    sandwich(torch.stack(lowers).amax(0), torch.stack(uppers).amin(0), label)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", MEMBERS)
def test_witnesses_hold_on_the_untouched_net(name: str) -> None:
    for label in ("binary", "random", "k-class"):
        run = RUNS[label]()
        before = {n: p.clone() for n, p in run.params.items()}
        found = certificate(run, made(name), points=POINTS)
        assert found.lower.shape == found.upper.shape == found.status.shape == (2, POINTS)
        batch, reached = run.fresh(POINTS), found.upper.isfinite()
        moved = run.model.double().predict(batch.x.double() + found.witness)
        assert (moved != batch.y)[reached].all()
        torch.testing.assert_close(
            lengths(found.witness, found.norm)[reached], found.upper[reached], rtol=1e-12, atol=0
        )
        lost = run.model.double().predict(batch.x.double()) != batch.y
        assert (found.lower[lost] == 0).all()
        assert (found.upper[lost] == 0).all()
        assert all(torch.equal(run.params[n], p) for n, p in before.items())
        assert found.method == name
        assert sum(found.counts[s] for s in STATUSES) == found.lower.numel()
        if found.counts["unsupported"]:
            assert found.why


@pytest.mark.parametrize("name", MEMBERS)
def test_it_is_a_spec(name: str) -> None:
    mine = MEMBERS[name]()
    assert type(mine).parse(mine.plain()) == mine
    with pytest.raises(SpecError):
        type(mine)(strength=1)
