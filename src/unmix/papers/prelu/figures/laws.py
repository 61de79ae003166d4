"""Closed forms beside training, and the field that turns neurons in the plane (Fig 7)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from unmix import style
from unmix.claims import confidence
from unmix.papers.base import Drawing, Evidence
from unmix.papers.prelu.measures import dynamics
from unmix.papers.prelu.measures.alignment import in_plane

SHELLS = ("shells-p=1", "shells-p=2", "shells-p=3")
# What is predicted, for which setting.
PREDICTORS: tuple[tuple[str, Callable[[Evidence, str], dynamics.Beside], str], ...] = (
    ("escape time, p = 3", dynamics.escape, "balanced-p=3"),
    ("escape time, p = 4", dynamics.escape, "balanced-p=4"),
    ("escape time, p = 6", dynamics.escape, "balanced-p=6"),
    ("margin, p = 1", dynamics.margin, "reduced-p=1"),
    ("margin, p = 3", dynamics.margin, "reduced-p=3"),
    ("margin of class + less −, p = 1", dynamics.class_margin, "even-p=1"),
    ("distance at the centres, p = 3", dynamics.spread, "reduced-p=3"),
)


def predictors(evidence: Evidence) -> Drawing:
    """Every closed-form predictor beside its measurement, with its z-score."""
    found = [(name, measure(evidence, setting)) for name, measure, setting in PREDICTORS]
    ratios = np.array([float(beside.ratio.mean()) for _, beside in found])
    ends = np.array([confidence(beside.ratio.tolist()) for _, beside in found])
    rows = np.arange(len(found))
    with style.canvas(5.8, 3.0) as canvas:
        axes = canvas.subplots()
        axes.axvline(1, color=style.MUTED, linewidth=0.7, linestyle=":")
        axes.hlines(rows, ends[:, 0], ends[:, 1], color=style.BLUE, linewidth=1)
        axes.plot(ratios, rows, "o", color=style.BLUE)
        axes.set(xlabel="measured / predicted", ylim=(len(found) - 0.5, -0.5), yticks=rows)
        axes.set_yticklabels([name for name, _ in found])
        axes.tick_params(axis="y", length=0)
        right = axes.secondary_yaxis("right")
        right.set_yticks(rows, [_score(beside.z) for _, beside in found])
        right.tick_params(length=0)
        right.spines[:].set_visible(False)
    table: dict[str, list[Any]] = {
        "quantity": [name for name, _ in found],
        "setting": [setting for *_, setting in PREDICTORS],
        "predicted": [float(beside.predicted.mean()) for _, beside in found],
        "measured": [float(beside.measured.mean()) for _, beside in found],
        "ratio_low": list(ends[:, 0]),
        "ratio_high": list(ends[:, 1]),
        "z": [beside.z for _, beside in found],
    }
    caption = (
        "The reduced flow beside closed forms in the start and the class frequencies: ratio with "
        "its 95 % interval over seeds; z is the mean deviation in its standard errors."
    )
    return Drawing(canvas, table, caption, "Ratios lie within a quarter of 1.")


def bias(evidence: Evidence) -> Drawing:
    """Fig 7, computed: where x^(p) points for a neuron between two positive centres."""
    table: dict[str, list[Any]] = {"p": [], "neuron": [], "pull": []}
    with style.canvas(4.2, 3.4) as canvas:
        axes = canvas.subplots()
        for setting, color in zip(SHELLS, (style.RED, style.MUTED, style.BLUE), strict=True):
            p = evidence.run(setting).experiment.net.p
            angle, pulled = (np.degrees(a.numpy()) for a in in_plane(p))
            axes.plot(angle, pulled, color=color, label=f"p = {p:g}")
            table["p"] += [p] * len(angle)
            table["neuron"] += angle.tolist()
            table["pull"] += pulled.tolist()
        axes.set(xlabel="angle of w from μ₁", ylabel="angle of $x^{(p)}(w)$", aspect="equal")
        axes.set(xticks=[0, 45, 90], yticks=[0, 45, 90])
        axes.legend(loc="upper left")
    caption = (
        "Two positive centres at 0° and 90°: a neuron turns towards x⁽ᵖ⁾(w). For p = 1 that is "
        "the mean of both at 45°, for p = 2 the neuron itself, for p = 3 the nearer centre."
    )
    return Drawing(canvas, table, caption, "A flat line, the diagonal, and an S-shaped curve.")


def _score(z: float) -> str:
    return "" if math.isnan(z) else f"z = {z:.1f}".replace("-", "−")
