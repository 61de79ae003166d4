"""Where a figure's points and cells lie in its SVG, so that a page can tell their numbers.

Coordinates are those of the SVG's view box: points from the top left corner.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, TypeGuard

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import Collection, QuadMesh
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

# A finer curve would say nothing more to a pointer, and make the page heavy.
MOST = 80
CELLS = 2500


def marks(canvas: Figure) -> list[dict[str, Any]]:
    """Every labelled line and every matrix of a drawn figure.

    A line is {label, x, y, points: [[across, down, x, y], ...]} with the names of its axes; a
    matrix is {box: [left, top, right, bottom], cells: rows of values}.
    """
    found: list[dict[str, Any]] = []
    for axes in canvas.axes:
        if axes.get_label() == "<colorbar>":
            continue
        found += [_line(canvas, axes, line, label) for line, label in _lines(axes)]
        found += [_mesh(canvas, axes, mesh) for mesh in axes.collections if _told(mesh)]
    return found


def _lines(axes: Axes) -> Iterator[tuple[Line2D, str]]:
    """Labelled lines; a line with error bars has the label of its container."""
    for line in axes.get_lines():
        if not str(line.get_label()).startswith("_"):
            yield line, str(line.get_label())
    for container in axes.containers:
        if isinstance(container, ErrorbarContainer) and container.lines[0] is not None:
            label = str(container.get_label())
            if not label.startswith("_"):
                yield container.lines[0], label


def _line(canvas: Figure, axes: Axes, line: Line2D, label: str) -> dict[str, Any]:
    points = np.asarray(line.get_xydata(), dtype=float)
    points = points[np.isfinite(points).all(1)]
    if len(points) > MOST:
        points = points[np.linspace(0, len(points) - 1, MOST).round().astype(int)]
    places = _places(canvas, axes, points)
    inside = np.isfinite(places).all(1)
    rows = [
        [*place, _short(x), _short(y)]
        for place, (x, y) in zip(places[inside].round(1).tolist(), points[inside], strict=True)
    ]
    names = {"x": _plain(axes.get_xlabel()), "y": _plain(axes.get_ylabel())}
    return {"label": _plain(label), **names, "points": rows}


def _told(collection: Collection) -> TypeGuard[QuadMesh]:
    """Is it a matrix of numbers that a reader would ask for one by one?"""
    values = collection.get_array() if isinstance(collection, QuadMesh) else None
    return values is not None and values.ndim == 2 and values.size <= CELLS


def _mesh(canvas: Figure, axes: Axes, mesh: QuadMesh) -> dict[str, Any]:
    values, grid = np.asarray(mesh.get_array()), np.asarray(mesh.get_coordinates())
    corners = _places(canvas, axes, np.array([grid[0, 0], grid[-1, -1]]))
    cells = [[_short(v) for v in row] for row in values]
    names = {"x": _plain(axes.get_xlabel()), "y": _plain(axes.get_ylabel())}
    return {**names, "box": corners.round(1).flatten().tolist(), "cells": cells}


def _places(canvas: Figure, axes: Axes, points: np.ndarray) -> np.ndarray:
    """Data coordinates as view-box coordinates; NaN where an axis has no place for a value."""
    with np.errstate(all="ignore"):
        shown = axes.transData.transform(points) * (72 / canvas.dpi)
    shown[:, 1] = canvas.get_figheight() * 72 - shown[:, 1]
    return np.asarray(shown)


def _short(value: float) -> float | None:
    """Four significant digits; JSON has no NaN."""
    return float(f"{value:.4g}") if math.isfinite(value) else None


def _plain(label: str) -> str:
    """A label without the marks of mathematical text."""
    return re.sub(r"[${}]|\\(?=[a-zA-Z])", "", label)
