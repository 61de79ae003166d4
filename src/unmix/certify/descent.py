"""Upper ends: rays, corners, and convex-concave descent. Compiled."""

from __future__ import annotations

import math

import numpy as np

from unmix.certify.curves import slope, value
from unmix.certify.relaxation import add, along, dot, dual, length, reset, tangents
from unmix.certify.relaxing import relax
from unmix.train.engines.compiled import compiled

FAST, THOROUGH = 30, 3000
HASTE, CARE = 1e-3, 1e-10
DESCENTS, SINGLES, DOUBLINGS = 4, 4, 40
NUDGES = (1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4)
BISECTIONS, CORRECTIONS, TINY = 45, 300, 1e-3


@compiled
def at(net, z0, delta, z):  # type: ignore[no-untyped-def]
    """z = z0 + A delta."""
    for j in range(len(z0)):
        z[j] = z0[j] + along(net.A, j, delta)


@compiled
def _lost(net, z0, z, share):  # type: ignore[no-untyped-def]
    """Is the point this far on the way from z0 to z misclassified?"""
    m = net.c
    for j in range(len(z0)):
        term = net.a[j] * value(net.kind, net.p, net.q, z0[j] + share * (z[j] - z0[j]))
        m += term if j < net.own else -term
    return m < 0 or (m == 0 and not net.strict)


@compiled
def _edge(net, z0, z, limit):  # type: ignore[no-untyped-def]
    """A share <= limit of the way to z, as small as found, at which the point is lost."""
    before, share, stretch = 0.0, 1 - NUDGES[2], NUDGES[2]
    while not _lost(net, z0, z, share):
        before, share, stretch = share, 1 + stretch, stretch * 10
        if share > limit:
            return math.inf
    if share > limit:
        return math.inf
    for _ in range(BISECTIONS):
        middle = (before + share) / 2
        if _lost(net, z0, z, middle):
            share = middle
        else:
            before = middle
    return share


@compiled
def improve(net, point, delta, rho, best, room):  # type: ignore[no-untyped-def]
    """Try the way through `delta` as an attack; the new incumbent, kept in `best`."""
    far = length(net, delta)
    if far == 0:
        return rho
    at(net, point.z0, delta, room.z)
    share = _edge(net, point.z0, room.z, rho / far)
    if share * far < rho:
        rho = share * far
        best[:] = share * delta
    return rho


@compiled
def corner(net, point, rho, best, room):  # type: ignore[no-untyped-def]
    """Try ways a little beside room.out, into the lost set, for lines.

    A ray that meets the set in a corner may leave it at once, so that rounding decides.
    """
    far, delta = length(net, room.out), room.out.copy()
    if far == 0:
        # x itself lies on the surface: any length will do.
        far = rho * NUDGES[0]
    here = np.empty(len(point.z0))
    at(net, point.z0, delta, here)
    for aside in NUDGES:
        _inward(net, here, 100 * aside * far, room)
        room.out[:] = delta + aside * far * room.u
        rho = improve(net, point, room.out, rho, best, room)
    room.out[:] = delta
    return rho


@compiled
def _inward(net, z, small, room):  # type: ignore[no-untyped-def]
    """A direction room.u from a corner of {m <= 0} into it, by the perceptron's rule.

    The normals there are sums over the own neurons within `small` of their kink, with any theta in
    [p, 1]; the one that u violates most is taken off u until all are met.
    """
    u, V = room.u, room.V
    u[:] = 0
    for _ in range(CORRECTIONS):
        V[:] = 0
        for j in range(len(z)):
            edge = small * net.norms[j]
            if j >= net.own:
                # An opponent at its kink counts as on: it is what leads below 0.
                add(V, -net.a[j] * (1.0 if z[j] > -edge else net.p), net.A, j)
            elif abs(z[j]) > edge:
                add(V, net.a[j] * (1.0 if z[j] > 0 else net.p), net.A, j)
            else:
                up = along(net.A, j, u) > -TINY * net.norms[j]
                add(V, net.a[j] * (1.0 if up else net.p), net.A, j)
        steep = math.sqrt(dot(V, V))
        if steep == 0 or dot(u, V) < -TINY * steep * math.sqrt(dot(u, u)):
            break
        u -= V / steep
    size = length(net, u)
    if size > 0:
        u /= size


@compiled
def _descend(net, point, node, rho, best, room):  # type: ignore[no-untyped-def]
    """From the lines (s, i): project onto {own <= lines}, take tangents there, and again."""
    for _ in range(DESCENTS):
        before = rho
        reset(net, point, node)
        relax(net, point, node, rho, 0.0, rho, FAST, HASTE, room)
        rho = improve(net, point, room.out, rho, best, room)
        if not rho < before * (1 - 1e-6):
            break
        at(net, point.z0, best, room.z)
        tangents(net, room.z[net.own :], node)
    return rho


@compiled
def _shoot(net, point, rho, best, room):  # type: ignore[no-untyped-def]
    """Along -room.u (its signs), in steps that double: the first success, if one is within rho."""
    if net.cube:
        room.u[:] = np.sign(room.u)
    size = length(net, room.u)
    if size == 0:
        return rho
    step = rho * 0.5**DOUBLINGS / size
    for _ in range(DOUBLINGS):
        room.out[:] = -step * room.u
        at(net, point.z0, room.out, room.z)
        if _lost(net, point.z0, room.z, 1.0):
            return improve(net, point, room.out, rho, best, room)
        step *= 2
    return rho


@compiled
def _singles(net, point, room):  # type: ignore[no-untyped-def]
    """The gradient of the own neurons at x in room.V, and the opponents, closest ones first.

    Closest in closed form, if one opponent alone is on and the own neurons stay as they are at x.
    """
    own, n, order = net.own, net.c, np.empty(len(net.a) - net.own)
    room.V[:] = 0
    for j in range(own):
        n += net.a[j] * value(net.kind, net.p, net.q, point.z0[j])
        add(room.V, net.a[j] * slope(net.kind, net.p, net.q, point.z0[j]), net.A, j)
    for j in range(len(order)):
        k = own + j
        room.u[:] = room.V
        add(room.u, -net.a[k], net.A, k)
        order[j] = (n - net.a[k] * point.z0[k]) / max(dual(net, room.u), 1e-300)
    return np.argsort(order)[:SINGLES]


@compiled
def attack(net, point, node, rho, best, room):  # type: ignore[no-untyped-def]
    """The first incumbent: rays, then descents from the opponents that are on, from all of them,
    and from single ones."""
    own, singles = net.own, _singles(net, point, room)
    room.u[:] = room.V
    rho = _shoot(net, point, rho, best, room)
    for one in singles:
        room.u[:] = room.V
        add(room.u, -net.a[own + one], net.A, own + one)
        rho = _shoot(net, point, rho, best, room)
    z0, reach = point.z0[own:], rho * net.norms[own:]
    tangents(net, z0, node)
    rho = _descend(net, point, node, rho, best, room)
    tangents(net, z0 + reach, node)
    rho = _descend(net, point, node, rho, best, room)
    for one in singles:
        z = z0 - reach
        z[one] = z0[one] + reach[one]
        tangents(net, z, node)
        rho = _descend(net, point, node, rho, best, room)
    return rho
