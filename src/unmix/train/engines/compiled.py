"""Machine code for inner loops: numba, kept on disk between runs."""

from __future__ import annotations

from collections.abc import Callable
from inspect import unwrap
from typing import Any

from numba import njit


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function in machine code; a checker of annotations around it is taken off first."""
    return njit(cache=True)(unwrap(function))


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiled into its callers, as calls in their inner loops would cost as much as the work."""
    return njit(cache=True, inline="always")(unwrap(function))


def reordered(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiled with leave to add up sums in another order, as vector units do."""
    return njit(cache=True, fastmath={"reassoc", "nsz", "contract"})(unwrap(function))
