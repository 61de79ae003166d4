"""The convex relaxation of one node, in the span of the neurons: compiled inner loops.

With own neurons P and opposing ones Q (all weights a > 0, phi convex)

    m(delta) = sum_P a phi(z) - sum_Q a phi(z) + c,      z = z0 + A delta,

tangents bound phi from below on P, chords over [lo, hi] bound it from above on Q, and nu_q weighs the
walls lo <= z_q <= hi of the node. What remains is linear, N + <V, delta> <= m(delta):

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

import numpy as np

from unmix.certify.curves import LINES, slope, value
from unmix.train.engines.compiled import compiled

ROUND = 1e-13
SLACK = 1e-9
HALVINGS, CORRECTIONS, TINY = 24, 300, 1e-3
# A wall may weigh this much more than the margin; beyond, the wall alone is as good a bound.
HEAVY = 1e4


@compiled
def chords(kind, p, q, z0, reach, lo, hi, s, i):  # type: ignore[no-untyped-def]
    """Chords of phi over the node's intervals within the ball; False if one of them is empty."""
    for j in range(len(z0)):
        low, high = max(lo[j], z0[j] - reach[j]), min(hi[j], z0[j] + reach[j])
        if low > high:
            return False
        at_low, at_high = value(kind, p, q, low), value(kind, p, q, high)
        if high - low > 1e-9 * (1 + abs(low) + abs(high)):
            s[j] = (at_high - at_low) / (high - low)
            # The larger of both ends, as rounding must not lower a chord.
            i[j] = max(at_low - s[j] * low, at_high - s[j] * high)
        else:
            s[j], i[j] = 0.0, max(at_low, at_high)
    return True


@compiled
def tangents(kind, p, q, z, s, i):  # type: ignore[no-untyped-def]
    """Tangents of phi at z: a net with these for Q is misclassified only where the real one is."""
    for j in range(len(z)):
        s[j] = slope(kind, p, q, z[j])
        i[j] = value(kind, p, q, z[j]) - s[j] * z[j]


@compiled
def _dot(a, b):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


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
    theta = slope(kind, p, q, t)
    rest = theta * (z0 - t) + value(kind, p, q, t)
    low, high = z0 - reach, z0 + reach
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        steep = slope(kind, p, q, middle)
        tau = weight * (steep - theta)
        gain = weight * (steep * (z0 - middle) + value(kind, p, q, middle) - rest)
        size = square + 2 * b * tau + c * tau * tau
        if (z0 - middle) * size > (n + gain) * (b + c * tau):
            low = middle
        else:
            high = middle
    return (low + high) / 2


@compiled
def _scaled(A, own, z0, lo, hi, nu, n, V, heavy, walls):  # type: ignore[no-untyped-def]
    """All walls heavier or lighter at once: the step that single ones are slow to make."""
    square = _dot(V, V)
    walls[:] = 0
    gain, most = 0.0, 0.0
    for j in range(len(nu)):
        if nu[j] != 0:
            gain += nu[j] * (z0[own + j] - (hi[j] if nu[j] > 0 else lo[j]))
            most = max(most, abs(nu[j]))
            for e in range(len(V)):
                walls[e] += nu[j] * A[own + j, e]
    if most == 0:
        return n, square
    tau = _step(n, square, gain, _dot(V, walls), _dot(walls, walls), -1.0, heavy / most)
    if tau != 0:
        n += tau * gain
        V += tau * walls
        nu *= 1 + tau
    return n, _dot(V, V)


@compiled
def relax(A, a, own, c, z0, norms, grain, kind, p, q, lo, hi, s, i, t, nu, rho, goal, rounds, patience, V, out):  # type: ignore[no-untyped-def]
    """Improve tangents `t` [own] (slopes, for lines) and wall weights `nu` in place.

    Returns the certified bound; `out` receives the primal delta. `s`, `i` are lines above Q. It stops
    at `goal`, after `rounds`, or when a round closes less than `patience` of what is missing.
    """
    r, against = A.shape[1], len(z0) - own
    V[:] = 0
    n, heavy = c, 0.0
    for j in range(own):
        reach = rho * norms[j]
        if kind == LINES:
            if z0[j] >= reach:
                t[j] = 1.0
            elif z0[j] <= -reach:
                t[j] = p
            theta, rest = t[j], t[j] * z0[j]
        else:
            t[j] = min(max(t[j], z0[j] - reach), z0[j] + reach)
            theta = slope(kind, p, q, t[j])
            rest = theta * (z0[j] - t[j]) + value(kind, p, q, t[j])
        n += a[j] * rest
        heavy += a[j]
        for e in range(r):
            V[e] += a[j] * theta * A[j, e]
    for j in range(against):
        k = own + j
        n -= a[k] * (s[j] * z0[k] + i[j])
        heavy += a[k]
        if nu[j] > 0:
            n += nu[j] * (z0[k] - hi[j])
        elif nu[j] < 0:
            n += nu[j] * (z0[k] - lo[j])
        for e in range(r):
            V[e] += (nu[j] - a[k] * s[j]) * A[k, e]
    heavy *= HEAVY
    square, walls = _dot(V, V), np.empty(r)
    before = -math.inf
    for _ in range(rounds):
        for j in range(own):
            reach = rho * norms[j]
            if abs(z0[j]) >= reach and kind == LINES:
                continue
            b, size = _dot(V, A[j]), norms[j] * norms[j]
            if kind == LINES:
                low, high = a[j] * (p - t[j]), a[j] * (1.0 - t[j])
                tau = _step(n, square, z0[j], b, size, low, high)
                t[j] = min(max(t[j] + tau / a[j], p), 1.0)
                n += tau * z0[j]
            else:
                old = slope(kind, p, q, t[j])
                rest = old * (z0[j] - t[j]) + value(kind, p, q, t[j])
                t[j] = _curved(kind, p, q, z0[j], a[j], t[j], reach, n, square, b, size)
                new = slope(kind, p, q, t[j])
                tau = a[j] * (new - old)
                n += a[j] * (new * (z0[j] - t[j]) + value(kind, p, q, t[j]) - rest)
            if tau != 0:
                square += tau * (2 * b + tau * size)
                for e in range(r):
                    V[e] += tau * A[j, e]
        for j in range(against):
            k = own + j
            if lo[j] == -math.inf and hi[j] == math.inf:
                continue
            b, size, old = _dot(V, A[k]), norms[k] * norms[k], nu[j]
            # Without this wall, then with it on either side.
            if old > 0:
                n -= old * (z0[k] - hi[j])
            elif old < 0:
                n -= old * (z0[k] - lo[j])
            bare, plain = square - old * (2 * b - old * size), b - old * size
            new = 0.0
            if hi[j] < math.inf:
                new = _step(n, bare, z0[k] - hi[j], plain, size, 0.0, heavy)
            if new == 0 and lo[j] > -math.inf:
                new = _step(n, bare, z0[k] - lo[j], plain, size, -heavy, 0.0)
            if new > 0:
                n += new * (z0[k] - hi[j])
            elif new < 0:
                n += new * (z0[k] - lo[j])
            nu[j], tau = new, new - old
            if tau != 0:
                square += tau * (2 * b + tau * size)
                for e in range(r):
                    V[e] += tau * A[k, e]
        n, square = _scaled(A, own, z0, lo, hi, nu, n, V, heavy, walls)
        ratio = n / math.sqrt(square) if square > 0 else 0.0
        if ratio >= goal or ratio - before <= patience * min(abs(goal - ratio), abs(ratio)):
            break
        before = ratio
    return certified(A, a, own, c, z0, norms, grain, kind, p, q, lo, hi, s, i, t, nu, V, out)


@compiled
def certified(A, a, own, c, z0, norms, grain, kind, p, q, lo, hi, s, i, t, nu, V, out):  # type: ignore[no-untyped-def]
    """N / |V| afresh and rounded down, with the primal point in `out`."""
    r, against = A.shape[1], len(z0) - own
    V[:] = 0
    n, terms, lengths = c, abs(c), 0.0
    for j in range(len(z0)):
        if j < own:
            if kind == LINES:
                weight, rest, size = t[j], 0.0, 0.0
            else:
                weight = slope(kind, p, q, t[j])
                rest = value(kind, p, q, t[j]) - weight * t[j]
                size = abs(weight * t[j]) + abs(rest)
            weight, rest, size = a[j] * weight, a[j] * rest, a[j] * size
        else:
            k = j - own
            weight, rest = nu[k] - a[j] * s[k], -a[j] * i[k]
            size = abs(rest) + a[j] * abs(s[k] * z0[j])
            if nu[k] > 0:
                rest -= nu[k] * hi[k]
                size += nu[k] * abs(hi[k])
            elif nu[k] < 0:
                rest -= nu[k] * lo[k]
                size -= nu[k] * abs(lo[k])
        n += weight * z0[j] + rest
        terms += abs(weight) * grain[j] + size
        lengths += abs(weight) * norms[j]
        for e in range(r):
            V[e] += weight * A[j, e]
    square = _dot(V, V)
    for e in range(r):
        out[e] = -n * V[e] / square if square > 0 else 0.0
    safe = n - ROUND * terms
    if safe <= 0:
        return 0.0
    return safe / (math.sqrt(square) + ROUND * lengths) * (1 - SLACK)


@compiled
def at(A, z0, delta, z):  # type: ignore[no-untyped-def]
    """z = z0 + A delta."""
    for j in range(len(z0)):
        z[j] = z0[j] + _dot(A[j], delta)


@compiled
def margin(a, own, c, kind, p, q, z0, z, share):  # type: ignore[no-untyped-def]
    """m at z0 + share (z - z0)."""
    total = c
    for j in range(len(z0)):
        term = a[j] * value(kind, p, q, z0[j] + share * (z[j] - z0[j]))
        total += term if j < own else -term
    return total


@compiled
def edge(a, own, c, kind, p, q, z0, z, strict, limit):  # type: ignore[no-untyped-def]
    """Smallest share <= limit found of the way to z from which on m is lost; infinity if none."""
    before, share, hit = 0.0, 1 - 1e-7, False
    stretch = 1e-7
    while share <= limit and not hit:
        m = margin(a, own, c, kind, p, q, z0, z, share)
        hit = m < 0 or (m == 0 and not strict)
        if not hit:
            before, share, stretch = share, 1 + stretch, stretch * 10
    if not hit:
        return math.inf
    after = share
    for _ in range(45):
        share = (before + after) / 2
        m = margin(a, own, c, kind, p, q, z0, z, share)
        if m < 0 or (m == 0 and not strict):
            after = share
        else:
            before = share
    return after


@compiled
def inward(A, a, own, p, z, norms, small, V, u):  # type: ignore[no-untyped-def]
    """A direction `u` from a corner of {m <= 0} into it, for lines: the perceptron's rule.

    A ray that meets the set in a corner may leave it at once. The normals there are sums over the
    own neurons within `small` of their kink, with any theta in [p, 1]; the one that `u` violates
    most is taken off `u` until all are met.
    """
    u[:] = 0
    for _ in range(CORRECTIONS):
        V[:] = 0
        for j in range(len(z)):
            if j < own and abs(z[j]) <= small * norms[j]:
                V += (1.0 if _dot(u, A[j]) > -TINY * norms[j] else p) * a[j] * A[j]
            else:
                # An opponent at its kink counts as on: it is what leads below 0.
                V += (1.0 if z[j] > -small * norms[j] else p) * (a[j] if j < own else -a[j]) * A[j]
        length, size = math.sqrt(_dot(V, V)), math.sqrt(_dot(u, u))
        if length == 0 or _dot(u, V) < -TINY * length * size:
            break
        u -= V / length
    size = math.sqrt(_dot(u, u))
    if size > 0:
        u /= size
