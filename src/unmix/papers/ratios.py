"""The figure of a paper's predictions: measured over predicted, with intervals and z-scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from unmix import style
from unmix.claims import confidence
from unmix.papers.base import Drawing, Prediction
from unmix.papers.beside import Beside


def ratios(
    predictions: Sequence[Prediction], found: Sequence[Beside], caption: str, alt: str
) -> Drawing:
    """One row a prediction: the ratio with its 95 % interval over seeds, and z."""
    middle = np.array([float(beside.ratio.mean()) for beside in found])
    ends = np.array([confidence(beside.ratio.tolist()) for beside in found])
    rows, names = np.arange(len(found)), [p.quantity for p in predictions]
    with style.canvas(5.8, 0.7 + 0.34 * len(found)) as canvas:
        axes = canvas.subplots()
        axes.axvline(1, color=style.MUTED, linewidth=0.7, linestyle=":")
        axes.hlines(rows, ends[:, 0], ends[:, 1], color=style.BLUE, linewidth=1)
        axes.plot(middle, rows, "o", color=style.BLUE)
        axes.set(xlabel="measured / predicted", ylim=(len(found) - 0.5, -0.5), yticks=rows)
        axes.set_yticklabels(names)
        axes.tick_params(axis="y", length=0)
        right = axes.secondary_yaxis("right")
        right.set_yticks(rows, [_score(beside.z) for beside in found])
        right.tick_params(length=0)
        right.spines[:].set_visible(False)
    table: dict[str, list[Any]] = {
        "quantity": names,
        "setting": [p.setting for p in predictions],
        "predicted": [beside.expected for beside in found],
        "measured": [float(beside.measured.mean()) for beside in found],
        "ratio_low": list(ends[:, 0]),
        "ratio_high": list(ends[:, 1]),
        "z": [beside.z for beside in found],
    }
    return Drawing(canvas, table, caption, alt)


def _score(z: float) -> str:
    return "" if math.isnan(z) else f"z = {z:.1f}".replace("-", "−")
