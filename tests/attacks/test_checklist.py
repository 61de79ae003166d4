"""The standing self-test: planted broken models are attacked all the same, and flagged."""

from __future__ import annotations

import pytest
import torch

from lab import still
from planted import BROKEN, Honest, points
from unmix.attacks.checklist import Audit, audit, audit_run
from unmix.attacks.gradient import PGD
from unmix.attacks.minimum import MinimumNorm
from unmix.attacks.suite import SuiteL2
from unmix.data.clusters import Clusters
from unmix.nets.prelu_constructed import PReLUSubclasses

SUITE = SuiteL2(minimum=MinimumNorm(steps=10), pgd=PGD(steps=20, restarts=2))
RADII = (1.0, 2.0, 3.0, 4.0, 6.0)


def audited(model: Honest) -> Audit:
    return audit(model, *points(), RADII, SUITE)


def truth() -> torch.Tensor:
    """Robust accuracy of the honest model."""
    x, y = points()
    f = (x @ Honest().e).double() * (2 * y - 1)
    return torch.stack([(f > r).double().mean() for r in RADII])


def test_an_honest_model_has_no_red_flag_and_its_true_curve() -> None:
    found = audited(Honest())
    assert found.red == ()
    assert found.attacked.flags == ()
    torch.testing.assert_close(found.attacked.robust_accuracy()[0], truth())
    questions = {f.question for f in found.findings}
    assert {"verified", "clean", "curve", "gradient", "scale", "iteration"} <= questions
    assert "!" not in str(found)


def test_a_large_scale_masks_the_cross_entropy_and_nothing_else() -> None:
    found = audited(BROKEN["scale"]())
    torch.testing.assert_close(found.attacked.robust_accuracy()[0], truth())
    told = {f.told for f in found.findings if f.status == "note"}
    assert any("cross-entropy would report" in text for text in told)
    assert found.red == ()


@pytest.mark.parametrize("name", ["clamped", "quantised", "saturating", "straight-through"])
def test_a_model_that_hides_its_gradient_is_flagged(name: str) -> None:
    found = audited(BROKEN[name]())
    assert "gradient" in {f.question for f in found.red}
    assert "! " in str(found)
    # The directions do not care: the union is not much above the truth of the honest model.
    assert (found.attacked.robust_accuracy()[0] - truth()).max() <= 0.1


def test_saturated_probabilities_are_told_from_logits() -> None:
    assert "outputs" in {f.question for f in audited(BROKEN["saturating"]()).red}


def test_random_outputs_are_flagged() -> None:
    assert "deterministic" in {f.question for f in audited(BROKEN["random"]()).red}


def test_a_saddle_is_left_by_directions_and_the_blind_start_is_named() -> None:
    # F^(3) at its centres: relu^3 is flat towards every other centre, the truth is 1/sqrt 2.
    data = Clusters(k=4, d=16, sigma=0.02, scale="unit")
    run = still(PReLUSubclasses(p=3.0), data, test=12)
    found = audit_run(run, (0.5, 0.68, 0.74, 0.9), SUITE)
    assert found.attacked.robust_accuracy()[0].tolist() == [1.0, 1.0, 0.0, 0.0]
    blind = found.attacked.robust_accuracy("pgd-clean-start")[0, 2]
    assert blind > 0.9
    (told,) = [f for f in found.findings if f.question == "clean start"]
    assert told.status == "note"


def test_flags_are_printed_beside_the_accuracy() -> None:
    found = SUITE.on(BROKEN["quantised"](), *points(), RADII)
    assert any("no gradient at 100.0%" in flag for flag in found.flags)
    assert str(found).splitlines()[-1].startswith("! ")
