"""Closed forms beside what training gives: the margin over time, and every predictor at the end."""

from __future__ import annotations

import numpy as np

from unmix import style
from unmix.papers.averaging import predict
from unmix.papers.averaging.measures import laws
from unmix.papers.averaging.predictions import PREDICTIONS
from unmix.papers.base import Drawing, Evidence
from unmix.papers.ratios import ratios


def law(evidence: Evidence) -> Drawing:
    """Mean margin over time beside q + e^q - 1 = kappa t."""
    run = evidence.run("binary-long")
    steps = np.array(run.trace.steps[1:], dtype=float)
    measured = run.trace.columns["margin"][:, 1:].numpy()
    predicted = np.array([predict.margin(run.experiment, s) for s in steps])
    with style.canvas() as canvas:
        axes = canvas.subplots()
        axes.semilogx(steps, predicted, color=style.INK, linewidth=1, label="law")
        axes.semilogx(steps, measured.mean(0), "o", color=style.BLUE, label="trained")
        axes.set(xlabel="step t", ylabel="mean margin q")
        axes.legend(loc="upper left")
    table = {"step": list(steps), "margin": list(measured.mean(0)), "law": list(predicted)}
    caption = (
        "Mean training margin of the two-label net and the law q + e^q − 1 = κt; its late growth "
        "is ln(κt), which gives λ ~ ln t."
    )
    return Drawing(canvas, table, caption, "Measured margins lie on the predicted curve.")


def predictors(evidence: Evidence) -> Drawing:
    """Every closed-form predictor beside its measurement, with its z-score."""
    found = [getattr(laws, p.measure.partition(":")[2])(evidence, p.setting) for p in PREDICTIONS]
    caption = (
        "Training beside closed forms in the hyper-parameters (cosines and weight errors also take "
        "the measured λ): ratio with its 95 % interval over seeds. z is the deviation in standard "
        "errors of the mean; seeds differ so little that a deviation below one per cent stands out."
    )
    alt = "All ratios lie within some per cent of 1."
    return ratios(PREDICTIONS, found, caption, alt)
