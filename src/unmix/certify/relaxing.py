"""The best bound of a node, in the norm of its net. Compiled."""

from __future__ import annotations

from unmix.certify.ascent import ascend
from unmix.certify.simplex import climb
from unmix.train.engines.compiled import compiled

# Steps of the simplex method for a round over all coordinates.
STEPS = 20


@compiled
def relax(net, point, node, rho, start, goal, rounds, patience, room):  # type: ignore[no-untyped-def]
    """The certified bound of a node within the ball rho; the primal delta is in room.out.

    start: a bound that is known already. It stops at `goal`, after `rounds`, or when a round closes
    less than `patience` of what is missing.
    """
    if net.cube:
        return climb(net, point, node, rho, start, goal, STEPS * rounds, room)
    return ascend(net, point, node, rho, goal, rounds, patience, room)
