"""The functions of `active`, compiled for the processor; no pre-activation is ever written out.

The weights are taken in blocks of neurons, turned so that neurons are contiguous: a block stays in
the second-level cache and a product with a sparse point is a few additions of contiguous rows.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int
from numba import njit
from torch import Tensor

from unmix.data.sparse_rows import SparseRows
from unmix.train.engines.active import Entries

# 128 neurons by 400 dimensions of float32 are 200 kB.
BLOCK = 128
STRIP = 16
# Most runs of this many entries are off as a whole.
CHUNK = 32
# Room at first for one entry in this many.
ROOM = 16


def sparse_select(x: SparseRows, w: Float[Tensor, "m d"], edge: float) -> Entries:
    """Pairs with |<w_i, x>| >= edge (or NaN) and their products; `x` has one replica."""
    found = _sparse_select(
        x.offsets.numpy(), x.index.numpy(), x.value.numpy(), w.numpy(), w.numpy().dtype.type(edge)
    )
    return _tensors(*found)


def dense_select(s: Float[Tensor, "n m"], edge: float) -> Entries:
    """Pairs with |s| >= edge (or NaN) and their s."""
    return _tensors(*_dense_select(s.numpy(), s.numpy().dtype.type(edge)))


def sparse_scatter(
    out: Float[Tensor, "m d"],
    x: SparseRows,
    point: Int[Tensor, " A"],
    neuron: Int[Tensor, " A"],
    value: Float[Tensor, " A"],
) -> None:
    """out_i += value x over the entries (point, i, value), in place."""
    code = (x.offsets.numpy(), x.index.numpy(), x.value.numpy())
    _sparse_scatter(out.numpy(), *code, point.numpy(), neuron.numpy(), value.numpy())


def dense_scatter(
    out: Float[Tensor, "p d"],
    rows: Float[Tensor, "q d"],
    to: Int[Tensor, " A"],
    of: Int[Tensor, " A"],
    value: Float[Tensor, " A"],
) -> None:
    """out_to += value rows_of over the entries, in place."""
    _dense_scatter(out.numpy(), rows.numpy(), to.numpy(), of.numpy(), value.numpy())


def _tensors(point: np.ndarray, neuron: np.ndarray, value: np.ndarray) -> Entries:
    return torch.from_numpy(point), torch.from_numpy(neuron), torch.from_numpy(value)


@njit(cache=True)
def _room(size, like):  # type: ignore[no-untyped-def]
    return np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, like.dtype)


@njit(cache=True)
def _grown(entries, size):  # type: ignore[no-untyped-def]
    """Room for `size` entries, the old ones kept."""
    points, neurons, products = entries
    p, i, v = _room(size, products)
    p[: len(points)], i[: len(points)], v[: len(points)] = points, neurons, products
    return p, i, v


@njit(cache=True, inline="always")
def _turn(w, first, turned):  # type: ignore[no-untyped-def]
    """turned [d, BLOCK] = rows first.. of w, transposed in strips that stay in the first cache."""
    m, d = w.shape
    for start in range(0, d, STRIP):
        for i in range(min(BLOCK, m - first)):
            for j in range(start, min(d, start + STRIP)):
                turned[j, i] = w[first + i, j]


@njit(cache=True, inline="always")
def _add_rows(s, turned, index, value, o, e):  # type: ignore[no-untyped-def]
    """s = sum of value times rows of `turned`, four rows at a time."""
    s[:] = 0
    while o + 4 <= e:
        a, b, c, g = value[o], value[o + 1], value[o + 2], value[o + 3]
        p, q = turned[index[o]], turned[index[o + 1]]
        r, t = turned[index[o + 2]], turned[index[o + 3]]
        for i in range(BLOCK):
            s[i] += (a * p[i] + b * q[i]) + (c * r[i] + g * t[i])
        o += 4
    while o < e:
        a, p = value[o], turned[index[o]]
        for i in range(BLOCK):
            s[i] += a * p[i]
        o += 1


@njit(cache=True, inline="always")
def _any_on(s, start, edge):  # type: ignore[no-untyped-def]
    """Whether one of CHUNK entries is on; 32 bits, as wider ones would halve the speed."""
    on = np.int32(0)
    for i in range(CHUNK):
        on |= np.int32(0) if abs(s[start + i]) < edge else np.int32(1)
    return on != 0


@njit(cache=True, inline="always")
def _collect(s, edge, point, first, entries, found):  # type: ignore[no-untyped-def]
    """Append the entries of s that are on; there is room for all."""
    points, neurons, products = entries
    for start in range(0, len(s), CHUNK):
        end = min(start + CHUNK, len(s))
        if end - start == CHUNK and not _any_on(s, start, edge):
            continue
        for i in range(start, end):
            points[found], neurons[found], products[found] = point, first + i, s[i]
            # An entry that is off is overwritten by the next one: no branch.
            found += not abs(s[i]) < edge
    return found


@njit(cache=True)
def _sparse_select(offsets, index, value, w, edge):  # type: ignore[no-untyped-def]
    n, (m, d) = len(offsets) - 1, w.shape
    # Columns beyond the last neuron are computed with the rest and never collected.
    turned, s, found = np.zeros((d, BLOCK), w.dtype), np.empty(BLOCK, w.dtype), 0
    entries = _room(n * m // ROOM + BLOCK, w)
    for first in range(0, m, BLOCK):
        _turn(w, first, turned)
        width = min(BLOCK, m - first)
        for p in range(n):
            _add_rows(s, turned, index, value, offsets[p], offsets[p + 1])
            if found + width > len(entries[0]):
                entries = _grown(entries, 2 * len(entries[0]))
            found = _collect(s[:width], edge, p, first, entries, found)
    return entries[0][:found], entries[1][:found], entries[2][:found]


@njit(cache=True)
def _dense_select(s, edge):  # type: ignore[no-untyped-def]
    n, m = s.shape
    entries, found = _room(n * m // ROOM + m, s), 0
    for p in range(n):
        if found + m > len(entries[0]):
            entries = _grown(entries, 2 * len(entries[0]))
        found = _collect(s[p], edge, p, 0, entries, found)
    return entries[0][:found], entries[1][:found], entries[2][:found]


@njit(cache=True)
def _sparse_scatter(out, offsets, index, x, point, neuron, value):  # type: ignore[no-untyped-def]
    for a in range(len(point)):
        row, v = out[neuron[a]], value[a]
        for o in range(offsets[point[a]], offsets[point[a] + 1]):
            row[index[o]] += v * x[o]


@njit(cache=True)
def _dense_scatter(out, rows, to, of, value):  # type: ignore[no-untyped-def]
    for a in range(len(to)):
        row, other, v = out[to[a]], rows[of[a]], value[a]
        for j in range(out.shape[1]):
            row[j] += v * other[j]
