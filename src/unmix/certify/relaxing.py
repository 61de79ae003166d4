"""The best bound of a node, in the norm of its net. Compiled."""

from __future__ import annotations

from collections.abc import Callable
from inspect import unwrap
from typing import Any

from numba.extending import overload

from unmix.certify.ascent import ascend
from unmix.certify.relaxation import CubeNet
from unmix.certify.simplex import climb

# Steps of the simplex method for a round over all coordinates.
STEPS = 20


def relax(net, point, node, rho, start, goal, rounds, patience, room):  # type: ignore[no-untyped-def]
    """The certified bound of a node within the ball rho; the primal delta is in room.out.

    start: a bound that is known already. It stops at `goal`, after `rounds`, or when a round closes
    less than `patience` of what is missing. For compiled callers.
    """
    raise NotImplementedError


@overload(relax)
def _relax(  # type: ignore[no-untyped-def]
    net, point, node, rho, start, goal, rounds, patience, room
) -> Callable[..., Any]:
    """Chosen by the type of the net: compiling the simplex method takes longer than all the rest,
    and a ball of l2 has no use for it."""

    def in_cube(net, point, node, rho, start, goal, rounds, patience, room):  # type: ignore[no-untyped-def]
        return climb(net, point, node, rho, start, goal, STEPS * rounds, room)

    def in_ball(net, point, node, rho, start, goal, rounds, patience, room):  # type: ignore[no-untyped-def]
        return ascend(net, point, node, rho, goal, rounds, patience, room)

    # A checker of annotations around it is taken off first, as in `compiled`.
    return unwrap(in_cube if issubclass(net.instance_class, CubeNet) else in_ball)
