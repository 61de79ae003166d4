"""Images with the representation of others: exact where that is known, and what is refused."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from unmix.attacks.inversion import Inversion
from unmix.errors import AttackError, SpecError

MADE = torch.Generator().manual_seed(0)
A = torch.randn(12, 3, generator=MADE, dtype=torch.float64)


def linear(x: Tensor) -> Tensor:
    return x.flatten(1) @ A


def points(n: int = 7) -> tuple[Tensor, Tensor]:
    x = torch.rand(n, 3, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return x, torch.arange(n) % 3


@pytest.mark.parametrize("method", ["gradient", "adam"])
def test_what_a_linear_map_can_match_is_matched_and_nothing_else(method: str) -> None:
    x, y = points()
    asked = Inversion(method=method, steps=400, size=0.01)
    start = asked.starts(x, y, 0)
    found = asked(linear, x, start)
    assert found.x.shape == x.shape
    assert (found.left < 0.05 * found.began).all()
    torch.testing.assert_close(found.began, (linear(start) - linear(x)).norm(dim=1))
    torch.testing.assert_close(found.left, (linear(found.x) - linear(x)).norm(dim=1))
    # Nine of twelve dimensions are free: the image itself does not come back.
    assert ((found.x - x).flatten(1).norm(dim=1) > 0.1).all()
    assert float(found.x.min()) >= 0
    assert float(found.x.max()) <= 1


def test_the_gradients_step_is_the_formula() -> None:
    x, y = points(4)
    asked = Inversion(steps=1, size=0.03)
    start = 0.4 + 0.2 * asked.starts(x, y, 0)
    gap = linear(start) - linear(x)
    slope = gap / gap.norm(dim=1, keepdim=True) @ A.T
    wanted = start.flatten(1) - 0.03 * slope / slope.norm(dim=1, keepdim=True)
    torch.testing.assert_close(asked(linear, x, start).x.flatten(1), wanted)


def test_adams_steps_are_torchs() -> None:
    x, y = points(4)
    asked = Inversion(method="adam", steps=5, size=0.003)
    start = 0.4 + 0.2 * asked.starts(x, y, 0)
    leaf = start.clone().requires_grad_()
    steps = torch.optim.Adam([leaf], lr=0.003)
    for _ in range(5):
        steps.zero_grad()
        (linear(leaf) - linear(x)).norm(dim=1).sum().backward()
        steps.step()
    found = asked(linear, x, start)
    assert (found.left < found.began).all()
    torch.testing.assert_close(found.x, leaf.detach())


def test_a_path_is_what_shorter_searches_find() -> None:
    x, y = points()
    asked = Inversion(steps=30, size=0.05)
    start = asked.starts(x, y, 0)
    path = asked.path(linear, x, start, (0, 7, 30))
    assert torch.equal(path[0].x, start)
    for steps, found in path.items():
        alone = Inversion(steps=steps, size=0.05)(linear, x, start)
        assert torch.equal(alone.x, found.x)
    assert (path[30].left <= path[7].left).all()


def test_starts_are_what_they_say() -> None:
    x, y = points()
    start = Inversion().starts(x, y, 0)
    which = (start.flatten(1)[:, None] == x.flatten(1)).all(-1).float().argmax(1)
    assert torch.equal(x[which], start)
    assert (y[which] != y).all()
    assert torch.equal(start, Inversion().starts(x, y, 0))
    assert not torch.equal(start, Inversion().starts(x, y, 1))
    assert (Inversion(start="grey").starts(x, y, 0) == 0.5).all()
    noise = Inversion(start="noise").starts(x, y, 0)
    assert 0 <= float(noise.min()) < 0.2 < 0.8 < float(noise.max()) <= 1


def test_what_makes_no_sense_is_refused() -> None:
    x, y = points()
    asked = Inversion(steps=1)
    with pytest.raises(AttackError, match="all 7 points have label 1"):
        asked.starts(x, torch.ones_like(y), 0)
    with pytest.raises(AttackError, match="expected a start for each point"):
        asked(linear, x, x[:3])
    with pytest.raises(AttackError, match="NaN or infinite"):
        asked(linear, x * torch.nan, x)
    with pytest.raises(AttackError, match="outside the box"):
        asked(linear, x + 1, x)
    with pytest.raises(AttackError, match="not differentiable"):
        asked(lambda at: linear(at).detach(), x, x)
    with pytest.raises(SpecError, match="size"):
        Inversion(size=0.0)
