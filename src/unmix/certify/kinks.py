"""Weights of a node's neurons in V = sum_j weight_j A_j, and what they add to N. Compiled.

A weight is a theta of an own neuron and nu - a s of an opponent. What it adds to N is concave, and
linear between kinks: theta ends at p and 1 (curves: it bends at every tangent that is held ready),
and an opponent bends where it leaves its chord for a wall.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from unmix.certify.curves import LINES, slope, value
from unmix.certify.relaxation import along
from unmix.train.engines.compiled import compiled

# Tangents of a curve that are held ready, and rounds in which the primal point adds one.
TANGENTS, REFINED = 10, 6
# A slope that counts; a gap of a tangent that counts; V is shifted by this share, so that no two
# V_e tie.
STEEP, CLOSE, SHIFT = 1e-10, 1e-6, 1e-11
BISECTIONS = 45


class Table(NamedTuple):
    """Weights with their kinks, the slopes of N around these and N at them; where a weight stands
    (2 k + 1: at kink k, 2 k: before it), the free ones; signs of V, its columns, the shift; the
    step's direction and when it meets what; and the vertex: rows, columns, their matrix, q = r u.
    """

    weight: np.ndarray
    kinks: np.ndarray
    slopes: np.ndarray
    values: np.ndarray
    number: np.ndarray
    stands: np.ndarray
    free: np.ndarray
    sign: np.ndarray
    sums: np.ndarray
    columns: np.ndarray
    shift: np.ndarray
    way: np.ndarray
    meets: np.ndarray
    tops: np.ndarray
    rows: np.ndarray
    cols: np.ndarray
    matrix: np.ndarray
    order: np.ndarray
    q: np.ndarray
    move: np.ndarray


@compiled
def table(net):  # type: ignore[no-untyped-def]
    """Memory for a net; none of it for l2."""
    (M, d), K = net.A.shape, 2 if net.kind == LINES else TANGENTS + REFINED
    if not net.cube:
        M, d, K = 0, 0, 0
    shift = np.empty(d)
    for e in range(d):
        # As good as random, and the same each time.
        shift[e] = ((e + 1) * 0.6180339887498949) % 1.0 - 0.5
    shift *= SHIFT * (net.a * net.norms).sum() / max(d, 1)
    return Table(
        np.empty(M), np.empty((M, K)), np.empty((M, K + 1)), np.empty((M, K)),
        np.empty(M, np.int64), np.empty(M, np.int64), np.empty(M, np.int64),
        np.empty(d), np.empty(M), net.A[:M, :d].T.copy(), shift, np.empty(d), np.empty(d),
        np.empty((M, K)), np.empty(M, np.int64), np.empty(M, np.int64), np.empty((M, M)),
        np.empty(M, np.int64), np.zeros(M), np.empty(M),
    )  # fmt: skip


@compiled
def curve(net, point, j, table):  # type: ignore[no-untyped-def]
    """Kinks of a curve: its slopes at the points of tangents, sorted; one for each slope."""
    z0, a, kept, n = point.z0[j], net.a[j], 0, table.number[j]
    tops, kinks, values = table.tops[j], table.kinks[j], table.values[j]
    for k in range(n):
        t = tops[k]
        steep = a * slope(net.kind, net.p, net.q, t)
        if kept == 0 or steep > kinks[kept - 1] + STEEP * a:
            tops[kept], kinks[kept] = t, steep
            values[kept] = steep * (z0 - t) + a * value(net.kind, net.p, net.q, t)
            kept += 1
    table.number[j] = kept
    table.slopes[j, 0], table.slopes[j, kept] = math.inf, -math.inf
    for k in range(1, kept):
        table.slopes[j, k] = (values[k] - values[k - 1]) / (kinks[k] - kinks[k - 1])


@compiled
def touch(net, point, j, t, table):  # type: ignore[no-untyped-def]
    """A further tangent of a curve."""
    n = table.number[j]
    if n == table.tops.shape[1]:
        return
    while n > 0 and table.tops[j, n - 1] > t:
        table.tops[j, n] = table.tops[j, n - 1]
        n -= 1
    table.tops[j, n] = t
    table.number[j] += 1


@compiled
def _lay_own(net, point, j, t, rho, table):  # type: ignore[no-untyped-def]
    """Kinks of an own neuron; is it free to move?"""
    a, z0, reach = net.a[j], point.z0[j], rho * net.norms[j]
    if net.kind == LINES:
        table.number[j], table.weight[j] = 2, a * t
        table.kinks[j, 0], table.kinks[j, 1] = a * net.p, a
        table.values[j, 0], table.values[j, 1] = a * net.p * z0, a * z0
        table.slopes[j, 0], table.slopes[j, 1], table.slopes[j, 2] = math.inf, z0, -math.inf
        return abs(z0) < reach or t != (1.0 if z0 > 0 else net.p)
    table.number[j], table.weight[j] = 0, a * slope(net.kind, net.p, net.q, t)
    for k in range(TANGENTS - 1):
        touch(net, point, j, z0 + reach * (2 * k / (TANGENTS - 2) - 1), table)
    touch(net, point, j, t, table)
    curve(net, point, j, table)
    return True


@compiled
def _lay_opponent(net, point, node, j, table):  # type: ignore[no-untyped-def]
    """The one kink of an opponent; is it free to move?"""
    k = net.own + j
    a, z0 = net.a[k], point.z0[k]
    chord = -a * node.s[j]
    table.number[k], table.weight[k] = 1, chord + node.nu[j]
    table.kinks[k, 0], table.values[k, 0] = chord, chord * z0 - a * node.i[j]
    # Without a wall inside the ball, the chord's slope is as good as any.
    table.slopes[k, 0], table.slopes[k, 1] = z0 - node.low[j], z0 - node.high[j]
    walled = node.low[j] == node.lo[j] or node.high[j] == node.hi[j]
    return node.low[j] > -math.inf and (walled or node.nu[j] != 0)


@compiled
def stand(j, basic, table):  # type: ignore[no-untyped-def]
    """Where a weight stands among its kinks."""
    k, n, w = 0, table.number[j], table.weight[j]
    near = 1e-12 * (abs(table.kinks[j, 0]) + abs(table.kinks[j, n - 1]))
    while k < n and table.kinks[j, k] < w - near:
        k += 1
    if k < n and abs(table.kinks[j, k] - w) <= near:
        table.weight[j] = table.kinks[j, k]
        # What holds a column at 0 is in between: above this kink, or below the last one.
        table.stands[j] = 2 * k + 1 if not basic else 2 * (k if k == n - 1 and n > 1 else k + 1)
    else:
        table.stands[j] = 2 * k


@compiled
def lay(net, point, node, rho, table):  # type: ignore[no-untyped-def]
    """Weights as the node has them, and their kinks; how many are free, how many hold a column."""
    free, held = 0, 0
    for j in range(len(net.a)):
        if j < net.own:
            moves = _lay_own(net, point, j, node.t[j], rho, table)
        else:
            moves = _lay_opponent(net, point, node, j - net.own, table)
        basic = moves and node.held[j] >= 0
        stand(j, basic, table)
        if moves:
            table.free[free] = j
            free += 1
        if basic:
            table.rows[held], table.cols[held] = j, node.held[j]
            held += 1
    return free, held


@compiled
def holds(j, held, table):  # type: ignore[no-untyped-def]
    """Does this row hold a column?"""
    return j in table.rows[:held]


@compiled
def worth(net, table):  # type: ignore[no-untyped-def]
    """N, with what its terms and those of V sum to in size."""
    n, terms, lengths = net.c, abs(net.c), 0.0
    for j in range(len(net.a)):
        k = table.stands[j] // 2
        term = table.values[j, k if table.stands[j] % 2 == 1 else max(k - 1, 0)]
        terms += abs(term)
        if table.stands[j] % 2 == 0:
            beyond = table.weight[j] - table.kinks[j, max(k - 1, 0)]
            term += table.slopes[j, k] * beyond
            terms += abs(table.slopes[j, k] * beyond)
        n += term
        lengths += abs(table.weight[j]) * net.norms[j]
    return n, terms, lengths


@compiled
def tightened(net, point, r, held, table, delta):  # type: ignore[no-untyped-def]
    """Tangents of the own curves at the primal point, where they are needed; any?"""
    added = False
    for j in range(net.own):
        z = point.z0[j] + along(net.A, j, delta)
        gap = net.a[j] * value(net.kind, net.p, net.q, z)
        for k in range(table.number[j]):
            on = table.kinks[j, k] * (z - point.z0[j]) + table.values[j, k]
            gap = min(gap, net.a[j] * value(net.kind, net.p, net.q, z) - on)
        if gap > CLOSE * r * net.a[j] * net.norms[j] and table.number[j] < table.tops.shape[1]:
            touch(net, point, j, z, table)
            curve(net, point, j, table)
            stand(j, holds(j, held, table), table)
            added = True
    return added


@compiled
def kept(net, node, held, table):  # type: ignore[no-untyped-def]
    """Weights back into the node, as tangents and weights of walls."""
    for j in range(net.own):
        theta = table.weight[j] / net.a[j]
        node.t[j] = min(max(theta, net.p), 1.0) if net.kind == LINES else _point(net, j, table)
    for j in range(len(node.nu)):
        k = net.own + j
        node.nu[j] = 0.0
        if table.stands[k] != 1:
            node.nu[j] = table.weight[k] - table.kinks[k, 0]
    node.held[:] = -1
    for p in range(held):
        node.held[table.rows[p]] = table.cols[p]


@compiled
def _point(net, j, table):  # type: ignore[no-untyped-def]
    """Where a curve has the slope that its weight stands for."""
    k = table.stands[j] // 2
    if table.stands[j] % 2 == 1:
        return table.tops[j, k]
    theta, low, high = table.weight[j] / net.a[j], table.tops[j, k - 1], table.tops[j, k]
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if slope(net.kind, net.p, net.q, middle) < theta:
            low = middle
        else:
            high = middle
    return (low + high) / 2
