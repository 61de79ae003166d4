"""Best-first branch and bound over the intervals of the opposing neurons: compiled.

A node is an interval [lo, hi] for each opposing neuron; the root has none. Only these neurons are
ever split, at their kink or near the relaxed optimum, since own neurons are convex already. Every
node's relaxed optimum is tried as an attack, and the best success so far (the incumbent rho)
shrinks the ball in which chords must hold. A node whose bound reaches (1 - tol) rho is done.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from unmix.certify.curves import EXPONENTIAL, GAUSSIAN, LINES, value
from unmix.certify.descent import CARE, FAST, HASTE, THOROUGH, at, attack, corner, improve
from unmix.certify.kinks import table
from unmix.certify.relaxation import Node, Point, Room, chords, reset
from unmix.certify.relaxing import relax
from unmix.train.engines.compiled import compiled

# A curve is split no closer to an end than this share of its interval.
INSIDE = 0.2
NARROW = 1e-8
HALVINGS = 60
# What a point's search may end as.
CLOSED, OPEN, CUT = 0, 1, 2


class Queue(NamedTuple):
    """Open nodes: a heap of bounds over slots, what each slot holds, and the free slots."""

    keys: np.ndarray
    slots: np.ndarray
    free: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    s: np.ndarray
    t: np.ndarray
    nu: np.ndarray
    held: np.ndarray
    pick: np.ndarray
    place: np.ndarray


@compiled
def _push(queue, size, key, slot):  # type: ignore[no-untyped-def]
    """Put a node into the heap; the new size."""
    keys, slots, j = queue.keys, queue.slots, size
    keys[j], slots[j] = key, slot
    while j > 0 and keys[(j - 1) // 2] > keys[j]:
        up = (j - 1) // 2
        keys[j], keys[up] = keys[up], keys[j]
        slots[j], slots[up] = slots[up], slots[j]
        j = up
    return size + 1


@compiled
def _pop(queue, size):  # type: ignore[no-untyped-def]
    """Drop the first node; the new size."""
    keys, slots, j = queue.keys, queue.slots, 0
    size -= 1
    keys[0], slots[0] = keys[size], slots[size]
    while 2 * j + 1 < size:
        down = 2 * j + 1
        if down + 1 < size and keys[down + 1] < keys[down]:
            down += 1
        if keys[j] <= keys[down]:
            break
        keys[j], keys[down] = keys[down], keys[j]
        slots[j], slots[down] = slots[down], slots[j]
        j = down
    return size


@compiled
def _split(net, point, node, rho, z):  # type: ignore[no-untyped-def]
    """The opponent whose chord lies highest above phi at z, and where to split it; -1 for none."""
    pick, most, where = -1, -math.inf, 0.0
    for j in range(len(node.lo)):
        k = net.own + j
        gap = net.a[k] * (node.s[j] * z[k] + node.i[j] - value(net.kind, net.p, net.q, z[k]))
        if gap <= most:
            continue
        reach = rho * net.norms[k]
        low, high = max(node.lo[j], point.z0[k] - reach), min(node.hi[j], point.z0[k] + reach)
        place, wide = 0.0, high - low
        if net.kind == LINES and not low < 0 < high:
            continue
        # Curves are split at 0, too, where they are flat before it: a chord over both sides would
        # let a point with m = 0 pass for lost.
        if net.kind == EXPONENTIAL and (z[k] > 0 or low >= 0):
            # Its chord hangs on the far end: 0 comes later.
            low, wide = max(low, 0.0), high - max(low, 0.0)
        if net.kind == GAUSSIAN or (net.kind != LINES and not low < 0 < high):
            place = min(max(z[k], low + INSIDE * wide), high - INSIDE * wide)
        if wide > NARROW * (1 + abs(low) + abs(high)):
            pick, most, where = j, gap, place
    return pick, where


@compiled
def _silent(net, point, node, rho):  # type: ignore[no-untyped-def]
    """No opponent can speak in this node, and silence is not misclassified."""
    flat = net.kind != GAUSSIAN and (net.kind != LINES or net.p == 0)
    if not flat or net.c < 0 or (net.c == 0 and not net.strict):
        return False
    for j in range(len(node.hi)):
        k = net.own + j
        if min(node.hi[j], point.z0[k] + rho * net.norms[k]) > 0:
            return False
    return True


@compiled
def _behind_walls(net, point, node):  # type: ignore[no-untyped-def]
    """Distance to the farthest wall that x is outside of."""
    bound = 0.0
    for j in range(len(node.lo)):
        k = net.own + j
        over = max(point.z0[k] - node.hi[j], node.lo[j] - point.z0[k])
        bound = max(bound, over / net.norms[k] * (1 - 1e-9))
    return bound


@compiled
def _bounded(net, point, node, parent, rho, tol, best, room):  # type: ignore[no-untyped-def]
    """(bound, incumbent, neuron to split or -1, place) of a node."""
    if _silent(net, point, node, rho) or not chords(net, point, node, rho):
        return math.inf, rho, -1, 0.0
    bound, goal = max(parent, _behind_walls(net, point, node)), rho * (1 - tol)
    bound = max(bound, relax(net, point, node, rho, bound, goal, FAST, HASTE, room))
    if bound >= goal:
        return bound, rho, -1, 0.0
    better = improve(net, point, room.out, rho, best, room)
    at(net, point.z0, room.out, room.z)
    pick, place = _split(net, point, node, rho, room.z)
    if pick >= 0:
        return bound, better, pick, place
    # A leaf is convex, so its optimum is the answer; give it the time to converge.
    bound = max(bound, relax(net, point, node, rho, bound, goal, THOROUGH, CARE, room))
    better = improve(net, point, room.out, better, best, room)
    if bound < better * (1 - tol) and net.kind == LINES:
        better = corner(net, point, better, best, room)
    return bound, better, -1, 0.0


@compiled
def nearest(net, point, rho, tol, most, queue, node, best, room):  # type: ignore[no-untyped-def]
    """(lower, upper, how it ended, nodes) of one point; `best` receives the upper end's delta.

    rho: a radius beyond which nothing is asked (a known upper bound, or how far to look).
    """
    start = rho
    rho = attack(net, point, node, rho, best, room)
    node.lo[:], node.hi[:] = -math.inf, math.inf
    # Chords first: walls start without weight on these.
    chords(net, point, node, rho)
    reset(net, point, node)
    bound, rho, pick, place = _bounded(net, point, node, 0.0, rho, tol, best, room)
    # Slots that were given back, and those that were ever used.
    vacant, used, size, nodes, done = 0, 0, 0, 1, math.inf
    while True:
        if pick < 0 or (vacant == 0 and used == len(queue.keys)):
            done = min(done, bound)
        else:
            if vacant > 0:
                vacant -= 1
                slot = queue.free[vacant]
            else:
                slot = used
                used += 1
            queue.lo[slot], queue.hi[slot] = node.lo, node.hi
            queue.s[slot], queue.t[slot], queue.nu[slot] = node.s, node.t, node.nu
            queue.held[slot] = node.held
            queue.pick[slot], queue.place[slot] = pick, place
            size = _push(queue, size, bound, slot)
        # Nodes come in pairs: the sides of one split, the upper one first.
        if nodes % 2 == 1:
            if size == 0 or queue.keys[0] >= rho * (1 - tol) or nodes >= most:
                break
            parent, held = queue.keys[0], queue.slots[0]
            size = _pop(queue, size)
            queue.free[vacant] = held
            vacant += 1
            split, cut = queue.pick[held], queue.place[held]
            before = (
                queue.lo[held].copy(), queue.hi[held].copy(), queue.s[held].copy(),
                queue.t[held].copy(), queue.nu[held].copy(), queue.held[held].copy(),
            )  # fmt: skip
        node.lo[:], node.hi[:], node.s[:], node.t[:], node.nu[:], node.held[:] = before
        if nodes % 2 == 1:
            node.lo[split] = cut
        else:
            node.hi[split] = cut
        nodes += 1
        bound, rho, pick, place = _bounded(net, point, node, parent, rho, tol, best, room)
    lower = min(done, rho) if size == 0 else min(done, rho, queue.keys[0])
    ended = CLOSED if lower >= rho * (1 - tol) else (CUT if nodes >= most else OPEN)
    return lower, rho if rho < start else math.inf, ended, nodes


@compiled
def memory(net):  # type: ignore[no-untyped-def]
    """A node and room for a net."""
    against, (M, r) = len(net.a) - net.own, net.A.shape
    s, i, nu = np.empty(against), np.empty(against), np.zeros(against)
    lo, hi = np.full(against, -math.inf), np.full(against, math.inf)
    held = np.full(M if net.cube else 0, -1)
    node = Node(lo, hi, lo.copy(), hi.copy(), s, i, np.empty(net.own), nu, held)
    V, walls, out, z, u = np.empty(r), np.empty(r), np.empty(r), np.empty(M), np.empty(r)
    return node, Room(V, walls, out, z, u, table(net))


@compiled
def nearest_of_all(net, Z, far, limits, tol, most, slots):  # type: ignore[no-untyped-def]
    """`nearest` of each row of Z [n M]: lower, upper, ended, nodes [n] and delta [n r]."""
    n, (M, r), own = len(Z), net.A.shape, net.own
    lower, upper, ended = np.zeros(n), np.zeros(n), np.zeros(n, np.int64)
    nodes, delta = np.zeros(n, np.int64), np.zeros((n, r))
    node, room = memory(net)
    queue = Queue(
        np.empty(slots), np.empty(slots, np.int64), np.empty(slots, np.int64),
        np.empty((slots, M - own)), np.empty((slots, M - own)), np.empty((slots, M - own)),
        np.empty((slots, own)), np.empty((slots, M - own)),
        np.empty((slots, len(node.held)), np.int64), np.empty(slots, np.int64), np.empty(slots),
    )  # fmt: skip
    for k in range(n):
        point = Point(Z[k], np.abs(Z[k]) + 2 * far[k] * net.norms)
        lower[k], upper[k], ended[k], nodes[k] = nearest(
            net, point, limits[k], tol, most, queue, node, delta[k], room
        )
    return lower, upper, ended, nodes, delta


@compiled
def roots(net, Z, far, limits, rounds):  # type: ignore[no-untyped-def]
    """The largest min(rho, root bound within rho) that a bisection over rho meets, a row of Z."""
    found = np.zeros(len(Z))
    node, room = memory(net)
    for k in range(len(Z)):
        point = Point(Z[k], np.abs(Z[k]) + 2 * far[k] * net.norms)
        low, high = 0.0, limits[k]
        node.lo[:], node.hi[:] = -math.inf, math.inf
        chords(net, point, node, high)
        reset(net, point, node)
        for _ in range(HALVINGS):
            # In the geometric middle, once there is one.
            rho = math.sqrt(low * high) if low > 0 else high / 8
            chords(net, point, node, rho)
            bound = relax(net, point, node, rho, 0.0, rho, rounds, HASTE, room)
            found[k] = max(found[k], min(rho, bound))
            if bound >= rho:
                low = max(rho, low)
            else:
                high, low = rho, max(low, bound)
            if high - low <= 1e-4 * high:
                break
    return found
