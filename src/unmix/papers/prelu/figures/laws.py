"""Closed forms beside training, and the field that turns neurons in the plane (Fig 7)."""

from __future__ import annotations

from typing import Any

import numpy as np

from unmix import style
from unmix.papers.base import Drawing, Evidence
from unmix.papers.prelu.measures import dynamics
from unmix.papers.prelu.measures.alignment import in_plane
from unmix.papers.prelu.predictions import PREDICTIONS
from unmix.papers.ratios import ratios

SHELLS = ("shells-p=1", "shells-p=2", "shells-p=3")


def predictors(evidence: Evidence) -> Drawing:
    """Every closed-form predictor beside its measurement, with its z-score."""
    found = [
        getattr(dynamics, p.measure.partition(":")[2])(evidence, p.setting) for p in PREDICTIONS
    ]
    caption = (
        "The reduced flow beside closed forms in the start and the class frequencies: ratio with "
        "its 95 % interval over seeds; z is the mean deviation in its standard errors."
    )
    return ratios(PREDICTIONS, found, caption, "Ratios lie within a quarter of 1.")


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
