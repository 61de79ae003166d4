"""The feature-averaging paper's evidence at the size of a toy: every setting, shrunken."""

from __future__ import annotations

import pytest

from paper_checks import coarse
from unmix.experiment import Experiment
from unmix.experiment import run as train
from unmix.papers.averaging import PAPER
from unmix.papers.base import Evidence, Setting, Source

SHRINK = 32


def shrunken(experiment: Experiment) -> Experiment:
    """Dimensions over 32, points over 10, step sizes times 32 (so that eta d stays), two seeds."""
    d, n = experiment.data.d, experiment.samples.train
    changes = [
        f"data.d={max(d // SHRINK, experiment.data.k)}",
        f"samples.train={max(n // 10, 1)}",
        "samples.test=4",
        "seeds=[0, 1]",
    ]
    if hasattr(experiment.train, "eta"):
        changes.append(f"train.eta={experiment.train.eta * SHRINK}")
        changes.append("train.engine=auto")
    return experiment.with_(*changes)


@pytest.fixture(scope="session")
def evidence() -> Evidence:
    settings = {
        name: Setting(shrunken(s.experiment), s.attack, certify=s.certify)
        for name, s in PAPER.settings("quick").items()
    }
    return Evidence(settings, PAPER.settings("paper"), Source(train, coarse))


@pytest.fixture(autouse=True)
def _unchecked(unchecked: None) -> None:
    """In every test of this folder."""
