"""Closed forms beside training: escape times, margins, what is left of the distance."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from unmix import style
from unmix.claims import confidence
from unmix.papers.base import Drawing, Evidence
from unmix.papers.prelu.measures import dynamics

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


def _score(z: float) -> str:
    return "" if math.isnan(z) else f"z = {z:.1f}".replace("-", "−")
