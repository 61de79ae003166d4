"""PGD: what restarts and refinement are for."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from lab import gaussian, still, trained
from unmix.attacks.base import attack
from unmix.attacks.gradient import PGD, TargetedPGD
from unmix.attacks.problem import module_problem, problems
from unmix.attacks.threat import Threat
from unmix.data.clusters import Clusters
from unmix.errors import SpecError
from unmix.nets.k_class import KClass

RADII = tuple(0.25 * i * 32**0.5 for i in range(1, 9))


def radius(run, pgd: PGD) -> torch.Tensor:
    return attack(run, [pgd], RADII).smallest


def test_a_single_start_at_the_clean_point_is_overtaken_by_restarts() -> None:
    run = trained("train.steps=300")
    clean, span = radius(run, PGD(start="clean")), radius(run, PGD())
    assert (span <= clean * 1.01).all()
    assert (clean > 1.05 * span).any()


def test_more_restarts_hardly_hurt() -> None:
    run = gaussian(trained(), seed=4)
    few, many = radius(run, PGD(restarts=2)), radius(run, PGD(restarts=20))
    assert (many <= few * 1.01).all()


def test_names_tell_the_starts_apart() -> None:
    assert (PGD().name, PGD(start="clean").name) == ("pgd", "pgd-clean-start")


@pytest.mark.parametrize(
    "field", [{"steps": 0}, {"restarts": -1}, {"loss": "exp"}, {"start": "random"}]
)
def test_settings_are_checked(field: dict) -> None:
    with pytest.raises(SpecError):
        PGD(**field)


def test_perturbations_stay_in_the_span_of_the_neurons() -> None:
    run = gaussian(still(KClass(), Clusters(k=4, d=32), test=5), seed=2)
    (problem,) = problems(run, Threat(), max(RADII), 5)
    found = PGD(steps=10, restarts=3).judged(problem, RADII)
    basis = torch.linalg.qr(run.model.w[0].T).Q
    torch.testing.assert_close(found.delta @ basis @ basis.T, found.delta, rtol=0, atol=1e-6)
    assert (found.radius.isfinite() & (found.radius > 0)).any()


def test_a_point_too_far_from_the_boundary_is_left_alone() -> None:
    run = trained("train.steps=300")
    # Below margin over Lipschitz bound nothing can succeed.
    safe = (run.model.decision(run.test_batch.x).abs() / run.model.lipschitz[:, None]).min()
    found = attack(run, [PGD(steps=3, restarts=2)], (0.99 * float(safe),))
    clean = run.model.predict(run.test_batch.x) == run.test_batch.y
    assert found.smallest[clean].isinf().all()
    assert torch.equal(found.smallest == 0, ~clean)


class Decoy(nn.Module):
    """Label 1 is the runner-up near 0 and never wins; label 2 wins where 3 x_1 > 5."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        own = torch.zeros_like(x[:, 0])
        return torch.stack([own, 0.4 * x[:, 0].tanh() - 0.5, 3 * x[:, 1] - 5], 1)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_a_target_reaches_the_label_behind_a_runner_up_that_never_wins(norm) -> None:
    x, y = torch.zeros(3, 2), torch.zeros(3, dtype=torch.int64)
    problem = module_problem(Decoy(), x, y, Threat(norm=norm), 2.0)
    clean = {"start": "clean", "restarts": 0}
    assert PGD(**clean).judged(problem, (1.0, 2.0)).radius.isinf().all()
    held = TargetedPGD(**clean).judged(problem, (1.0, 2.0))
    assert held.radius.tolist() == pytest.approx([5 / 3] * 3, rel=1e-3)
    assert held.unverified == 0


def test_of_two_labels_there_is_one_target() -> None:
    run, clean = gaussian(trained(), seed=4), {"start": "clean", "restarts": 0}
    wanted = radius(run, PGD(**clean))
    assert wanted.isfinite().any()
    assert torch.equal(radius(run, TargetedPGD(**clean)), wanted)


def test_a_turn_aims_at_its_label_and_every_other_has_a_turn() -> None:
    scores = torch.tensor([[3.0, 1.0, 2.0, 0.0]] * 4, dtype=torch.float64)
    x, y = torch.zeros(4, 2), torch.zeros(4, dtype=torch.int64)

    class Fixed(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return scores[: len(x)].to(x) + 0 * x.sum(1, keepdim=True)

    problem, attack = module_problem(Fixed(), x, y, Threat(), 1.0), TargetedPGD()
    moves = problem.frame.still(problem.todo)
    gaps = [
        attack.lowered(problem, moves, turn)(scores)[0][0].item() for turn in attack.turns(problem)
    ]
    assert gaps == [2.0, 1.0, 3.0]


def test_targets_are_those_of_the_margin() -> None:
    assert TargetedPGD().name == "pgd-targeted"
    with pytest.raises(SpecError):
        TargetedPGD(loss="ce")
