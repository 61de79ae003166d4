"""Closed forms beside measurements, for `unmix.predict`."""

from __future__ import annotations

from unmix.papers.base import Evidence
from unmix.papers.beside import Beside
from unmix.papers.patches.measures.phases import effective
from unmix.papers.patches.measures.robust import certified, radius_law


def stopping(evidence: Evidence, setting: str) -> Beside:
    """sum_s B_s^q where B stops: rho^(q-1) / (eta~ beta^(q-2))."""
    run = evidence.run(setting)
    net, beta = run.experiment.net, run.data.beta[0]
    predicted = net.rho ** (net.q - 1) / (effective(evidence, setting) * beta ** (net.q - 2))
    return Beside(evidence.probe(setting, "patch-weights")["B_power"].double(), predicted)


def radius(evidence: Evidence, setting: str) -> Beside:
    """Exact l_inf radius of a minimum of section 3: size n / (n + P)."""
    law = radius_law(evidence.run(setting))
    return Beside(certified(evidence, setting).upper.mean(1), law)
