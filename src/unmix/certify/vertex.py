"""A vertex: rows whose weights hold as many columns V_e at 0, and the step to the next. Compiled.

The matrix is A[rows, cols]. It is factored afresh for every step: it has few rows, and nothing
drifts.
"""

from __future__ import annotations

import math

from unmix.train.engines.compiled import compiled


@compiled
def factored(net, held, table):  # type: ignore[no-untyped-def]
    """Triangular factors of the vertex's matrix A[rows, cols]; False if it is singular."""
    B, order = table.matrix, table.order
    for p in range(held):
        order[p] = p
        for c in range(held):
            B[p, c] = table.columns[table.cols[c], table.rows[p]]
    for c in range(held):
        best = c
        for p in range(c + 1, held):
            if abs(B[p, c]) > abs(B[best, c]):
                best = p
        if abs(B[best, c]) <= 1e-11 * net.norms[table.rows[order[best]]]:
            return False
        if best != c:
            order[c], order[best] = order[best], order[c]
            for e in range(held):
                B[c, e], B[best, e] = B[best, e], B[c, e]
        for p in range(c + 1, held):
            if B[p, c] != 0:
                B[p, c] /= B[c, c]
                for e in range(c + 1, held):
                    B[p, e] -= B[p, c] * B[c, e]
    return True


@compiled
def multipliers(held, r, table):  # type: ignore[no-untyped-def]
    """q: what makes the slope along each of the vertex's rows 0. Rows of the factors are sorted."""
    B, q = table.matrix, table.q
    for p in range(held):
        j = table.rows[table.order[p]]
        q[p] = table.slopes[j, table.stands[j] // 2] - r * table.sums[j]
        for e in range(p):
            q[p] -= B[p, e] * q[e]
    for p in range(held - 1, -1, -1):
        for e in range(p + 1, held):
            q[p] -= B[p, e] * q[e]
        q[p] /= B[p, p]


@compiled
def compensation(held, table):  # type: ignore[no-untyped-def]
    """Solve move B = what table.move holds, in place; by rows of the vertex."""
    B, x, order = table.matrix, table.move, table.order
    for c in range(held):
        for e in range(c):
            x[c] -= B[e, c] * x[e]
        x[c] /= B[c, c]
    for c in range(held - 1, -1, -1):
        for e in range(c + 1, held):
            x[c] -= B[e, c] * x[e]
    # Back from the order of the factors; q is not needed any more.
    for p in range(held):
        table.q[order[p]] = x[p]
    x[:held] = table.q[:held]


@compiled
def _room(j, way, table):  # type: ignore[no-untyped-def]
    """(how far a weight may move to the next kink, that kink)."""
    k = table.stands[j] // 2 + (table.stands[j] % 2 if way > 0 else 0) - (0 if way > 0 else 1)
    if not 0 <= k < table.number[j]:
        return math.inf, k
    return max((table.kinks[j, k] - table.weight[j]) / way, 0.0), k


@compiled
def reach(row, way, held, table):  # type: ignore[no-untyped-def]
    """(step to the first kink, whose: place in the vertex, or `held` for the row that enters)."""
    far, who, kink = math.inf, -1, 0
    if row >= 0:
        far, kink = _room(row, way, table)
        who = held
    for p in range(held):
        if table.move[p] != 0:
            to, k = _room(table.rows[p], table.move[p], table)
            if to < far:
                far, who, kink = to, p, k
    return far, who, kink


@compiled
def _released(place, way, table):  # type: ignore[no-untyped-def]
    """A column is let go: its sign counts again."""
    e = table.cols[place]
    table.sign[e] = way
    for j in range(len(table.sums)):
        table.sums[j] += way * table.columns[e, j]


@compiled
def exchanged(row, place, way, who, kink, column, held, table):  # type: ignore[no-untyped-def]
    """The next vertex's rows and columns; how many."""
    if place >= 0:
        _released(place, way, table)
    if column >= 0:
        if place >= 0:
            table.cols[place] = column
            return held
        table.rows[held], table.cols[held] = row, column
        return held + 1
    stopped = row if who == held else table.rows[who]
    table.weight[stopped], table.stands[stopped] = table.kinks[stopped, kink], 2 * kink + 1
    if who == held:
        return held
    if row >= 0:
        table.rows[who] = row
        return held
    table.rows[who], table.cols[place] = table.rows[held - 1], table.cols[held - 1]
    return held - 1
