"""Robust accuracy and radii: Fig 3 left, and the laws in k and in the labels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from unmix import style
from unmix.papers.base import Drawing, Evidence
from unmix.papers.brackets import bracket, draw_bracket

Table = dict[str, list[Any]]
LEARNERS = {"2 labels": ("binary", style.RED), "10 labels": ("k-class", style.BLUE)}


def curves(evidence: Evidence) -> Drawing:
    """Fig 3 left: robust accuracy against radius, two labels and ten."""
    with style.canvas(5.8, 3.4) as canvas:
        table = draw_curves(canvas.subplots(), evidence)
    seeds = evidence.run("binary").replicas
    closed = {label: bracket(evidence, setting).closed for label, (setting, _) in LEARNERS.items()}
    shares = ", ".join(f"{share:.0%} of points with {label}" for label, share in closed.items())
    caption = (
        f"Robust accuracy of nets trained with two and with ten labels, {seeds} seeds (bands: "
        "range over seeds). Solid: union of all attacks. Dashed: PGD from the clean point only, "
        "which flatters the two-label net. Dotted: certified; the truth lies between dotted and "
        f"solid. Radii known exactly: {shares}."
    )
    alt = "The two-label net loses all robust accuracy near 0.32, the ten-label net near 0.69."
    return Drawing(canvas, table, caption, alt)


def draw_curves(axes: Axes, evidence: Evidence) -> Table:
    """Draw both learners' curves and return their numbers."""
    table: Table = {"radius": list(_grid(evidence, "binary"))}
    for label, (setting, color) in LEARNERS.items():
        _curve(axes, evidence, setting, label, color, table)
    k = evidence.run("binary").data.k
    for x, text in ((1 / math.sqrt(k), "1/√k"), (math.sqrt(0.5), "best possible 1/√2")):
        axes.axvline(x, ymax=0.9, color=style.MUTED, linewidth=0.7, linestyle=":")
        axes.annotate(text, (x, 1.05), fontsize=7.5, color=style.MUTED, ha="center")
    axes.set(xlabel="radius / √d", ylabel="robust accuracy", ylim=(-0.02, 1.12), xlim=(0, 0.82))
    axes.legend(loc="lower left")
    return table


def scaling(evidence: Evidence) -> Drawing:
    """Radius against the number of clusters, log-log."""
    ladders = {
        "k labels": ("k-class-k*", style.BLUE),
        "2 labels": ("binary-k*", style.RED),
        "Prop 4.8": ("NRMC-k*", style.ORANGE),
    }
    table: Table = {"learner": [], "k": [], "radius": [], "low": [], "high": []}
    with style.canvas(5.6, 3.6) as canvas:
        axes = canvas.subplots()
        for label, (ladder, color) in ladders.items():
            _ladder(axes, evidence, label, ladder, color, table)
        k = np.array(sorted({int(v) for v in table["k"]}))
        axes.loglog(k, k**-0.5, color=style.MUTED, linewidth=0.8, linestyle=":")
        axes.loglog(k, 0 * k + 0.5**0.5, color=style.MUTED, linewidth=0.8, linestyle=":")
        axes.set(xlabel="clusters k", ylabel="mean radius / √d")
        style.ticks_at(axes.xaxis, [float(v) for v in k])
        style.ticks_at(axes.yaxis, (0.15, 0.2, 0.3, 0.5, 0.7))
        style.label_ends(axes)
    caption = (
        "Mean radius of the strongest attack; bars: range over seeds. Dotted: 1/√k and the best "
        "possible 1/√2. Two labels follow 1/√k, one label a cluster does not fall with k."
    )
    return Drawing(canvas, table, caption, "Log-log plot of radius against number of clusters.")


def granularity(evidence: Evidence) -> Drawing:
    """Radius against the number of training labels G at fixed k."""
    names = evidence.expand(("labels=*",))
    labels = [evidence.run(n).experiment.net.labels for n in names]
    radii = np.stack([np.asarray(evidence.attacked(n).mean_radius()) for n in names])
    data = evidence.run(names[0]).data
    fine = np.linspace(2, data.k, 50)
    with style.canvas() as canvas:
        axes = canvas.subplots()
        axes.plot(fine, np.sqrt(fine / (2 * data.k)), color=style.INK, linewidth=1, label="law")
        axes.errorbar(
            labels, radii.mean(1), _range(radii), fmt="o", color=style.BLUE, label="trained"
        )
        axes.set(xlabel=f"training labels G (of k = {data.k} clusters)", ylabel="mean radius / √d")
        axes.set(ylim=(0, 0.8), xlim=(0, data.k + 1), xticks=labels)
        axes.legend(loc="lower right")
    table = {
        "labels": list(labels),
        "radius": list(radii.mean(1)),
        "law": [math.sqrt(g / (2 * data.k)) for g in labels],
    }
    caption = "Radius of nets trained with G labels on the same clusters, and √(G/2k)."
    return Drawing(canvas, table, caption, "Measured radii lie just below the predicted curve.")


def _curve(
    axes: Axes, evidence: Evidence, setting: str, label: str, color: str, table: Table
) -> None:
    found, both = evidence.attacked(setting), bracket(evidence, setting)
    union = both.attacked
    clean = found.robust_accuracy("pgd-clean-start").numpy().mean(0)
    axes.fill_between(both.radii, union.min(0), union.max(0), color=color, alpha=0.15, linewidth=0)
    draw_bracket(axes, both, color, label)
    axes.plot(both.radii, clean, color=color, linestyle="--", linewidth=1)
    table[f"{label}, union"] = list(union.mean(0))
    table[f"{label}, certified"] = list(both.certified.mean(0))
    table[f"{label}, PGD from the clean point"] = list(clean)


def _ladder(
    axes: Axes, evidence: Evidence, label: str, ladder: str, color: str, table: Table
) -> None:
    names = evidence.expand((ladder,))
    ks = [evidence.run(n).data.k for n in names]
    radii = np.stack([np.asarray(evidence.attacked(n).mean_radius()) for n in names])
    bars = _range(radii)
    axes.loglog(ks, radii.mean(1), "o-", color=color, label=label)
    axes.errorbar(ks, radii.mean(1), bars, fmt="none", color=color, linewidth=0.8)
    table["learner"] += [label] * len(ks)
    table["k"] += ks
    table["radius"] += list(radii.mean(1))
    table["low"] += list(radii.min(1))
    table["high"] += list(radii.max(1))


def _range(values: np.ndarray) -> np.ndarray:
    """Distances from the mean to the extremes, as error bars want them."""
    mean = values.mean(1)
    return np.stack([mean - values.min(1), values.max(1) - mean])


def _grid(evidence: Evidence, setting: str) -> np.ndarray:
    found = evidence.attacked(setting)
    return np.array(found.radii) / found.unit
