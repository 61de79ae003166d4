"""The suite of symmetric nets, and what attacks see of them."""

from __future__ import annotations

import pytest
import torch

from lab import purified, trained
from unmix.attacks.base import attack
from unmix.attacks.coded import CodeSuite, cleanly_trained
from unmix.attacks.directions import LabelDirection
from unmix.attacks.gradient import PGD
from unmix.attacks.minimum import MinimumNorm
from unmix.attacks.target import FormTarget
from unmix.errors import AttackError

SUITE = CodeSuite(
    minimum=MinimumNorm(steps=4, starts=1, draws=1, hops=0, polish=0), pgd=PGD(steps=4, restarts=1)
)


def test_the_target_equals_the_normal_form() -> None:
    run = purified("seeds=[3]")
    model = run.classifier.double()
    plain, own = FormTarget.of(model.form), model.target()
    made = torch.Generator().manual_seed(0)
    x = torch.randn(30, 24, generator=made, dtype=torch.float64) / 3

    def lowered(scores: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return scores[:, 1] - scores[:, 0], torch.tensor([-1.0, 1.0]).double().expand_as(scores)

    torch.testing.assert_close(own.scores(x), plain.scores(x))
    for mine, theirs in zip(own.pull(x, lowered), plain.pull(x, lowered), strict=True):
        torch.testing.assert_close(mine, theirs)
    # In single precision branches five sigma below the threshold are left out.
    single = run.classifier.target()
    torch.testing.assert_close(
        single.scores(x.float()).double(), plain.scores(x), rtol=1e-4, atol=1e-5
    )
    torch.testing.assert_close(single.double().scores(x), plain.scores(x))


@pytest.mark.usefixtures("unchecked")
def test_what_the_suite_reports_fools_the_net_and_before_means_before() -> None:
    run = purified()
    after, before = (
        s.curve(run, (0.1, 0.3, 0.6), 20) for s in (SUITE, SUITE.override("weights=before"))
    )
    assert after.names[0] == "label-direction"
    # Of 160 successes, found in single precision.
    assert after.unverified <= 8
    median = after.smallest.median(1).values, before.smallest.median(1).values
    assert (median[0] > median[1]).all()
    alone = SUITE.curve(cleanly_trained(run), (0.1, 0.3, 0.6), 20)
    torch.testing.assert_close(alone.smallest, before.smallest, rtol=0, atol=0)
    assert cleanly_trained(run).parent == run.experiment.digest()


@pytest.mark.usefixtures("unchecked")
def test_the_labels_direction_is_the_universal_perturbation() -> None:
    run = purified()
    found = attack(run, [LabelDirection()], (2.0,), points=20).smallest
    x, y = run.fresh(20).x.double(), run.fresh(20).y.double()
    w = torch.nn.functional.normalize(run.data.label_vector(run.experiment.seeds), dim=-1)
    model = run.classifier.double()
    hit = found.isfinite() & (found > 0)
    assert hit.double().mean() > 0.5
    length = torch.where(hit, found, 0.0)
    moved = x - (length * y).unsqueeze(-1) * w.unsqueeze(1)
    assert ((y * model.decision(moved) <= 0) | ~hit).all()
    short = x - (0.999 * length * y).unsqueeze(-1) * w.unsqueeze(1)
    assert ((y * model.decision(short) > 0) | ~hit).all()


def test_only_a_run_with_an_adversarial_part_has_a_before() -> None:
    with pytest.raises(AttackError, match="before adversarial training"):
        cleanly_trained(trained())
