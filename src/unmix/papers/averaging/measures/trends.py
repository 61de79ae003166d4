"""Exponents over ladders of k, d or n: how the asymptotic statements are judged."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch.nn.functional import one_hot

from unmix.claims import Sample
from unmix.experiment import Run
from unmix.papers.averaging.measures.learned import off_over_on
from unmix.papers.averaging.measures.robustness import radius
from unmix.papers.base import Evidence

Measure = Callable[..., Sample]


def radius_in_k(evidence: Evidence, *ladder: str) -> Sample:
    """Exponent of the radius (over |mu|) in k."""
    return _exponent(evidence, ladder, lambda run: run.data.k, radius)


def radius_in_steps(evidence: Evidence, *ladder: str) -> Sample:
    """Exponent of the radius (over |mu|) in the number of steps T."""
    return _exponent(evidence, ladder, lambda run: run.experiment.train.steps, radius)


def radius_in_d(evidence: Evidence, *ladder: str) -> Sample:
    """Exponent of the radius (in input units) in d."""

    def in_units(evidence: Evidence, setting: str) -> Sample:
        unit = evidence.run(setting).data.unit
        return Sample([v * unit for v in radius(evidence, setting).values])

    return _exponent(evidence, ladder, lambda run: run.data.d, in_units)


def in_n(evidence: Evidence, what: str, *ladder: str) -> Sample:
    """Exponent of a probe's value ("probe.value") in n, with d proportional to n."""
    return _exponent(evidence, ladder, _points, lambda e, s: e.value(s, what))


def excess_in_n(evidence: Evidence, what: str, *ladder: str) -> Sample:
    """Exponent of a ratio minus 1 in n, with d proportional to n."""

    def excess(evidence: Evidence, setting: str) -> Sample:
        sample = evidence.value(setting, what)
        return Sample([v - 1 for v in sample.values], sample.failed_premises)

    return _exponent(evidence, ladder, _points, excess)


def off_ratio_in_n(evidence: Evidence, *ladder: str) -> Sample:
    """Exponent of -lambda_off/lambda_on in n (with d proportional to n)."""
    return _exponent(evidence, ladder, _points, off_over_on)


def log_loss_in_d(evidence: Evidence, *ladder: str) -> Sample:
    """Exponent of -log(cross-entropy) in d (Prop 4.8: exp(-Omega(d))), in log space."""

    def depth(evidence: Evidence, setting: str) -> Sample:
        run = evidence.run(setting)
        batch = run.fresh(200)
        outputs = run.model.outputs(batch.x)
        own = one_hot(batch.cluster, run.data.k).bool()
        lead = outputs[own].reshape(batch.y.shape) - outputs.masked_fill(own, -torch.inf).logsumexp(
            -1
        )
        # log CE = log mean log(1 + e^{-lead}) is -min lead to O(log n): the worst point dominates.
        return evidence.sample(setting, lead.amin(1))

    return _exponent(evidence, ladder, lambda run: run.data.d, depth)


def _exponent(
    evidence: Evidence, ladder: tuple[str, ...], size: Callable[[Run], int], measure: Measure
) -> Sample:
    """Least-squares slope of log measure against log size, one fit a replica."""
    sizes = np.log([size(evidence.run(s)) for s in ladder])
    samples = [measure(evidence, s) for s in ladder]
    failed = tuple(f for s in samples for f in s.failed_premises)
    table = np.array([s.values for s in samples])
    if not (np.isfinite(table) & (table > 0)).all():
        return Sample([], (*failed, "a value on the ladder is not positive and finite"))
    note = f"sizes {', '.join(str(round(math.exp(v))) for v in sizes)}"
    return Sample([float(v) for v in np.polyfit(sizes, np.log(table), 1)[0]], failed, note)


def _points(run: Run) -> int:
    return int(run.experiment.samples.train)
