"""The convex relaxation of one node: what it holds, and the bound that it certifies. Compiled.

With own neurons P and opposing ones Q (all weights a > 0, phi convex)

    m(delta) = sum_P a phi(z) - sum_Q a phi(z) + c,      z = z0 + A delta,

tangents bound phi from below on P, chords over [lo, hi] bound it from above on Q, and nu_q weighs
the walls lo <= z_q <= hi of the node. What remains is linear, N + <V, delta> <= m(delta):

    N = c + sum_P a (theta z0 - phi*(theta)) - sum_Q a (s z0 + i) + sum_Q nu (z0 - wall)
    V =     sum_P a theta A_p               - sum_Q a s A_q       + sum_Q nu A_q

so every misclassified point of the node has |delta| >= N / |V|, for any theta and nu; |V| is the
dual norm, l2 for l2 and l1 for linf. `ascent` and `simplex` look for the best theta and nu.

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
    """An oriented margin: the first `own` neurons vote for the label, the others against it.

    cube: is the ball one of linf? `norms` are dual then, too: l1, and the net is a `CubeNet`.
    """

    A: np.ndarray
    a: np.ndarray
    own: int
    c: float
    strict: bool
    norms: np.ndarray
    cube: bool
    kind: int
    p: float
    q: float


class CubeNet(Net):
    """A net in an l_inf ball: a type of its own, so that what only such a ball needs is compiled
    for it alone."""


class Point(NamedTuple):
    """Where the net is asked: z0 = W x + b, and the size of the sums in it."""

    z0: np.ndarray
    grain: np.ndarray


class Node(NamedTuple):
    """Intervals [lo, hi] of the opponents and what the ball leaves of them, [low, high]; lines
    (s, i) above them, tangents `t` (slopes, for lines) of the own neurons and weights `nu` of the
    walls; for linf, the column that each neuron's weight holds at 0, or -1. All are changed in
    place."""

    lo: np.ndarray
    hi: np.ndarray
    low: np.ndarray
    high: np.ndarray
    s: np.ndarray
    i: np.ndarray
    t: np.ndarray
    nu: np.ndarray
    held: np.ndarray


class Room(NamedTuple):
    """Memory: V, its part from walls, the primal delta, pre-activations, a direction, and what a
    simplex keeps."""

    V: np.ndarray
    walls: np.ndarray
    out: np.ndarray
    z: np.ndarray
    u: np.ndarray
    table: tuple


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


@reordered
def total(x):  # type: ignore[no-untyped-def]
    """The l1 norm."""
    found = 0.0
    for e in range(len(x)):
        found += abs(x[e])
    return found


@compiled
def length(net, delta):  # type: ignore[no-untyped-def]
    """|delta| in the norm of the ball."""
    return np.abs(delta).max() if net.cube else math.sqrt(dot(delta, delta))


@compiled
def dual(net, V):  # type: ignore[no-untyped-def]
    """|V| in the dual norm."""
    return total(V) if net.cube else math.sqrt(dot(V, V))


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
    node.held[:] = -1


@compiled
def chords(net, point, node, rho):  # type: ignore[no-untyped-def]
    """Chords of phi over the node's intervals within the ball; False if one of them is empty."""
    for j in range(len(node.lo)):
        k = net.own + j
        reach = rho * net.norms[k]
        low, high = max(node.lo[j], point.z0[k] - reach), min(node.hi[j], point.z0[k] + reach)
        if low > high:
            return False
        node.low[j], node.high[j], before = low, high, node.s[j]
        at_low = value(net.kind, net.p, net.q, low)
        at_high = value(net.kind, net.p, net.q, high)
        if high - low > 1e-9 * (1 + abs(low) + abs(high)):
            s = (at_high - at_low) / (high - low)
            # The larger of both ends, as rounding must not lower a chord.
            node.s[j], node.i[j] = s, max(at_low - s * low, at_high - s * high)
        else:
            node.s[j], node.i[j] = 0.0, max(at_low, at_high)
        if net.cube:
            # V stays as it is, and with it the columns that are held at 0.
            node.nu[j] += net.a[k] * (node.s[j] - before)
    return True


@compiled
def tangents(net, z, node):  # type: ignore[no-untyped-def]
    """Tangents of the opponents at z: a net with these is misclassified only where ours is."""
    node.lo[:], node.low[:] = -math.inf, -math.inf
    node.hi[:], node.high[:] = math.inf, math.inf
    for j in range(len(z)):
        node.s[j] = slope(net.kind, net.p, net.q, z[j])
        node.i[j] = value(net.kind, net.p, net.q, z[j]) - node.s[j] * z[j]


@compiled
def linear(net, point, node, V):  # type: ignore[no-untyped-def]
    """N, and V in place, with what their terms sum to in size."""
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
            lean = nu[j] * wall(node.low[j], node.high[j], nu[j])
            weight, base = nu[j] - a[k] * s[j], -a[k] * i[j] - lean
            size = a[k] * (abs(i[j]) + abs(s[j]) * grain[k]) + abs(lean)
        n += weight * z0[k] + base
        terms += abs(weight) * grain[k] + size
        lengths += abs(weight) * norms[k]
        add(V, weight, A, k)
    return n, terms, lengths


@compiled
def certified(net, point, node, V):  # type: ignore[no-untyped-def]
    """N and |V|, and N / |V| rounded down."""
    n, terms, lengths = linear(net, point, node, V)
    size, safe = dual(net, V), n - ROUND * terms
    if safe <= 0:
        return n, size, 0.0
    longest = size + ROUND * lengths
    return n, size, safe / longest * (1 - SLACK) if longest > 0 else math.inf
