"""The best bound of a node in linf: the simplex method on N / |V|_1. Compiled.

For a radius r, the Lagrangian N - r |V|_1 is largest at a vertex, where each weight is at a kink or
holds some V_e at 0; r becomes N / |V|_1 after every step, and stays the answer when no step is
left. A step lets go of one kink, or of one V_e, and moves along the edge on which all others stay.
It passes those V_e that change sign until the slope has turned, so that d costs products only. The
multipliers u of |V|_1, which are signs or, for the held ones, lie within [-1, 1], give the primal
delta = -r u.
"""

from __future__ import annotations

import math

import numpy as np

from unmix.certify.crossing import flip, turn
from unmix.certify.curves import LINES
from unmix.certify.kinks import REFINED, holds, kept, lay, tightened, worth
from unmix.certify.relaxation import HEAVY, add, along, certified, total
from unmix.certify.vertex import compensation, exchanged, factored, multipliers, reach
from unmix.train.engines.compiled import compiled

# A slope that counts; V and N that do not.
RISE, VANISHED = 1e-9, 1e-7


@compiled
def _gather(net, V, held, table):  # type: ignore[no-untyped-def]
    """V and its signs afresh; the held columns that are still at 0."""
    V[:] = table.shift
    for j in range(len(net.a)):
        add(V, table.weight[j], net.A, j)
    small = 1e-8 * np.abs(V).max()
    for e in range(len(V)):
        table.sign[e] = 1.0 if V[e] > 0 else -1.0
    for c in range(held):
        if abs(V[table.cols[c]]) > small:
            return 0
    for c in range(held):
        V[table.cols[c]], table.sign[table.cols[c]] = 0.0, 0.0
    return held


@compiled
def _sums(net, free, table):  # type: ignore[no-untyped-def]
    """<A_j, signs> of the free rows."""
    for f in range(free):
        table.sums[table.free[f]] = along(net.A, table.free[f], table.sign)


@compiled
def _choice(net, free, held, r, table):  # type: ignore[no-untyped-def]
    """The best edge: (row or -1, place of a column or -1, direction, slope)."""
    row, place, way, gain, most = -1, -1, 0.0, 0.0, 0.0
    for c in range(held):
        rise = abs(table.q[c]) - r
        if rise > RISE * r and rise > most * len(table.sign):
            most, gain = rise / len(table.sign), rise
            place, way = c, math.copysign(1.0, table.q[c])
    for f in range(free):
        j = table.free[f]
        pull = r * table.sums[j]
        for c in range(held):
            pull += table.columns[table.cols[c], j] * table.q[c]
        k, least = table.stands[j] // 2, RISE * r * net.norms[j]
        up = table.slopes[j, k + table.stands[j] % 2] - pull
        down = pull - table.slopes[j, k]
        rise = max(up, down)
        if rise > least and rise > most * net.norms[j] and not holds(j, held, table):
            most, gain = rise / net.norms[j], rise
            row, place, way = j, -1, 1.0 if up > down else -1.0
    return row, place, way, gain


@compiled
def _aim(net, row, place, way, held, table):  # type: ignore[no-untyped-def]
    """The edge: movements of the rows in table.move, and of V in table.way."""
    table.way[:] = 0
    for c in range(held):
        table.move[c] = -way * table.columns[table.cols[c], row] if row >= 0 else 0.0
    if row >= 0:
        add(table.way, way, net.A, row)
    else:
        table.move[place] = way
    compensation(held, table)
    for p in range(held):
        add(table.way, table.move[p], net.A, table.rows[p])
    for c in range(held):
        table.way[table.cols[c]] = 0.0
    if place >= 0:
        table.way[table.cols[place]] = way


@compiled
def _advance(V, row, way, step, held, table):  # type: ignore[no-untyped-def]
    """Weights and V after a step."""
    for p in range(held):
        table.weight[table.rows[p]] += step * table.move[p]
    if row >= 0:
        k = table.stands[row]
        table.weight[row] += step * way
        if k % 2 == 1:
            table.stands[row] = k + 1 if way > 0 else k - 1
    for e in range(len(V)):
        V[e] += step * table.way[e]


@compiled
def _dropped(net, V, held, free, table):  # type: ignore[no-untyped-def]
    """No vertex: all columns are let go."""
    for c in range(held):
        table.sign[table.cols[c]] = 1.0
    _sums(net, free, table)
    return 0


@compiled
def _ratio(net, V, table):  # type: ignore[no-untyped-def]
    """N / |V|_1; where V vanishes, an N that vanishes as well is no bound."""
    n, terms, lengths = worth(net, table)
    size = total(V)
    if size > VANISHED * lengths:
        return n / size
    return math.inf if n > VANISHED * terms else 0.0


@compiled
def _climb(net, V, free, held, r, goal, heavy, rounds, table):  # type: ignore[no-untyped-def]
    """Edge by edge to the best vertex: (rows that hold columns, r, are they the best?)."""
    for _ in range(rounds):
        r = max(r, _ratio(net, V, table))
        if r >= goal:
            return held, r, False
        if not factored(net, held, table):
            held = _dropped(net, V, held, free, table)
        multipliers(held, r, table)
        row, place, way, gain = _choice(net, free, held, r, table)
        if row < 0 and place < 0:
            return held, r, True
        _aim(net, row, place, way, held, table)
        far, who, kink = reach(row, way, held, table)
        step, column = turn(V, gain / (2 * r) if r > 0 else math.inf, far, table)
        if step == math.inf:
            step = heavy / max(np.abs(table.move[:held]).max() if held > 0 else 0.0, 1.0)
            _advance(V, row, way, step, held, table)
            return held, max(r, _ratio(net, V, table)), False
        _advance(V, row, way, step, held, table)
        flip(V, step, column, table)
        held = exchanged(row, place, way, who, kink, column, held, table)
    return held, r, False


@compiled
def _aimed(r, held, table, out):  # type: ignore[no-untyped-def]
    """The primal delta, -q."""
    for e in range(len(out)):
        out[e] = -r * table.sign[e]
    for c in range(held):
        out[table.cols[c]] = -min(max(table.q[c], -r), r)


@compiled
def climb(net, point, node, rho, start, goal, rounds, room):  # type: ignore[no-untyped-def]
    """Improve tangents and wall weights; the certified bound, with the primal delta in room.out.

    start: a bound that the node has anyway. It stops at `goal`, or after `rounds` steps.
    """
    table, V = room.table, room.V
    free, held = lay(net, point, node, rho, table)
    heavy, r = HEAVY * net.a.sum(), start
    for _ in range(REFINED):
        held = _gather(net, V, held, table)
        _sums(net, free, table)
        held, r, best = _climb(net, V, free, held, r, goal, heavy, rounds, table)
        if r < math.inf:
            _aimed(r, held, table, room.out)
        if r >= goal or (best and net.kind == LINES):
            break
        if best and not tightened(net, point, r, held, table, room.out):
            break
    kept(net, node, held, table)
    return certified(net, point, node, V)[2]
