"""Every way to multiply gives the product.

Tolerance: 1e-13 of |a| |b| in float64, 1e-5 in float32 (sums of up to 300 terms, in any order).
"""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unmix.train.engines import product as module
from unmix.train.engines.narrow import NEURONS, POINTS, dots, mixtures, squares
from unmix.train.engines.product import gram, product

TIGHT = {torch.float64: 1e-13, torch.float32: 1e-5}


def tensors(*shapes: tuple[int, ...], dtype: torch.dtype) -> list[torch.Tensor]:
    made = torch.Generator().manual_seed(sum(map(sum, shapes)))
    return [torch.randn(*shape, generator=made, dtype=torch.float64).to(dtype) for shape in shapes]


def assert_product(mine: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> None:
    size = a.double().norm(dim=-1, keepdim=True) * b.double().norm(dim=-2, keepdim=True)
    error = (mine.double() - a.double() @ b.double()).abs()
    assert (error <= TIGHT[mine.dtype] * size).all()


@settings(max_examples=60, deadline=None)
@given(
    sets=st.integers(1, 3), m=st.integers(NEURONS, 40), n=st.integers(POINTS, 40),
    d=st.integers(1, 300), dtype=st.sampled_from(list(TIGHT)),
)  # fmt: skip
def test_the_compiled_products_of_any_shape(sets: int, m: int, n: int, d: int, dtype) -> None:
    a, x = tensors((sets, m, d), (sets, n, d), dtype=dtype)
    out = a.new_full((sets, m, n), torch.nan)
    dots(a.numpy(), x.numpy(), out.numpy())
    assert_product(out, a, x.mT)
    (c,) = tensors((sets, m, n), dtype=dtype)
    out = a.new_full((sets, m, d), torch.nan)
    mixtures(c.numpy(), x.numpy(), out.numpy())
    assert_product(out, c, x)


@settings(max_examples=60, deadline=None)
@given(
    sets=st.integers(1, 3), n=st.integers(NEURONS, 60), d=st.integers(1, 300),
    dtype=st.sampled_from(list(TIGHT)),
)  # fmt: skip
def test_the_compiled_squares_of_any_shape(sets: int, n: int, d: int, dtype) -> None:
    (x,) = tensors((sets, n, d), dtype=dtype)
    out = x.new_full((sets, n, n), torch.nan)
    squares(x.numpy(), out.numpy())
    assert_product(out, x, x.mT)
    assert torch.equal(out, out.mT)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", TIGHT, ids=str)
@pytest.mark.parametrize("shape", [(1, 3, 4), (2, 80, 300)])
@pytest.mark.parametrize("small", [0, module.SMALL], ids=["always", "as it is"])
def test_a_gram_matrix_is_a_product(shape, dtype, threads: int, small: int, monkeypatch) -> None:
    monkeypatch.setattr(module, "SMALL", small)
    if small == 0:
        monkeypatch.setattr(module, "SHORT", 0)
    replicas, n, d = shape
    wide, turned = tensors((replicas, n, 2 * d), (replicas, d, n), dtype=dtype)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for x in (wide, wide[:, :, ::2], turned.mT):
            assert_product(gram(x, x.new_empty(replicas, n, n)), x, x.mT)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("strip", [1, 2**12])
def test_strips_of_neurons_change_nothing(strip: int, monkeypatch) -> None:
    from unmix.train.engines import narrow

    a, x = tensors((1, 33, 50), (1, 30, 50), dtype=torch.float64)
    whole, cut = a.new_empty(1, 33, 30), a.new_empty(1, 33, 30)
    dots.py_func(a.numpy(), x.numpy(), whole.numpy())
    monkeypatch.setattr(narrow, "NEAR", strip)
    dots.py_func(a.numpy(), x.numpy(), cut.numpy())
    assert torch.equal(cut, whole)
    squared, cut = x.new_empty(1, 30, 30), x.new_empty(1, 30, 30)
    squares.py_func(x.numpy(), cut.numpy())
    monkeypatch.undo()
    squares.py_func(x.numpy(), squared.numpy())
    assert torch.equal(cut, squared)


@pytest.mark.parametrize("small", [0, module.SMALL], ids=["always", "as it is"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", TIGHT, ids=str)
@pytest.mark.parametrize("shape", [(1, 3, 4, 5), (1, 9, 80, 300), (1, 90, 60, 70), (3, 90, 60, 70)])
def test_a_product_is_a_product(shape, dtype, threads: int, small: int, monkeypatch) -> None:
    """Of factors that lie in memory either way, or with gaps."""
    monkeypatch.setattr(module, "SMALL", small)
    if small == 0:
        monkeypatch.setattr(module, "SHORT", 0)
    replicas, n, d, h = shape
    lefts = tensors((replicas, n, d), (replicas, d, n), (replicas, n, 2 * d), dtype=dtype)
    rights = tensors((replicas, d, h), (replicas, h, d), (replicas, d, 2 * h), dtype=dtype)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for a in (lefts[0], lefts[1].mT, lefts[2][:, :, ::2]):
            for b in (rights[0], rights[1].mT, rights[2][:, :, ::2]):
                assert_product(product(a, b, a.new_empty(replicas, n, h)), a, b)
                gaps = a.new_empty(replicas, n, 2 * h)[:, :, ::2]
                assert_product(product(a, b, gaps), a, b)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", TIGHT, ids=str)
def test_a_product_has_the_same_bits_each_time(dtype) -> None:
    a, b = tensors((2, 10, 200), (2, 200, 300), dtype=dtype)
    for right in (b, b.mT.contiguous().mT):
        one, other = (product(a, right, a.new_empty(2, 10, 300)).clone() for _ in range(2))
        assert torch.equal(one, other)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_what_is_no_number_is_not_hidden(bad: float) -> None:
    a, x = tensors((1, 10, 100), (1, 200, 100), dtype=torch.float64)
    x[0, 7, 3] = bad
    z = product(a, x.mT, a.new_empty(1, 10, 200))
    assert not torch.isfinite(z[0, :, 7]).any()
    assert torch.isfinite(z[0, :, 8]).all()
    (g,) = tensors((1, 10, 200), dtype=torch.float64)
    move = product(g, x, a.new_empty(1, 10, 100))
    assert not torch.isfinite(move[0, :, 3]).any()
    assert torch.isfinite(move[0, :, 4]).all()
