"""The decomposition of neurons into pure features and a dense mixture, beside plain loops."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unmix.data.sparse_code import SparseCode
from unmix.nets.mixture import Mixture, Reading, Split, cosine, mean_over

D = 9


def drawn(seed: int, m: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    made = torch.Generator().manual_seed(seed)
    u = torch.randn(1, m, D, generator=made).double()
    return u, torch.randn(1, D, generator=made).double()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_it_equals_a_loop_over_neurons(seed: int) -> None:
    u, w = drawn(seed)
    parts = Mixture(u, w)
    for i in range(4):
        row = u[0, i]
        j = int(row.abs().argmax())
        off = [k for k in range(D) if k != j]
        fit = float(row[off] @ w[0, off] / (w[0, off] @ w[0, off]))
        size = float(row.norm())
        assert int(parts.top[0, i]) == j
        assert float(parts.purity[0, i]) == pytest.approx(abs(float(row[j])) / size)
        assert float(parts.nu[0, i]) == pytest.approx(fit / abs(float(row[j])))
        assert float(parts.dense[0, i]) == pytest.approx(abs(fit) * float(w[0, off].norm()) / size)
        rest = row - fit * w[0]
        rest[j] = 0
        assert float(parts.residue[0, i]) == pytest.approx(float(rest.norm()) / size, abs=1e-7)
        held = int((row.abs() >= 0.35 * abs(float(row[j]))).sum())
        assert bool(parts.alone[0, i]) == (held == 1)
        assert bool(parts.right_sign[0, i]) == (float(row[j] * w[0, j]) > 0)


def test_the_neuron_of_the_theorem_is_read_off_exactly() -> None:
    w = torch.tensor([[1.0, -0.8, 1.2, -1.1, 0.9, 1.0, -1.0, 0.7, 1.3]]).double()
    u = 0.02 * w.clone()
    u[0, 3] = -1.0
    parts = Mixture(2.5 * u.unsqueeze(1), w)
    assert float(parts.nu) == pytest.approx(0.02)
    assert bool(parts.alone)
    assert bool(parts.right_sign)
    assert float(parts.residue) == pytest.approx(0, abs=1e-7)
    beta = parts.beta[0, 0]
    torch.testing.assert_close(beta[[0, 1, 2, 4, 5, 6, 7, 8]], torch.full((8,), 0.05).double())
    assert float(beta[3]) == 0


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_a_change_is_shared_out_completely(seed: int) -> None:
    u, w = drawn(seed)
    v, _ = drawn(seed + 1)
    split = Split.of(Mixture(u, w), Mixture(v, w))
    whole = (v - u).square().sum(-1)
    torch.testing.assert_close(split.own + split.along + split.rest, whole)
    assert min(float(part.min()) for part in (split.own, split.along, split.rest)) >= 0
    moved = u + 0.3 * w.unsqueeze(1)
    own = Mixture(u, w).top
    moved = moved.scatter(-1, own.unsqueeze(-1), u.gather(-1, own.unsqueeze(-1)))
    dense = Split.of(Mixture(u, w), Mixture(moved, w))
    torch.testing.assert_close(dense.along, (moved - u).square().sum(-1))


def test_cosines_and_means() -> None:
    one = torch.tensor([[1.0, 0.0], [0.0, 0.0]])
    other = torch.tensor([[-1.0, 1.0], [1.0, 1.0]])
    torch.testing.assert_close(cosine(one, other), torch.tensor([math.sqrt(0.5), 0.0]))
    values, chosen = torch.tensor([[1.0, 3.0], [5.0, 7.0]]), torch.tensor([[1, 1], [0, 0]]).bool()
    torch.testing.assert_close(mean_over(values, chosen), torch.tensor([2.0, 0.0]))


@pytest.mark.parametrize(("basis", "D"), [("frame", 18), ("gaussian", 9), ("haar", 9)])
def test_a_pure_neuron_has_no_mixture_and_a_mixed_one_has_its_own(basis: str, D: int) -> None:
    data = SparseCode(d=12, D=D, k=4.0, basis=basis)
    like = torch.zeros(1, dtype=torch.float64)
    seeds = (0, 1)
    if data.orthonormal:
        reading, features = Reading.of(data, seeds, like), torch.eye(12).double()[None, :D]
    else:
        reading, features = Reading.of(data, seeds, like), data.features(seeds)
    features = features.expand(2, -1, -1)
    pure = reading(-2 * features)
    torch.testing.assert_close(pure.top, torch.arange(D).expand(2, -1))
    torch.testing.assert_close(pure.purity, torch.ones(2, D).double())
    torch.testing.assert_close(pure.nu, torch.zeros(2, D).double())
    # M w* off M_j, a tenth of it at each neuron.
    ahead = reading.ahead.unsqueeze(1)
    off = ahead - (ahead * features).sum(-1, keepdim=True) * features
    mixed = reading(-2 * features + 0.2 * off)
    torch.testing.assert_close(mixed.top, pure.top)
    torch.testing.assert_close(mixed.nu, torch.full((2, D), 0.1).double())
    split = Split.of(pure, mixed)
    torch.testing.assert_close(split.along, (0.2 * off).square().sum(-1))
    torch.testing.assert_close(split.own + split.rest, torch.zeros(2, D).double())
