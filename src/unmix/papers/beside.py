"""Closed-form predictions beside measurements: `predict` shows those that a run decides."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from unmix.claims import confidence
from unmix.errors import Contradiction, UnmixError
from unmix.experiment import Run
from unmix.papers.base import AttackedBy, Evidence, Paper, Prediction, alone

ROUNDING = 1e-12


@dataclass(frozen=True)
class Beside:
    """A measurement, one value a replica, and what a closed form predicts for all or for each."""

    measured: Tensor
    predicted: float | Tensor
    note: str = ""

    @property
    def ratio(self) -> Tensor:
        return self.measured / self.predicted

    @property
    def expected(self) -> float:
        """The prediction, in the mean over replicas."""
        return float(torch.as_tensor(self.predicted, dtype=torch.float64).mean())

    @property
    def z(self) -> float:
        """How many standard errors of the mean over replicas it lies above the prediction; NaN
        where replicas differ by no more than rounding, as those of a built net do."""
        count, gap = len(self.measured), self.measured - self.predicted
        spread = float(gap.std()) if count > 1 else 0.0
        if spread <= ROUNDING * abs(float(self.measured.mean())):
            return math.nan
        return float(gap.mean()) * count**0.5 / spread

    def __str__(self) -> str:
        words = f"measured {float(self.measured.mean()):.4g}, predicted {self.expected:.4g}"
        words = words if math.isnan(self.z) else f"{words}, z = {self.z:.1f}"
        return f"{words}; {self.note}" if self.note else words


@dataclass(frozen=True)
class Predicted:
    """A prediction of a paper beside its measurement; `low` and `high` bound the measured mean."""

    quantity: str
    setting: str
    run: str
    predicted: float
    measured: float
    low: float
    high: float
    z: float
    replicas: int
    note: str = ""

    @property
    def ratio(self) -> float:
        return self.measured / self.predicted if self.predicted else math.nan


class Predictions(tuple[Predicted, ...]):
    """Predictions that print as a table."""

    def __str__(self) -> str:
        """One row a prediction, and below the table every note."""
        head = f"{'quantity':<36} {'predicted':>10} {'measured':>10} {'ratio':>7} {'z':>7}"
        lines = [
            f"{p.quantity:<36} {p.predicted:>10.4g} {p.measured:>10.4g} {p.ratio:>7.4f} {p.z:>7.1f}"
            for p in self
        ]
        notes = [f"{p.quantity}: {p.note}" for p in self if p.note]
        return "\n".join([head, *lines, *notes])


def predictions(paper: Paper, evidence: Evidence) -> Predictions:
    """Every prediction of a paper whose setting is at hand and that can be measured there."""
    found = []
    for prediction in paper.predictions:
        if not evidence.why_not((prediction.setting,)):
            watched = evidence.watched()
            try:
                beside = paper.take(prediction.measure, (prediction.setting,), watched)
            except Contradiction:
                raise
            except UnmixError:
                # A measure of training has no value on a run that diverged, say.
                continue
            found.append(_predicted(prediction, beside, watched))
    return Predictions(found)


def predict(run: Run, attacked: AttackedBy | None = None) -> Predictions:
    """The predictions, of every paper, that this run decides by itself."""
    found: list[Predicted] = []
    for paper, evidence in alone(run, attacked):
        found += predictions(paper, evidence)
    return Predictions(found)


def _predicted(prediction: Prediction, beside: Beside, evidence: Evidence) -> Predicted:
    values = [float(v) for v in beside.measured]
    low, high = confidence(values)
    return Predicted(
        prediction.quantity,
        prediction.setting,
        evidence.settings[prediction.setting].experiment.digest(),
        beside.expected,
        sum(values) / len(values),
        low,
        high,
        beside.z,
        len(values),
        "; ".join(filter(None, (beside.note, evidence.flagged))),
    )
