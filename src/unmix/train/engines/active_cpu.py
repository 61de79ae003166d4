"""The functions of `active`, compiled for the processor.

With sparse points no pre-activation is ever written out: the weights are taken in blocks of
neurons, turned so that neurons are contiguous. A block stays in the second-level cache, and its
product with a point is a sum of a few contiguous rows.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from unmix.data.sparse_rows import SparseRows
from unmix.train.engines.active import Active, Entries
from unmix.train.engines.compiled import compiled, inlined

# 128 neurons by 400 dimensions of float32 are 200 kB.
BLOCK = 128
STRIP = 16
# With more entries on than this share, a point's row of a block is cheaper to add as a whole.
CROWDED = 0.04


class ActiveCpu(Active):
    """Compiled; keeps the memory of its entries, since fresh memory costs more than the search."""

    def __init__(self) -> None:
        self.room = _room(BLOCK, np.empty(0))

    def sparse_select(self, x: SparseRows, w: Float[Tensor, "m d"], edge: float) -> Entries:
        array = w.numpy()
        self._fit(array)
        code = (x.offsets.numpy(), x.index.numpy(), x.value.numpy())
        found, self.room = _sparse_select(*code, array, array.dtype.type(edge), self.room)
        return self._entries(found)

    def dense_select(self, s: Float[Tensor, "n m"], edge: float) -> Entries:
        array = s.numpy()
        self._fit(array)
        found, self.room = _dense_select(array, array.dtype.type(edge), self.room)
        return self._entries(found)

    def sums(
        self, count: int, point: Int[Tensor, " A"], value: Float[Tensor, " A"]
    ) -> Float[Tensor, " n"]:
        out = value.new_zeros(count)
        _sums(out.numpy(), point.numpy(), value.numpy())
        return out

    def weigh(
        self, value: Float[Tensor, " A"], by: Float[Tensor, " n"], point: Int[Tensor, " A"]
    ) -> Float[Tensor, " A"]:
        _weigh(value.numpy(), by.numpy(), point.numpy())
        return value

    def sparse_scatter(
        self,
        out: Float[Tensor, "m d"],
        x: SparseRows,
        point: Int[Tensor, " A"],
        neuron: Int[Tensor, " A"],
        value: Float[Tensor, " A"],
    ) -> None:
        code = (x.offsets.numpy(), x.index.numpy(), x.value.numpy())
        crowded = len(point) > CROWDED * x.points * len(out)
        scatter = _crowded_scatter if crowded else _sparse_scatter
        scatter(out.numpy(), *code, point.numpy(), neuron.numpy(), value.numpy())

    def dense_scatter(
        self,
        out: Float[Tensor, "p d"],
        rows: Float[Tensor, "q d"],
        to: Int[Tensor, " A"],
        of: Int[Tensor, " A"],
        value: Float[Tensor, " A"],
    ) -> None:
        _dense_scatter(out.numpy(), rows.numpy(), to.numpy(), of.numpy(), value.numpy())

    def _fit(self, like: np.ndarray) -> None:
        """Products are kept in the type of the weights."""
        if self.room[2].dtype != like.dtype:
            self.room = _room(len(self.room[0]), like)

    def _entries(self, found: int) -> Entries:
        point, neuron, value = (torch.from_numpy(part[:found]) for part in self.room)
        return point, neuron, value


@compiled
def _room(size, like):  # type: ignore[no-untyped-def]
    """Memory for points, neurons and products."""
    return np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, like.dtype)


@compiled
def _fitted(room, size):  # type: ignore[no-untyped-def]
    """Memory for at least `size` entries, the old ones kept."""
    points, neurons, products = room
    if size <= len(points):
        return room
    p, i, v = _room(max(size, 2 * len(points)), products)
    p[: len(points)], i[: len(points)], v[: len(points)] = points, neurons, products
    return p, i, v


@inlined
def _turn(w, first, turned):  # type: ignore[no-untyped-def]
    """turned [d, BLOCK] = rows first.. of w, transposed in strips that stay in the first cache."""
    m, d = w.shape
    for start in range(0, d, STRIP):
        for i in range(min(BLOCK, m - first)):
            for j in range(start, min(d, start + STRIP)):
                turned[j, i] = w[first + i, j]


@inlined
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


@inlined
def _collect(s, width, edge, point, first, flags, words, points, neurons, products, found):  # type: ignore[no-untyped-def]
    """Append the entries of s[:width] that are on; there is room for all."""
    # An unsigned place needs no look whether it counts from the end.
    place = np.uint64(found)
    for i in range(width):
        flags[i] = np.uint8(0) if abs(s[i]) < edge else np.uint8(1)
    # Eight flags are looked at as one word; most words are zero.
    for q in range((width + 7) // 8):
        if words[q] == 0:
            continue
        for i in range(8 * q, min(8 * q + 8, width)):
            neurons[place], products[place] = first + i, s[i]
            # An entry that is off is overwritten by the next one: no branch.
            place += np.uint64(flags[i])
    points[found:place] = point
    return np.int64(place)


@compiled
def _sparse_select(offsets, index, value, w, edge, room):  # type: ignore[no-untyped-def]
    n, (m, d) = len(offsets) - 1, w.shape
    # Columns beyond the last neuron are computed with the rest and never collected.
    turned, s, found = np.zeros((d, BLOCK), w.dtype), np.empty(BLOCK, w.dtype), 0
    flags = np.zeros(BLOCK, np.uint8)
    words = flags.view(np.uint64)
    for first in range(0, m, BLOCK):
        _turn(w, first, turned)
        room = _fitted(room, found + n * BLOCK)
        points, neurons, products = room
        width = min(BLOCK, m - first)
        for p in range(n):
            _add_rows(s, turned, index, value, offsets[p], offsets[p + 1])
            found = _collect(
                s, width, edge, p, first, flags, words, points, neurons, products, found
            )
    return found, room


@compiled
def _dense_select(s, edge, room):  # type: ignore[no-untyped-def]
    n, m = s.shape
    flags, found = np.zeros(m + 8 - m % 8, np.uint8), 0
    words = flags.view(np.uint64)
    for p in range(n):
        room = _fitted(room, found + m)
        points, neurons, products = room
        found = _collect(s[p], m, edge, p, 0, flags, words, points, neurons, products, found)
    return found, room


@compiled
def _sums(out, point, value):  # type: ignore[no-untyped-def]
    for a in range(len(point)):
        out[point[a]] += value[a]


@compiled
def _weigh(value, by, point):  # type: ignore[no-untyped-def]
    for a in range(len(point)):
        value[a] *= by[point[a]]


@compiled
def _sparse_scatter(out, offsets, index, x, point, neuron, value):  # type: ignore[no-untyped-def]
    for a in range(len(point)):
        row, v = out[neuron[a]], value[a]
        for o in range(offsets[point[a]], offsets[point[a] + 1]):
            row[index[o]] += v * x[o]


@compiled
def _crowded_scatter(out, offsets, index, x, point, neuron, value):  # type: ignore[no-untyped-def]
    # Entries stand as `_sparse_select` found them: block by block, and point by point within one.
    d, a, b = out.shape[1], 0, 0
    turned, row = np.zeros((d, BLOCK), out.dtype), np.zeros(BLOCK, out.dtype)
    while a < len(point):
        block = neuron[a] // BLOCK
        turned[:] = 0
        while b < len(point) and neuron[b] // BLOCK == block:
            p = point[b]
            row[:] = 0
            while b < len(point) and point[b] == p and neuron[b] // BLOCK == block:
                row[neuron[b] % BLOCK] += value[b]
                b += 1
            _add_row(turned, row, index, x, offsets[p], offsets[p + 1])
        _turn_back(out, block * BLOCK, turned)
        a = b


@inlined
def _add_row(turned, row, index, x, o, e):  # type: ignore[no-untyped-def]
    """turned_j += x_j row for the entries o.. of a point."""
    for k in range(o, e):
        sums, v = turned[index[k]], x[k]
        for i in range(BLOCK):
            sums[i] += v * row[i]


@inlined
def _turn_back(w, first, turned):  # type: ignore[no-untyped-def]
    """Rows first.. of w += turned^T, as in `_turn`."""
    m, d = w.shape
    for start in range(0, d, STRIP):
        for i in range(min(BLOCK, m - first)):
            for j in range(start, min(d, start + STRIP)):
                w[first + i, j] += turned[j, i]


@compiled
def _dense_scatter(out, rows, to, of, value):  # type: ignore[no-untyped-def]
    for a in range(len(to)):
        row, other, v = out[to[a]], rows[of[a]], value[a]
        for j in range(out.shape[1]):
            row[j] += v * other[j]
