"""The look of every figure: thin axes, direct labels, and colours named by role.

A figure is drawn in the light values below. On the page each of them becomes a CSS variable, so
that the same figure has a dark scheme; this works only with colours from this file.
Data colours follow Okabe and Ito (2008), safe for colour-blind readers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import QuadMesh
from matplotlib.colorbar import Colorbar
from matplotlib.colors import ListedColormap, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.style import context
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

INK, MUTED, GRID, PAPER = "#1f2328", "#6a7077", "#dcdfe2", "#fdfcfa"
BLUE, RED, GREEN = "#0072b2", "#d55e00", "#009e73"
PURPLE, ORANGE, SKY = "#cc79a7", "#e69f00", "#56b4e9"
CYCLE = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY)

# role -> (light, dark)
ROLES: dict[str, tuple[str, str]] = {
    "ink": (INK, "#e8e5de"),
    "muted": (MUTED, "#a3a8ae"),
    "grid": (GRID, "#363b41"),
    "paper": (PAPER, "#15171a"),
    "blue": (BLUE, "#57a9e2"),
    "red": (RED, "#f2874a"),
    "green": (GREEN, "#35c49b"),
    "purple": (PURPLE, "#dd9bc2"),
    "orange": (ORANGE, "#f2b632"),
    "sky": (SKY, "#a6dcff"),
}

# An odd number of steps, so that zero has one of its own; fewer than 50, because matplotlib turns
# longer colour bars into pixels, which no theme can reach.
STEPS = 41


def _blend(low: str, middle: str, high: str) -> list[str]:
    """STEPS colours from low over middle to high."""
    stops = np.array([to_rgb(c) for c in (low, middle, high)])
    at = np.linspace(0, 2, STEPS)
    red, green, blue = (np.interp(at, range(3), channel) for channel in stops.T)
    return [to_hex(color) for color in zip(red, green, blue, strict=True)]


_LIGHT = _blend("#1d5c9c", "#f3f1ec", "#b9480e")
_DARK = _blend("#74bcff", "#23272c", "#ff9f66")
ROLES |= {f"step-{i:02d}": pair for i, pair in enumerate(zip(_LIGHT, _DARK, strict=True))}

# For signed values around zero, such as cosines: blue below, orange above.
DIVERGING = ListedColormap(_LIGHT, name="unmix-diverging")

LOOK: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # ships with matplotlib: the same bytes on every machine
    "font.size": 8.5,
    "text.color": INK,
    "mathtext.fontset": "dejavusans",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "savefig.edgecolor": "none",
    "axes.facecolor": "none",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.labelsize": 8.5,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.titlepad": 8,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.prop_cycle": cycler(color=CYCLE),
    "grid.color": GRID,
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.5,
    "lines.markersize": 4,
    "lines.solid_capstyle": "round",
    "patch.linewidth": 0.6,
    "svg.fonttype": "path",
    "svg.hashsalt": "unmix",
    "pdf.fonttype": 42,
}
for _axis in ("xtick", "ytick"):
    LOOK |= {f"{_axis}.color": MUTED, f"{_axis}.labelcolor": INK, f"{_axis}.labelsize": 8}
    LOOK |= {f"{_axis}.major.width": 0.6, f"{_axis}.major.size": 3, f"{_axis}.direction": "out"}
    LOOK |= {f"{_axis}.minor.width": 0.4, f"{_axis}.minor.size": 1.5}


@contextmanager
def look() -> Iterator[None]:
    """Matplotlib with this look, whatever the user's own settings are."""
    with context(["default", LOOK]):
        yield


@contextmanager
def canvas(width: float = 5.6, height: float = 3.4) -> Iterator[Figure]:
    """An empty figure, in inches; what is drawn inside the `with` block has the look.

    The layout is computed once, at the end of the block: matplotlib would improve it a little at
    each export, and no two files would agree.
    """
    with look():
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        figure.draw_without_rendering()
        figure.set_layout_engine("none")


def cosine_matrix(axes: Axes, values: Any, digits: int = 2) -> QuadMesh:
    """A matrix of values in [-1, 1] as tiles with their numbers; `digits=0` leaves them out."""
    table = np.asarray(values, dtype=float)
    rows, columns = table.shape
    mesh = axes.pcolormesh(table, cmap=DIVERGING, vmin=-1, vmax=1, edgecolors=PAPER, linewidth=0.8)
    axes.set(aspect="equal", xticks=np.arange(columns) + 0.5, yticks=np.arange(rows) + 0.5)
    axes.set_xticklabels([str(i + 1) for i in range(columns)])
    axes.set_yticklabels([str(i + 1) for i in range(rows)])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.invert_yaxis()
    if digits:
        _write_values(axes, table, digits)
    return mesh


def cosine_scale(
    figure: Figure, mesh: QuadMesh, axes: Axes | Sequence[Axes], label: str = "cosine"
) -> Colorbar:
    """A slim colour bar for `cosine_matrix`, beside one or several axes."""
    beside = axes if isinstance(axes, Axes) else list(axes)
    bar = figure.colorbar(mesh, ax=beside, shrink=0.6, aspect=24, label=label, ticks=[-1, 0, 1])
    bar.outline.set_visible(False)
    if bar.solids is not None:
        bar.solids.set_edgecolor("face")
    return bar


def _write_values(axes: Axes, table: np.ndarray, digits: int) -> None:
    for (row, column), value in np.ndenumerate(table):
        # Adding zero turns a rounded -0 into 0.
        text = f"{round(value, digits) + 0.0:.{digits}f}".replace("0.", ".", 1).replace("-", "−")
        color = PAPER if abs(value) > 0.6 else INK
        where = (column + 0.5, row + 0.5)
        axes.annotate(text, where, ha="center", va="center", fontsize=6, color=color)


def ticks_at(axis: Axis, values: Sequence[float]) -> None:
    """Ticks at these values, as plain numbers: the measured sizes on a logarithmic axis."""
    axis.set_major_locator(FixedLocator(list(values)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def label_ends(axes: Axes, gap: float = 10.0) -> None:
    """Write each line's label at its right end, at least `gap` points apart; call it last."""
    lines = [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    figure = axes.get_figure(root=True)
    if figure is None or not lines:
        return
    figure.draw_without_rendering()
    ends = [_end(line) for line in lines]
    scale = 72 / figure.dpi
    heights = [float(axes.transData.transform(end)[1]) * scale for end in ends]
    for line, end, old, new in zip(lines, ends, heights, _spread(heights, gap), strict=True):
        axes.annotate(
            str(line.get_label()),
            end,
            xytext=(5, new - old),
            textcoords="offset points",
            va="center",
            color=line.get_color(),
            fontsize=8,
            annotation_clip=False,
        )


def _end(line: Line2D) -> tuple[float, float]:
    """The last point of a line that can be drawn."""
    points = np.asarray(line.get_xydata(), dtype=float)
    x, y = points[np.isfinite(points).all(1)][-1]
    return float(x), float(y)


def _spread(heights: Sequence[float], gap: float) -> list[float]:
    """The heights, pushed apart to at least `gap`, each pair equally from its middle."""
    order = np.argsort(heights, kind="stable")
    spread = np.asarray(heights, dtype=float)[order]
    for _ in range(20 * len(spread)):
        short = gap - np.diff(spread)
        if (short < 1e-6).all():
            break
        worst = int(short.argmax())
        spread[worst] -= short[worst] / 2
        spread[worst + 1] += short[worst] / 2
    result = np.empty_like(spread)
    result[order] = spread
    return [float(v) for v in result]


def css_variables() -> str:
    """Every role as a CSS variable, light by default, dark where a screen asks for it."""
    light = "".join(f"--{role}:{pair[0]};" for role, pair in ROLES.items())
    dark = "".join(f"--{role}:{pair[1]};" for role, pair in ROLES.items())
    return (
        f":root{{color-scheme:light dark;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"
    )
