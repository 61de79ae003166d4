"""The pReLU paper's evidence at the size of a toy: every setting, shrunken."""

from __future__ import annotations

from functools import cache

from paper_checks import coarse
from unmix.experiment import Experiment
from unmix.experiment import run as train
from unmix.papers.base import Evidence, Setting, Source
from unmix.papers.prelu import PAPER, settings

SHRINK = 25


def shrunken(experiment: Experiment) -> Experiment:
    """Dimensions and widths over 25, at most 100 points, short flows, two seeds."""
    changes = [
        f"data.d={max(experiment.data.d // SHRINK, experiment.data.k)}",
        f"samples.train={min(experiment.samples.train, 100)}",
        "samples.test=4",
        "seeds=[0, 1]",
    ]
    if experiment.net.kind == "prelu":
        changes.append(f"net.h={max(experiment.net.h // SHRINK, 30)}")
    if hasattr(experiment.train, "steps"):
        changes.append("train.steps=60")
    elif getattr(experiment.train, "reduction", "") == "mean":
        changes.append(f"train.time={min(experiment.train.time, 800.0)}")
    elif experiment.data.sigma > 0 and experiment.train.kind != "none":
        # The sum of the losses runs n times faster.
        changes.append("train.time=8.0")
    return experiment.with_(*changes)


@cache
def toys() -> Evidence:
    """Trained once for all tests; the theory half alone."""
    table = settings.settings("quick")
    theory = {n: s for n, s in table.items() if s.experiment.data.kind == "clusters"}
    shrunk = {n: Setting(shrunken(s.experiment), s.attack) for n, s in theory.items()}
    return Evidence(shrunk, PAPER.settings("paper"), Source(train, coarse))
