"""Sparse codes: the moments of Assumption 2.1, labels, noise, the margin, and streams."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unmix.data.sparse_code import SparseCode
from unmix.data.sparse_rows import SparseRows
from unmix.errors import DataError, SpecError

CODE = SparseCode(d=50, k=9.0)


def test_moments_are_those_of_the_law() -> None:
    n = 40_000
    z, _ = CODE.codes((3,), n, "train")
    dense = z.dense()[0]
    counts = z.offsets.diff().double()
    # kappa = .7 + .5 * 9; a sum of 50 independent trials.
    p = CODE.kappa / 50
    assert counts.mean() == pytest.approx(5.2, abs=5 * math.sqrt(50 * p * (1 - p) / n))
    assert counts.var() == pytest.approx(50 * p * (1 - p), rel=0.04)
    sizes = dense.abs()
    large, small = (sizes == 1).sum() / n, torch.isclose(sizes, torch.tensor(1 / 3.0).double())
    assert large == pytest.approx(0.7, abs=5 * math.sqrt(0.7 / n))
    assert small.sum() / n == pytest.approx(4.5, abs=5 * math.sqrt(4.5 / n))
    assert ((sizes == 0) | (sizes == 1) | small).all()
    # E z_j^2 = (p1 + p2)/d at every j; symmetric; neighbours independent.
    torch.testing.assert_close((dense**2).mean(0) * 50, torch.full((50,), 1.2).double(),
                               rtol=0, atol=0.3)  # fmt: skip
    assert (dense**2).mean() * 50 == pytest.approx(1.2, rel=0.03)
    assert dense.mean(0).abs().max() < 5 * math.sqrt(1.2 / 50 / n)
    assert (dense.T @ dense / n).fill_diagonal_(0).abs().max() < 5 * 1.2 / 50 / math.sqrt(n)
    on = (dense != 0).double()
    neighbours = torch.stack([on[:, :-1].flatten(), on[:, 1:].flatten()])
    assert torch.corrcoef(neighbours)[0, 1].abs() < 0.005


def test_labels_are_signs_of_the_score_and_odd() -> None:
    sample = CODE.sample((0, 1), 500, "train")
    w = CODE.label_vector((0, 1))
    score = (sample.z.dense() @ w.unsqueeze(-1))[..., 0]
    assert torch.equal(torch.where(score >= 0, 1.0, -1.0).double(), sample.y)
    assert torch.equal(sample.x, sample.z.dense())
    ties = (score == 0) & (sample.z.offsets.diff().reshape(2, 500) > 0)
    assert not ties.any(), "the sizes of w* keep scores off a lattice"


def test_the_label_vector_has_its_profile() -> None:
    w = SparseCode(d=4000, k=4.0, w_low=0.5, w_high=2.0).label_vector((0,))[0]
    assert 0.5 <= w.abs().min() < 0.51
    assert 1.99 < w.abs().max() <= 2
    assert w.abs().mean() == pytest.approx(1.25, abs=0.04)
    assert (w > 0).double().mean() == pytest.approx(0.5, abs=0.04)
    shared = SparseCode(w_seed=4).label_vector((0, 1))
    assert torch.equal(shared[0], shared[1])
    assert not torch.equal(*CODE.label_vector((0, 1)))


@pytest.mark.parametrize("d", [20, 31])
@pytest.mark.parametrize("basis", ["haar", "transform"])
def test_a_basis_only_rotates(basis: str, d: int) -> None:
    flat, turned = (
        SparseCode(d=d, k=4.0, sigma_x=0.5, sigma_s=0.3, basis=name) for name in ("identity", basis)
    )
    m = turned.dictionary((0, 1))
    torch.testing.assert_close(m @ m.transpose(1, 2), torch.eye(d).double().expand(2, -1, -1))
    one, other = flat.sample((0, 1), 30, "train"), turned.sample((0, 1), 30, "train")
    torch.testing.assert_close(other.x @ m, one.x)
    assert torch.equal(one.y, other.y)
    assert not torch.allclose(m[0], m[1])


@pytest.mark.parametrize("basis", ["identity", "haar", "transform"])
def test_fewer_features_than_dimensions_span_the_points(basis: str) -> None:
    data = SparseCode(d=20, D=14, k=4.0, sigma_s=0.3, basis=basis)
    sample, m = data.sample((0, 1), 4000, "train"), data.features((0, 1))
    assert m.shape == (2, 14, 20)
    torch.testing.assert_close(m @ m.transpose(1, 2), torch.eye(14).double().expand(2, -1, -1))
    z = sample.z.dense()
    assert (z[..., 14:] == 0).all()
    assert (z[..., :14] != 0).any(1).all()
    # kappa non-zero entries a point, as with D = d, and spikes in the span: no point leaves it.
    counts = sample.z.offsets.diff().double()
    assert counts.mean() == pytest.approx(data.kappa, rel=0.03)
    torch.testing.assert_close(sample.x @ m.transpose(1, 2) @ m, sample.x)
    clean = data.override("sigma_s=0.0").sample((0, 1), 50, "train")
    torch.testing.assert_close(clean.z.dense()[..., :14] @ m, clean.x)
    labels = data.label_vector((0, 1))
    assert (labels[:, 14:] == 0).all()
    score = (z @ labels.unsqueeze(-1))[..., 0]
    assert torch.equal(torch.where(score >= 0, 1.0, -1.0).double(), sample.y)
    # Only Gaussian noise is in all of R^d: sigma_x^2 (d - D)/d of it beyond the span.
    noisy = data.override("sigma_s=0.0", "sigma_x=0.8").sample((0, 1), 4000, "train").x
    beyond = noisy - noisy @ m.transpose(1, 2) @ m
    assert beyond.square().sum(-1).mean() == pytest.approx(0.64 * 6 / 20, rel=0.05)


@pytest.mark.parametrize(("basis", "D"), [("frame", 30), ("gaussian", 14), ("gaussian", 30)])
def test_features_may_overlap(basis: str, D: int) -> None:
    data = SparseCode(d=20, D=D, k=4.0, basis=basis, sigma_s=0.2)
    seeds = (0, 1)
    sample, m = data.sample(seeds, 3000, "train"), data.features(seeds)
    assert m.shape == (2, D, 20)
    torch.testing.assert_close(m.norm(dim=-1), torch.ones(2, D).double())
    clean = data.override("sigma_s=0.0").sample(seeds, 50, "train")
    assert clean.z.dense().shape == (2, 50, D)
    torch.testing.assert_close(clean.z.dense() @ m, clean.x)
    assert not torch.equal(sample.x[:, :50], clean.x)
    labels = data.label_vector(seeds)
    score = (sample.z.dense() @ labels.unsqueeze(-1))[..., 0]
    assert torch.equal(torch.where(score >= 0, 1.0, -1.0).double(), sample.y)
    torch.testing.assert_close(data.ahead(seeds), (labels.unsqueeze(1) @ m)[:, 0])
    assert sample.z.offsets.diff().double().mean() == pytest.approx(data.kappa, rel=0.03)
    gram = m @ m.transpose(1, 2) - torch.eye(D).double()
    size = gram.square().sum((1, 2)) / (D * (D - 1))
    wanted = (D - 20) / (20 * D) if basis == "frame" else 1 / 20
    torch.testing.assert_close(size.sqrt(), torch.full((2,), wanted).double().sqrt(), rtol=0.15,
                               atol=0)  # fmt: skip
    torch.testing.assert_close(data.overlap(seeds), gram.abs().amax((1, 2)))
    assert not data.sparse


def test_as_many_features_as_dimensions_are_the_default() -> None:
    one, other = (
        SparseCode(d=20, D=count, k=4.0).sample((0,), 20, "train") for count in (None, 20)
    )
    assert torch.equal(one.x, other.x)
    assert torch.equal(one.y, other.y)


def test_the_transform_spreads_every_feature() -> None:
    m = SparseCode(d=64, k=4.0, basis="transform").dictionary((0, 1))
    # Entries of a cosine are sqrt(2/d) at most; those of the constant, 1/sqrt(d), have signs.
    assert m.abs().max() <= math.sqrt(2 / 64) * (1 + 1e-12)
    assert ((m[:, :, 0] > 0).sum(1) - 32).abs().max() < 22


def test_noise_has_its_size() -> None:
    n, d = 4000, 40
    gaussian = SparseCode(d=d, k=4.0, sigma_x=0.8).sample((0,), n, "train")
    xi = gaussian.x - gaussian.z.dense()
    assert (xi**2).sum(-1).mean() == pytest.approx(0.64, rel=0.05)
    spiky = SparseCode(d=d, k=4.0, sigma_s=0.8).sample((0,), n, "train")
    xi = spiky.x - spiky.z.dense()
    height = 4.0**-0.501
    assert set(xi.abs().unique().round(decimals=12).tolist()) <= {0.0, round(height, 12)}
    assert (xi**2).sum(-1).mean() == pytest.approx(0.64, rel=0.05)
    assert xi.mean().abs() < 5 * height / math.sqrt(n * d)


def test_the_margin_keeps_the_clear_points_and_their_order() -> None:
    wide = SparseCode(d=30, k=4.0, margin=0.5)
    w = wide.label_vector((2,))[0]
    z, y = wide.codes((2,), 200, "train")
    score = z.dense()[0] @ w
    assert (score.abs() >= 0.5).all()
    assert torch.equal(score.sign(), y[0])
    free, _ = wide.override("margin=0.0").codes((2,), 1000, "train")
    points = free.dense()[0]
    kept = points[(points @ w).abs() >= 0.5][:200]
    assert torch.equal(z.dense()[0], kept)


def test_a_margin_that_no_point_has_is_refused() -> None:
    with pytest.raises(SpecError, match=r"almost no point has .* margin=50"):
        SparseCode(d=30, k=4.0, margin=50.0).codes((0,), 2, "train")


@pytest.mark.parametrize("extra", [{}, {"margin": 0.4}, {"sigma_x": 0.3, "sigma_s": 0.3}])
def test_more_points_or_seeds_change_no_others(extra: dict) -> None:
    data = SparseCode(d=20, k=4.0, **extra)
    few, more = data.sample((5,), 7, "train"), data.sample((5, 6), 40, "train")
    assert torch.equal(more.x[:1, :7], few.x)
    assert torch.equal(more.y[:1, :7], few.y)
    assert not torch.equal(more.x[0], more.x[1])
    assert not torch.equal(data.sample((5,), 7, "test").x, few.x)
    single = data.sample((5,), 7, "train", torch.float32)
    assert torch.equal(single.x, few.x.float())
    assert single.z.value.dtype == torch.float32


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"d": 10, "k": 30.0}, "p1 \\+ p2 k = 15.7 must lie between 0 and d=10"),
        ({"p1": 0.0, "p2": 0.0}, "p1 \\+ p2 k = 0"),
        ({"w_low": 2.0}, "w_low=2.0 exceeds w_high=1.3"),
        ({"sigma_s": 30.0}, "spikes"),
        ({"d": 20, "D": 21}, "D=21 exceeds d=20: more features than dimensions"),
        ({"d": 20, "basis": "frame"}, "D=20 is not above d=20: a frame has more columns"),
        ({"d": 50, "D": 5}, "p1 \\+ p2 k = 5.7 must lie between 0 and D=5"),
    ],
)
def test_impossible_codes_are_refused(values: dict, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        SparseCode(**values)


def test_a_spec_survives_its_plain_form() -> None:
    data = SparseCode(d=20, k=4.0, w_seed=3, basis="haar")
    assert SparseCode.parse(data.plain()) == data


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 3), st.integers(1, 6), st.integers(1, 8), st.integers(0, 9))
def test_sparse_rows_are_their_dense_form(replicas: int, n: int, d: int, seed: int) -> None:
    made = torch.Generator().manual_seed(seed)
    dense = torch.randn(replicas, n, d, generator=made).double()
    dense[torch.rand(dense.shape, generator=made) < 0.6] = 0
    places = dense.reshape(-1, d).nonzero()
    counts = torch.bincount(places[:, 0], minlength=replicas * n)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])
    rows = SparseRows(offsets, places[:, 1], dense[dense != 0], replicas, d)
    assert torch.equal(rows.dense(), dense)
    assert rows.points == n
    for r in range(replicas):
        assert torch.equal(rows.one(r).dense()[0], dense[r])


def test_broken_rows_are_refused() -> None:
    offsets, index = torch.tensor([0, 1, 2]), torch.tensor([0, 3])
    value = torch.ones(2)
    with pytest.raises(DataError, match="shared out to 3"):
        SparseRows(offsets, index, value, 3, 4)
    with pytest.raises(DataError, match=r"must lie in 0\.\.2"):
        SparseRows(offsets, index, value, 1, 3)
    with pytest.raises(DataError, match="offsets must run"):
        SparseRows(offsets + 1, index, value, 1, 4)


def test_rows_and_replicas_are_taken_as_from_a_tensor() -> None:
    z, _ = CODE.codes((0, 1, 2), 20, "train")
    whole = z.dense()
    torch.testing.assert_close(z[1:3].dense(), whole[1:3], rtol=0, atol=0)
    torch.testing.assert_close(z.one(2).dense(), whole[2:], rtol=0, atol=0)
    rows = torch.tensor([7, 0, 7, 19])
    torch.testing.assert_close(z.one(1).take(rows).dense(), whole[1:2, rows], rtol=0, atol=0)
    with pytest.raises(DataError, match="one replica"):
        z.take(rows)
    with pytest.raises(DataError, match="replicas in a row"):
        _ = z[0:3:2]


def test_features_are_the_columns_of_the_dictionary() -> None:
    turned = CODE.override("basis=haar")
    sample = turned.sample((0, 1), 30, "train")
    torch.testing.assert_close(sample.z.dense() @ turned.features((0, 1)), sample.x)
