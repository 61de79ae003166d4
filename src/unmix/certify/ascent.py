"""The best bound of a node in l2: coordinate ascent on N / |V|. Compiled.

The ratio is pseudo-concave; each coordinate has its maximum in closed form (lines) or by bisection
(curves). The maximiser's delta = -N V / |V|^2 is the closest point of the relaxed set.
"""

from __future__ import annotations

import math

from unmix.certify.curves import LINES
from unmix.certify.relaxation import (
    HALVINGS,
    HEAVY,
    ROUND,
    add,
    along,
    certified,
    dot,
    linear,
    parameter,
    tangent,
    touches,
    wall,
)
from unmix.train.engines.compiled import compiled


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
    low, high = node.low, node.high
    for j in range(len(nu)):
        if lo[j] == -math.inf and hi[j] == math.inf:
            continue
        k, old = net.own + j, nu[j]
        z0, b, size = point.z0[k], along(A, k, V), norms[k] ** 2
        # Without this wall, then with it on either side.
        n -= old * (z0 - wall(low[j], high[j], old))
        bare, plain, new = square - old * (2 * b - old * size), b - old * size, 0.0
        if hi[j] < math.inf:
            new = _step(n, bare, z0 - high[j], plain, size, 0.0, heavy)
        if new == 0 and lo[j] > -math.inf:
            new = _step(n, bare, z0 - low[j], plain, size, -heavy, 0.0)
        n += new * (z0 - wall(low[j], high[j], new))
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
            gain += node.nu[j] * (
                point.z0[net.own + j] - wall(node.low[j], node.high[j], node.nu[j])
            )
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
def ascend(net, point, node, rho, goal, rounds, patience, room):  # type: ignore[no-untyped-def]
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
    n, _, _ = linear(net, point, node, room.V)
    square = dot(room.V, room.V)
    before, heavy = -math.inf, HEAVY * net.a.sum()
    for _ in range(rounds):
        n, square = _own(net, point, node, rho, n, square, room.V)
        n, square = _walls(net, point, node, heavy, n, square, room.V)
        n, square = _scaled(net, point, node, heavy, n, room)
        ratio = n / math.sqrt(square) if square > 0 else 0.0
        if ratio >= goal or ratio - before <= patience * min(abs(goal - ratio), abs(ratio)):
            break
        before = ratio
    return _answered(net, point, node, room)


@compiled
def _answered(net, point, node, room):  # type: ignore[no-untyped-def]
    """N / |V| rounded down, with the primal point."""
    n, size, bound = certified(net, point, node, room.V)
    for e in range(len(room.V)):
        room.out[e] = -(n / size) * (room.V[e] / size) if size > 0 else 0.0
    return bound
