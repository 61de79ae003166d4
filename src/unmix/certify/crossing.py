"""Along an edge V_e change sign, and each turns the slope of |V|_1 a little: where it has turned.

This is the bound flipping of the dual simplex method. Compiled.
"""

from __future__ import annotations

import math

import numpy as np

from unmix.train.engines.compiled import compiled, reordered

# A movement of V_e that counts; narrowings of the bracket, and how few columns are put in order.
MOVED, PASSES, FEW = 1e-10, 12, 6


@reordered
def _meetings(V, sign, way, least, meets):  # type: ignore[no-untyped-def]
    """Steps at which V_e change their signs."""
    for e in range(len(V)):
        speed = -sign[e] * way[e]
        meets[e] = max(sign[e] * V[e], 0.0) / speed if speed > least else np.inf


@reordered
def _passed(meets, way, step):  # type: ignore[no-untyped-def]
    """(sum of |way|, how many) that have met by a step."""
    weight, count = 0.0, 0.0
    for e in range(len(way)):
        weight += abs(way[e]) if meets[e] <= step else 0.0
        count += 1.0 if meets[e] <= step else 0.0
    return weight, count


@compiled
def turn(V, need, far, table):  # type: ignore[no-untyped-def]
    """(step, column) where those that have met weigh `need`; column -1 if not before `far`."""
    meets, way = table.meets, table.way
    _meetings(V, table.sign, way, MOVED * np.abs(way).max(), meets)
    high = far if far < math.inf else 1e300
    over, above = _passed(meets, way, high)
    if over < need:
        return far, -1
    if far == math.inf:
        high = 0.0
        for e in range(len(way)):
            if meets[e] < math.inf:
                high = max(high, meets[e])
    # The bracket (low, high]: secants, kept away from its ends.
    low, under, below = -1.0, 0.0, 0.0
    for _ in range(PASSES):
        if above - below <= FEW:
            break
        start = max(low, 0.0)
        share = min(max((need - under) / (over - under), 0.02), 0.98)
        middle = start + share * (high - start)
        weight, count = _passed(meets, way, middle)
        if weight < need:
            low, under, below = middle, weight, count
        else:
            high, over, above = middle, weight, count
    return _first(meets, way, need - under, low, high)


@compiled
def _first(meets, way, need, low, high):  # type: ignore[no-untyped-def]
    """The column in (low, high] at which `need` is met: those few in order."""
    some = np.flatnonzero((meets > low) & (meets <= high))
    some = some[np.argsort(meets[some])]
    for e in some:
        need -= abs(way[e])
        if need <= 0:
            return meets[e], e
    return meets[some[-1]], some[-1]


@compiled
def flip(V, step, column, table):  # type: ignore[no-untyped-def]
    """Signs and sums after a step that passed others, and stopped at a column (-1: at none)."""
    for e in range(len(V)):
        if table.meets[e] < step or e == column:
            old = table.sign[e]
            table.sign[e] = 0.0 if e == column else -old
            for j in range(len(table.sums)):
                table.sums[j] += (table.sign[e] - old) * table.columns[e, j]
    if column >= 0:
        V[column] = 0.0
