"""Robust accuracy against radius: trained nets (Figs 2e, 5e), and F and F^(p) themselves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from unmix import style
from unmix.papers.base import Drawing, Evidence
from unmix.papers.prelu.measures import classifiers
from unmix.papers.prelu.measures.robustness import published

Table = dict[str, list[Any]]
CRITICAL = {"F": style.RED, "F3": style.BLUE}


def trained(evidence: Evidence) -> Drawing:
    """Fig 2e, drawn again: union of attacks, PGD from the clean point, the published evaluation."""
    with style.canvas(6.2, 3.4) as canvas:
        table = _trained(canvas.subplots(), evidence, {p: f"sgd-p={p}" for p in (1, 3)}, 10)
    caption = (
        "Robust accuracy of nets trained by SGD, K = 10. Solid: union of all attacks (bands: range "
        "over seeds). Dashed: PGD from the clean point. Dotted: the published evaluation, with "
        "which the paper drew its figure. For p = 3 both flatter the net: from a centre no "
        "gradient points to the opposite ones, so they stay put well beyond √2/2."
    )
    alt = "The union falls at 0.32 for p = 1 and at 0.70 for p = 3; weaker attacks later."
    return Drawing(canvas, table, caption, alt)


def more(evidence: Evidence) -> Drawing:
    """Fig 5e, drawn again."""
    with style.canvas(6.2, 3.4) as canvas:
        table = _trained(canvas.subplots(), evidence, {p: f"K20-p={p}" for p in (1, 3)}, 20)
    caption = (
        "Robust accuracy with 20 subclasses (reduced flow). Solid: union of all attacks (bands: "
        "range over seeds). Dashed: PGD from the clean point. Dotted: the published evaluation."
    )
    alt = "The union falls at 0.22 for p = 1 and at 0.70 for p = 3."
    return Drawing(canvas, table, caption, alt)


def critical(evidence: Evidence) -> Drawing:
    """Thms 1 and 3: exact and certified curves of F and F^(3) for two K and two noise levels."""
    table: Table = {"classifier": [], "K": [], "alpha": [], "radius": [], "exact": []}
    grid = np.linspace(0, 0.9, 91)
    with style.canvas(6.8, 3.0) as canvas:
        panels = canvas.subplots(1, 2, sharey=True)
        for axes, k in zip(panels, (10, 20), strict=True):
            for name in CRITICAL:
                for alpha, width in (("0.1", 1.6), ("3", 0.8)):
                    _closed(axes, evidence, (name, k, alpha), grid, width, table)
                _attacked(axes, evidence, f"{name}-K{k},alpha=0.1", name)
            for x, text in ((1 / math.sqrt(k), "1/√K"), (math.sqrt(0.5), "√2/2")):
                axes.axvline(x, color=style.MUTED, linewidth=0.7, linestyle=":")
                axes.annotate(text, (x, 1.04), fontsize=7.5, color=style.MUTED, ha="center")
            axes.set(xlabel="radius", ylim=(-0.02, 1.12), title=f"K = {k}")
        panels[0].set_ylabel("robust accuracy")
        panels[0].legend(loc="lower left")
    caption = (
        "Robust accuracy of F (exact radii) and F⁽³⁾ (certified radii), from their closed forms; "
        "thin lines: noise α = 3. Crosses: the union of attacks at α = 0.1."
    )
    alt = "F falls at 1/√K, F⁽³⁾ at √2/2 whatever K; crosses lie on the curves."
    return Drawing(canvas, table, caption, alt)


def _trained(axes: Axes, evidence: Evidence, settings: dict[int, str], k: int) -> Table:
    colors, table = {1: style.RED, 3: style.BLUE}, {}
    for p, setting in settings.items():
        found, color = evidence.attacked(setting), colors[p]
        grid, union = np.array(found.radii), found.robust_accuracy().numpy()
        clean = found.robust_accuracy("pgd-clean-start").numpy().mean(0)
        paper = published(evidence.run(setting), found.radii, found.smallest.shape[1])
        axes.fill_between(grid, union.min(0), union.max(0), color=color, alpha=0.15, linewidth=0)
        axes.plot(grid, union.mean(0), color=color, label=f"p = {p}")
        axes.plot(grid, clean, color=color, linestyle="--", linewidth=1)
        axes.plot(grid, paper.mean(0), color=color, linestyle=":", linewidth=1.2)
        table["radius"] = list(grid)
        table[f"p={p}, union"] = list(union.mean(0))
        table[f"p={p}, PGD from the clean point"] = list(clean)
        table[f"p={p}, published evaluation"] = paper.mean(0).tolist()
    for x, text in ((1 / math.sqrt(k), "1/√K"), (math.sqrt(0.5), "√2/2")):
        axes.axvline(x, ymax=0.9, color=style.MUTED, linewidth=0.7, linestyle=":")
        axes.annotate(text, (x, 1.05), fontsize=7.5, color=style.MUTED, ha="center")
    axes.set(xlabel="radius", ylabel="robust accuracy", ylim=(-0.02, 1.12), xlim=(0, 1.02))
    axes.legend(loc="lower left")
    return table


def _closed(
    axes: Axes,
    evidence: Evidence,
    which: tuple[str, int, str],
    grid: np.ndarray,
    width: float,
    table: Table,
) -> None:
    name, k, alpha = which
    radii = np.sort(classifiers.radii(evidence, f"{name}-K{k},alpha={alpha}").flatten().numpy())
    kept = 1 - np.searchsorted(radii, grid, side="right") / len(radii)
    label = ("F, exact" if name == "F" else "F⁽³⁾, certified") if alpha == "0.1" else None
    axes.plot(grid, kept, color=CRITICAL[name], linewidth=width, label=label)
    table["classifier"] += [name] * len(grid)
    table["K"] += [k] * len(grid)
    table["alpha"] += [float(alpha)] * len(grid)
    table["radius"] += grid.tolist()
    table["exact"] += kept.tolist()


def _attacked(axes: Axes, evidence: Evidence, setting: str, name: str) -> None:
    found = evidence.attacked(setting)
    accuracy = found.robust_accuracy().mean(0).numpy()
    axes.plot(found.radii, accuracy, "x", color=CRITICAL[name], markersize=4)
