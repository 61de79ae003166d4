"""Best-first branch and bound over the intervals of the opposing neurons: compiled.

A node is an interval [lo, hi] for each opposing neuron; the root has none. Only these neurons are
ever split, at their kink or near the relaxed optimum, since own neurons are convex already. Every
node's relaxed optimum is tried as an attack, and the best success so far (the incumbent rho)
shrinks the ball in which chords must hold. A node whose bound reaches (1 - tol) rho is done.
"""

from __future__ import annotations

import math

import numpy as np

from unmix.certify.curves import LINES, slope, value
from unmix.certify.relaxation import at, chords, edge, inward, relax, tangents
from unmix.train.engines.compiled import compiled

FAST, THOROUGH = 30, 3000
HASTE, CARE = 1e-3, 1e-10
DESCENTS, BISECTIONS = 4, 60
INSIDE = 0.2
NUDGES = (1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4)
# What a point's search may end as.
CLOSED, OPEN, CUT = 0, 1, 2


@compiled
def _push(keys, slots, size, key, slot):  # type: ignore[no-untyped-def]
    """Put a node into the heap of bounds; returns the new size."""
    j = size
    keys[j], slots[j] = key, slot
    while j > 0 and keys[(j - 1) // 2] > keys[j]:
        up = (j - 1) // 2
        keys[j], keys[up] = keys[up], keys[j]
        slots[j], slots[up] = slots[up], slots[j]
        j = up
    return size + 1


@compiled
def _pop(keys, slots, size):  # type: ignore[no-untyped-def]
    """Drop the first node; returns the new size."""
    size -= 1
    keys[0], slots[0] = keys[size], slots[size]
    j = 0
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
def _improve(A, a, own, c, z0, kind, p, q, strict, delta, z, rho, best):  # type: ignore[no-untyped-def]
    """Try the way through `delta` as an attack; the new incumbent, kept in `best`."""
    at(A, z0, delta, z)
    length = math.sqrt((delta * delta).sum())
    if length == 0:
        return rho
    share = edge(a, own, c, kind, p, q, z0, z, strict, rho / length)
    if share * length < rho:
        rho = share * length
        best[:] = share * delta
        at(A, z0, best, z)
    return rho


@compiled
def _corner(A, a, own, c, z0, norms, kind, p, q, strict, delta, z, V, rho, best):  # type: ignore[no-untyped-def]
    """The same a little beside `delta`, into the lost set."""
    u, length, here = np.empty(len(delta)), math.sqrt((delta * delta).sum()), np.empty(len(z))
    at(A, z0, delta, here)
    for aside in NUDGES:
        inward(A, a, own, p, here, norms, 100 * aside * length, V, u)
        rho = _improve(A, a, own, c, z0, kind, p, q, strict, delta + aside * length * u, z, rho, best)
    return rho


@compiled
def _descend(A, a, own, c, z0, norms, grain, kind, p, q, strict, s, i, t, nu, lo, hi, z, V, out, rho, best):  # type: ignore[no-untyped-def]
    """Convex-concave descent from the lines (s, i): project onto {own <= lines}, take tangents."""
    for _ in range(DESCENTS):
        before = rho
        for j in range(own):
            t[j] = slope(kind, p, q, z0[j]) if kind == LINES else z0[j]
        relax(A, a, own, c, z0, norms, grain, kind, p, q, lo, hi, s, i, t, nu, rho, rho, FAST, HASTE, V, out)
        rho = _improve(A, a, own, c, z0, kind, p, q, strict, out, z, rho, best)
        if not rho < before * (1 - 1e-6):
            break
        at(A, z0, best, z)
        tangents(kind, p, q, z[own:], s, i)
    return rho


@compiled
def _attack(A, a, own, c, z0, norms, grain, kind, p, q, strict, s, i, t, nu, lo, hi, z, V, out, rho, best):  # type: ignore[no-untyped-def]
    """The first incumbent: descents from the neurons that are on, from all, and from single ones."""
    against = len(z0) - own
    tangents(kind, p, q, z0[own:], s, i)
    rho = _descend(A, a, own, c, z0, norms, grain, kind, p, q, strict, s, i, t, nu, lo, hi, z, V, out, rho, best)
    scale = rho if rho < math.inf else np.abs(z0 / norms).max()
    tangents(kind, p, q, z0[own:] + scale * norms[own:], s, i)
    rho = _descend(A, a, own, c, z0, norms, grain, kind, p, q, strict, s, i, t, nu, lo, hi, z, V, out, rho, best)
    # Single opponents, the closest first: closed form with the own neurons as they are at x.
    V[:] = 0
    n = c
    for j in range(own):
        steep = slope(kind, p, q, z0[j])
        V += a[j] * steep * A[j]
        n += a[j] * (steep * z0[j] if kind == LINES else value(kind, p, q, z0[j]))
    first = np.empty(against)
    for j in range(against):
        row = V - a[own + j] * A[own + j]
        first[j] = (n - a[own + j] * z0[own + j]) / max(math.sqrt((row * row).sum()), 1e-300)
    order = np.argsort(first)
    for one in order[: 4]:
        for j in range(against):
            edge_at = z0[own + j] + (scale * norms[own + j] if j == one else -scale * norms[own + j])
            s[j] = slope(kind, p, q, edge_at)
            i[j] = value(kind, p, q, edge_at) - s[j] * edge_at
        rho = _descend(A, a, own, c, z0, norms, grain, kind, p, q, strict, s, i, t, nu, lo, hi, z, V, out, rho, best)
    return rho


@compiled
def _gap(a, own, kind, p, q, z0, z, s, i, reach, lo, hi):  # type: ignore[no-untyped-def]
    """The opponent whose chord lies highest above phi at z, by how much, and where to split it."""
    # A line's chord is exact off its kink, however small the gap; a curve's is never exact.
    pick, most, where = -1, (-math.inf if kind == LINES else 0.0), 0.0
    for j in range(len(z0) - own):
        k = own + j
        gap = a[k] * (s[j] * z[k] + i[j] - value(kind, p, q, z[k]))
        if gap > most:
            low, high = max(lo[j], z0[k] - reach[k]), min(hi[j], z0[k] + reach[k])
            if kind == LINES:
                if not low < 0 < high:
                    continue
                place = 0.0
            else:
                wide = high - low
                place = min(max(z[k], low + INSIDE * wide), high - INSIDE * wide)
            pick, most, where = j, gap, place
    return pick, most, where


@compiled
def _silent(kind, p, c, strict, hi, z0, reach):  # type: ignore[no-untyped-def]
    """No opponent can speak in this node, and silence is not misclassified."""
    if kind == 3 or (kind == LINES and p > 0) or c < 0 or (c == 0 and not strict):
        return False
    for j in range(len(z0)):
        if min(hi[j], z0[j] + reach[j]) > 0:
            return False
    return True


@compiled
def nearest(A, a, own, c, z0, norms, grain, kind, p, q, strict, rho, tol, most, pool, best):  # type: ignore[no-untyped-def]
    """(lower, upper, how it ended, nodes) of one point; `best` receives the upper end's delta.

    rho: a radius beyond which nothing is asked (the known upper bound, or the reach).
    """
    LO, HI, T, NU, keys, slots, free, picks, places = pool
    M, r = A.shape
    against = M - own
    s, i = np.empty(against), np.empty(against)
    t, nu = np.empty(own), np.zeros(against)
    lo, hi = np.full(against, -math.inf), np.full(against, math.inf)
    V, out, z = np.empty(r), np.empty(r), np.empty(M)
    start = rho
    rho = _attack(A, a, own, c, z0, norms, grain, kind, p, q, strict, s, i, t, nu, lo, hi, z, V, out, rho, best)
    for j in range(own):
        t[j] = slope(kind, p, q, z0[j]) if kind == LINES else z0[j]
    nu[:] = 0
    room = len(keys)
    for j in range(room):
        free[j] = room - 1 - j
    vacant, size, nodes, done = room, 0, 0, math.inf
    parent, children, pick, place = 0.0, 1, -1, 0.0
    plo, phi_ = lo.copy(), hi.copy()
    pt, pnu = t.copy(), nu.copy()
    while True:
        for child in range(children):
            lo[:], hi[:], t[:], nu[:] = plo, phi_, pt, pnu
            if pick >= 0 and child == 0:
                lo[pick] = place
            elif pick >= 0:
                hi[pick] = place
            reach = rho * norms
            if _silent(kind, p, c, strict, hi, z0[own:], reach[own:]):
                continue
            if not chords(kind, p, q, z0[own:], reach[own:], lo, hi, s, i):
                continue
            nodes += 1
            goal = rho * (1 - tol)
            bound = parent
            for j in range(against):
                k = own + j
                wall = max(z0[k] - hi[j], lo[j] - z0[k]) / norms[k] * (1 - 1e-9)
                bound = max(bound, wall)
            got = relax(A, a, own, c, z0, norms, grain, kind, p, q, lo, hi, s, i, t, nu, rho, goal, FAST, HASTE, V, out)
            bound = max(bound, got)
            if bound >= goal:
                done = min(done, bound)
                continue
            rho = _improve(A, a, own, c, z0, kind, p, q, strict, out, z, rho, best)
            at(A, z0, out, z)
            pick_, gap, place_ = _gap(a, own, kind, p, q, z0, z, s, i, reach, lo, hi)
            if pick_ < 0:
                # A leaf: convex, so its optimum is the answer; give it the time to converge.
                got = relax(A, a, own, c, z0, norms, grain, kind, p, q, lo, hi, s, i, t, nu, rho, goal, THOROUGH, CARE, V, out)
                bound = max(bound, got)
                rho = _improve(A, a, own, c, z0, kind, p, q, strict, out, z, rho, best)
                if bound < rho * (1 - tol) and kind == LINES:
                    rho = _corner(A, a, own, c, z0, norms, kind, p, q, strict, out, z, V, rho, best)
                done = min(done, bound)
                continue
            if vacant == 0:
                done = min(done, bound)
                continue
            vacant -= 1
            slot = free[vacant]
            LO[slot, :against], HI[slot, :against] = lo, hi
            T[slot, :own], NU[slot, :against] = t, nu
            picks[slot], places[slot] = pick_, place_
            size = _push(keys, slots, size, bound, slot)
        if size == 0 or keys[0] >= rho * (1 - tol) or nodes >= most:
            break
        slot, parent = slots[0], keys[0]
        size = _pop(keys, slots, size)
        plo[:], phi_[:] = LO[slot, :against], HI[slot, :against]
        pt[:], pnu[:] = T[slot, :own], NU[slot, :against]
        pick, place, children = picks[slot], places[slot], 2
        free[vacant] = slot
        vacant += 1
    lower = min(done, rho)
    if size > 0:
        lower = min(lower, keys[0])
    ended = CLOSED if lower >= rho * (1 - tol) else (CUT if nodes >= most else OPEN)
    return lower, rho if rho < start else math.inf, ended, nodes


@compiled
def nearest_of_all(A, a, own, c, Z, norms, far, kind, p, q, strict, limits, tol, most, room):  # type: ignore[no-untyped-def]
    """`nearest` of each row of Z; lower, upper, ended, nodes and delta."""
    n, (M, r) = len(Z), A.shape
    lower, upper, ended = np.zeros(n), np.zeros(n), np.zeros(n, np.int64)
    nodes, delta = np.zeros(n, np.int64), np.zeros((n, r))
    pool = (
        np.empty((room, M - own)), np.empty((room, M - own)), np.empty((room, own)),
        np.empty((room, M - own)), np.empty(room), np.empty(room, np.int64),
        np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room),
    )  # fmt: skip
    for point in range(n):
        grain = np.abs(Z[point]) + 2 * far[point] * norms
        lower[point], upper[point], ended[point], nodes[point] = nearest(
            A, a, own, c, Z[point], norms, grain, kind, p, q, strict, limits[point], tol, most, pool,
            delta[point],
        )  # fmt: skip
    return lower, upper, ended, nodes, delta


@compiled
def roots(A, a, own, c, Z, norms, far, kind, p, q, limits, rounds):  # type: ignore[no-untyped-def]
    """The largest min(rho, root bound within rho) that a bisection over rho meets, a row of Z."""
    found, r, against = np.zeros(len(Z)), A.shape[1], len(a) - own
    s, i, t, nu = np.empty(against), np.empty(against), np.empty(own), np.zeros(against)
    lo, hi = np.full(against, -math.inf), np.full(against, math.inf)
    V, out = np.empty(r), np.empty(r)
    for point in range(len(Z)):
        z0, low, high = Z[point], 0.0, limits[point]
        grain = np.abs(z0) + 2 * far[point] * norms
        for j in range(own):
            t[j] = slope(kind, p, q, z0[j]) if kind == LINES else z0[j]
        for _ in range(BISECTIONS):
            # In the geometric middle, once there is one.
            rho = math.sqrt(low * high) if low > 0 else high / 8
            chords(kind, p, q, z0[own:], rho * norms[own:], lo, hi, s, i)
            bound = relax(
                A, a, own, c, z0, norms, grain, kind, p, q, lo, hi, s, i, t, nu, rho, rho, rounds, HASTE,
                V, out,
            )  # fmt: skip
            found[point] = max(found[point], min(rho, bound))
            if bound >= rho:
                low = max(rho, low)
            else:
                high, low = rho, max(low, bound)
            if high - low <= 1e-4 * high:
                break
    return found
