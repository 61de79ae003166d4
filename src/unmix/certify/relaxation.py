"""The convex relaxation of one node, in the span of the neurons: compiled inner loops.

With own neurons P and opposing ones Q (all weights a > 0, phi convex)

    m(delta) = sum_P a phi(z) - sum_Q a phi(z) + c,      z = z0 + A delta,

tangents bound phi from below on P, chords over [lo, hi] bound it from above on Q, and nu_q weighs
the walls lo <= z_q <= hi of the node. What remains is linear, N + <V, delta> <= m(delta):

    N = c + sum_P a (theta z0 - phi*(theta)) - sum_Q a (s z0 + i) + sum_Q nu (z0 - wall)
    V =     sum_P a theta A_p               - sum_Q a s A_q       + sum_Q nu A_q

so every misclassified point of the node has |delta| >= N / |V|, for any theta and nu. The ratio is
pseudo-concave; each coordinate has its maximum in closed form (lines) or by bisection (curves).
The maximiser's delta = -N V / |V|^2 is the closest point of the relaxed set.

We keep V itself and not the Gram matrix: |V|^2 from products of products would lose half the digits
where neurons have collapsed onto each other. Bounds are rounded down: ROUND times the sum of all
terms is more than these sums can lose in float64. A pre-activation counts with `grain`, the size of
what it is the sum of: |z0| + 2 |x| |w|.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from unmix.certify.curves import EXPONENTIAL, LINES, slope, value
from unmix.train.engines.compiled import compiled, reordered

ROUND = 1e-13
SLACK = 1e-9
HALVINGS = 24
# A wall may weigh this much more than the margin; beyond, the wall alone is as good a bound.
HEAVY = 1e4


class Net(NamedTuple):
    """An oriented margin: the first `own` neurons vote for the label, the others against it."""

    A: np.ndarray
    a: np.ndarray
    own: int
    c: float
    strict: bool
    norms: np.ndarray
    kind: int
    p: float
    q: float


class Point(NamedTuple):
    """Where the net is asked: z0 = W x + b, and the size of the sums in it."""

    z0: np.ndarray
    grain: np.ndarray


class Node(NamedTuple):
    """Intervals of the opponents, lines (s, i) above them, tangents `t` (slopes, for lines) of the
    own neurons and weights `nu` of the walls; all are changed in place."""

    lo: np.ndarray
    hi: np.ndarray
    s: np.ndarray
    i: np.ndarray
    t: np.ndarray
    nu: np.ndarray


class Room(NamedTuple):
    """Memory: V, its part from walls, the primal delta, pre-activations, and a direction."""

    V: np.ndarray
    walls: np.ndarray
    out: np.ndarray
    z: np.ndarray
    u: np.ndarray


@reordered
def dot(x, y):  # type: ignore[no-untyped-def]
    total = 0.0
    for e in range(len(x)):
        total += x[e] * y[e]
    return total


@reordered
def along(A, j, x):  # type: ignore[no-untyped-def]
    """<A_j, x>; no view of the row is made, since counting its references costs as much."""
    total = 0.0
    for e in range(len(x)):
        total += A[j, e] * x[e]
    return total


@reordered
def add(x, weight, A, j):  # type: ignore[no-untyped-def]
    """x += weight A_j."""
    for e in range(len(x)):
        x[e] += weight * A[j, e]


@compiled
def parameter(kind, z):  # type: ignore[no-untyped-def]
    """Of the tangent at z: z itself, but a kink at 0 takes up [0, 1], one number a slope."""
    return z + 1 if kind == EXPONENTIAL and z > 0 else z


@compiled
def touches(kind, t):  # type: ignore[no-untyped-def]
    """Where tangent t touches."""
    return max(t - 1, 0.0) if kind == EXPONENTIAL and t > 0 else t


@compiled
def tangent(kind, p, q, t):  # type: ignore[no-untyped-def]
    """Slope and value at 0 of a tangent (for lines, t is the slope)."""
    if kind == LINES or (kind == EXPONENTIAL and 0 <= t <= 1):
        return t, 0.0
    t = touches(kind, t)
    steep = slope(kind, p, q, t)
    return steep, value(kind, p, q, t) - steep * t


@compiled
def wall(lo, hi, weight):  # type: ignore[no-untyped-def]
    """The wall that a weight of this sign leans on; 0 for none."""
    if weight > 0:
        return hi
    return lo if weight < 0 else 0.0


@compiled
def reset(net, point, node):  # type: ignore[no-untyped-def]
    """Tangents as they are at x, and no weight on walls."""
    for j in range(net.own):
        at_x = point.z0[j]
        steep = net.kind == LINES
        node.t[j] = slope(net.kind, net.p, net.q, at_x) if steep else parameter(net.kind, at_x)
    node.nu[:] = 0


@compiled
def chords(net, point, node, rho):  # type: ignore[no-untyped-def]
    """Chords of phi over the node's intervals within the ball; False if one of them is empty."""
    for j in range(len(node.lo)):
        k = net.own + j
        reach = rho * net.norms[k]
        low, high = max(node.lo[j], point.z0[k] - reach), min(node.hi[j], point.z0[k] + reach)
        if low > high:
            return False
        at_low = value(net.kind, net.p, net.q, low)
        at_high = value(net.kind, net.p, net.q, high)
        if high - low > 1e-9 * (1 + abs(low) + abs(high)):
            s = (at_high - at_low) / (high - low)
            # The larger of both ends, as rounding must not lower a chord.
            node.s[j], node.i[j] = s, max(at_low - s * low, at_high - s * high)
        else:
            node.s[j], node.i[j] = 0.0, max(at_low, at_high)
    return True


@compiled
def tangents(net, z, node):  # type: ignore[no-untyped-def]
    """Tangents of the opponents at z: a net with these is misclassified only where ours is."""
    for j in range(len(z)):
        node.s[j] = slope(net.kind, net.p, net.q, z[j])
        node.i[j] = value(net.kind, net.p, net.q, z[j]) - node.s[j] * z[j]


@compiled
def _step(n, square, beta, b, c, low, high):  # type: ignore[no-untyped-def]
    """Maximiser over tau in [low, high] of (n + beta tau) / sqrt(square + 2 b tau + c tau^2)."""
    bend, rise = n * c - beta * b, beta * square - n * b
    if bend > ROUND * (abs(n * c) + abs(beta * b)):
        return min(max(rise / bend, low), high)
    # No maximum inside; and none at all where a multiple of V changes: the ratio is the same.
    if abs(rise) <= ROUND * (abs(beta * square) + abs(n * b)):
        return min(max(0.0, low), high)
    return high if rise > 0 else low


@compiled
def _curved(kind, p, q, z0, weight, t, reach, n, square, b, c):  # type: ignore[no-untyped-def]
    """Best tangent point of one own neuron: where it is the pre-activation at the primal point."""
    theta, base = tangent(kind, p, q, t)
    before = theta * z0 + base
    low, high = parameter(kind, z0 - reach), parameter(kind, z0 + reach)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        steep, base = tangent(kind, p, q, middle)
        tau = weight * (steep - theta)
        after = steep * z0 + base
        size = square + 2 * b * tau + c * tau * tau
        if (z0 - touches(kind, middle)) * size > (n + weight * (after - before)) * (b + c * tau):
            low = middle
        else:
            high = middle
    return (low + high) / 2


@compiled
def _own(net, point, node, rho, n, square, V):  # type: ignore[no-untyped-def]
    """One round over the own neurons; the new N and |V|^2."""
    A, a, norms = net.A, net.a, net.norms
    kind, p, q = net.kind, net.p, net.q
    tops = node.t
    for j in range(net.own):
        z0, size = point.z0[j], norms[j] ** 2
        reach = rho * norms[j]
        if kind == LINES and abs(z0) >= reach:
            continue
        b, before = along(A, j, V), tangent(kind, p, q, tops[j])
        if kind == LINES:
            low, high = a[j] * (p - tops[j]), a[j] * (1.0 - tops[j])
            tau = _step(n, square, z0, b, size, low, high)
            tops[j] = min(max(tops[j] + tau / a[j], p), 1.0)
        else:
            tops[j] = _curved(kind, p, q, z0, a[j], tops[j], reach, n, square, b, size)
        after = tangent(kind, p, q, tops[j])
        tau = a[j] * (after[0] - before[0])
        n += tau * z0 + a[j] * (after[1] - before[1])
        square += tau * (2 * b + tau * size)
        add(V, tau, A, j)
    return n, square


@compiled
def _walls(net, point, node, heavy, n, square, V):  # type: ignore[no-untyped-def]
    """One round over the walls; the new N and |V|^2."""
    A, norms = net.A, net.norms
    lo, hi, nu = node.lo, node.hi, node.nu
    for j in range(len(nu)):
        if lo[j] == -math.inf and hi[j] == math.inf:
            continue
        k, old = net.own + j, nu[j]
        z0, b, size = point.z0[k], along(A, k, V), norms[k] ** 2
        # Without this wall, then with it on either side.
        n -= old * (z0 - wall(lo[j], hi[j], old))
        bare, plain, new = square - old * (2 * b - old * size), b - old * size, 0.0
        if hi[j] < math.inf:
            new = _step(n, bare, z0 - hi[j], plain, size, 0.0, heavy)
        if new == 0 and lo[j] > -math.inf:
            new = _step(n, bare, z0 - lo[j], plain, size, -heavy, 0.0)
        n += new * (z0 - wall(lo[j], hi[j], new))
        nu[j], tau = new, new - old
        square += tau * (2 * b + tau * size)
        add(V, tau, A, k)
    return n, square


@compiled
def _scaled(net, point, node, heavy, n, room):  # type: ignore[no-untyped-def]
    """All walls heavier or lighter at once: the step that single ones are slow to make."""
    gain, most = 0.0, 0.0
    room.walls[:] = 0
    for j in range(len(node.nu)):
        if node.nu[j] != 0:
            gain += node.nu[j] * (point.z0[net.own + j] - wall(node.lo[j], node.hi[j], node.nu[j]))
            most = max(most, abs(node.nu[j]))
            add(room.walls, node.nu[j], net.A, net.own + j)
    square = dot(room.V, room.V)
    if most > 0:
        b, size = dot(room.V, room.walls), dot(room.walls, room.walls)
        tau = _step(n, square, gain, b, size, -1.0, heavy / most)
        n += tau * gain
        room.V[:] += tau * room.walls
        node.nu[:] *= 1 + tau
        square = dot(room.V, room.V)
    return n, square


@compiled
def relax(net, point, node, rho, goal, rounds, patience, room):  # type: ignore[no-untyped-def]
    """Improve tangents and wall weights; the certified bound, with the primal delta in room.out.

    It stops at `goal`, after `rounds`, or when a round closes too little: less than `patience` of
    what is missing.
    """
    for j in range(net.own):
        z0, reach = point.z0[j], rho * net.norms[j]
        if net.kind != LINES:
            low, high = parameter(net.kind, z0 - reach), parameter(net.kind, z0 + reach)
            node.t[j] = min(max(node.t[j], low), high)
        elif abs(z0) >= reach:
            node.t[j] = 1.0 if z0 > 0 else net.p
    n, square, _, _ = _linear(net, point, node, room.V)
    before, heavy = -math.inf, HEAVY * net.a.sum()
    for _ in range(rounds):
        n, square = _own(net, point, node, rho, n, square, room.V)
        n, square = _walls(net, point, node, heavy, n, square, room.V)
        n, square = _scaled(net, point, node, heavy, n, room)
        ratio = n / math.sqrt(square) if square > 0 else 0.0
        if ratio >= goal or ratio - before <= patience * min(abs(goal - ratio), abs(ratio)):
            break
        before = ratio
    return _certified(net, point, node, room)


@compiled
def _linear(net, point, node, V):  # type: ignore[no-untyped-def]
    """N and |V|^2 afresh, with what their terms sum to in size."""
    A, a, norms = net.A, net.a, net.norms
    kind, p, q = net.kind, net.p, net.q
    s, i, tops, nu = node.s, node.i, node.t, node.nu
    z0, grain = point.z0, point.grain
    V[:] = 0
    n, terms, lengths = net.c, abs(net.c), 0.0
    for k in range(len(z0)):
        if k < net.own:
            steep, base = tangent(kind, p, q, tops[k])
            weight, base = a[k] * steep, a[k] * base
            size = abs(base) + (0.0 if kind == LINES else abs(weight * tops[k]))
        else:
            j = k - net.own
            lean = nu[j] * wall(node.lo[j], node.hi[j], nu[j])
            weight, base = nu[j] - a[k] * s[j], -a[k] * i[j] - lean
            size = a[k] * (abs(i[j]) + abs(s[j]) * grain[k]) + abs(lean)
        n += weight * z0[k] + base
        terms += abs(weight) * grain[k] + size
        lengths += abs(weight) * norms[k]
        add(V, weight, A, k)
    return n, dot(V, V), terms, lengths


@compiled
def _certified(net, point, node, room):  # type: ignore[no-untyped-def]
    """N / |V| rounded down, with the primal point."""
    n, square, terms, lengths = _linear(net, point, node, room.V)
    for e in range(len(room.V)):
        room.out[e] = -n * room.V[e] / square if square > 0 else 0.0
    safe = n - ROUND * terms
    if safe <= 0:
        return 0.0
    length = math.sqrt(square) + ROUND * lengths
    return safe / length * (1 - SLACK) if length > 0 else math.inf
