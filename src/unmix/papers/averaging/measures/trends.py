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


def radius_in_d(evidence: Evidence, *ladder: str) -> Sample:
    """Exponent of the radius (in input units) in d."""

    def in_units(evidence: Evidence, setting: str) -> Sample:
        unit = evidence.run(setting).data.unit
        return Sample([v * unit for v in radius(evidence, setting).values])

    return _exponent(evidence, ladder, lambda run: run.data.d, in_units)


def relative_error_in_n(evidence: Evidence, *ladder: str) -> Sample:
    """Exponent of E/lambda in n (with d proportional to n)."""
    return _probe_exponent(evidence, ladder, "weight-error", "relative")


def bias_in_n(evidence: Evidence, *ladder: str) -> Sample:
    """Exponent of the largest bias in n (with d proportional to n)."""
    return _probe_exponent(evidence, ladder, "decomposition", "bias_max")


def gap_in_n(evidence: Evidence, *ladder: str) -> Sample:
    """Exponent of the margin gap in n (with d proportional to n)."""
    return _probe_exponent(evidence, ladder, "margins", "gap")


def slope_ratio_in_n(evidence: Evidence, *ladder: str) -> Sample:
    """Exponent of max|l'|/min|l'| - 1 in n (with d proportional to n)."""

    def excess(evidence: Evidence, setting: str) -> Sample:
        return evidence.sample(setting, evidence.probe(setting, "margins")["ratio"] - 1)

    return _exponent(evidence, ladder, _points, excess)


def lambda_ratio_in_n(evidence: Evidence, *ladder: str) -> Sample:
    """Exponent of max/min own lambda - 1 in n (with d proportional to n)."""

    def excess(evidence: Evidence, setting: str) -> Sample:
        return evidence.sample(
            setting, evidence.probe(setting, "decomposition")["lambda_own_ratio"] - 1
        )

    return _exponent(evidence, ladder, _points, excess)


def off_ratio_in_n(evidence: Evidence, *ladder: str) -> Sample:
    """Exponent of -lambda_off/lambda_on in n (with d proportional to n)."""
    return _exponent(evidence, ladder, _points, off_over_on)


def margin_error_in_n(evidence: Evidence, *ladder: str) -> Sample:
    """Exponent of max |q - q-hat| in n (with d proportional to n)."""
    return _probe_exponent(evidence, ladder, "inner-products", "q")


def centre_error_in_n(evidence: Evidence, *ladder: str) -> Sample:
    """Exponent of max |<w, mu> - lambda| in n (with d proportional to n)."""
    return _probe_exponent(evidence, ladder, "inner-products", "mu")


def noise_error_in_n(evidence: Evidence, *ladder: str) -> Sample:
    """Exponent of max |<w, xi_i> - sigma_i| in n (with d proportional to n)."""
    return _probe_exponent(evidence, ladder, "inner-products", "xi")


def fresh_noise_in_n(evidence: Evidence, *ladder: str) -> Sample:
    """Exponent of sd <w, fresh noise> in n (with d proportional to n)."""
    return _probe_exponent(evidence, ladder, "inner-products", "fresh_sd")


def distance_in_n(evidence: Evidence, *ladder: str) -> Sample:
    """Exponent of the proved upper bound of the sup-distance of Thm 4.6 in n."""
    return _probe_exponent(evidence, ladder, "averaging-distance", "bound")


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
    table = np.log(np.array([s.values for s in samples]))
    note = f"sizes {', '.join(str(round(math.exp(v))) for v in sizes)}"
    return Sample([float(v) for v in np.polyfit(sizes, table, 1)[0]], failed, note)


def _probe_exponent(evidence: Evidence, ladder: tuple[str, ...], probe: str, value: str) -> Sample:
    return _exponent(evidence, ladder, _points, lambda e, s: e.sample(s, e.probe(s, probe)[value]))


def _points(run: Run) -> int:
    return int(run.experiment.samples.train)
