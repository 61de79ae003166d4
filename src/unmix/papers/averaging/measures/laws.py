"""Closed-form predictors beside measurements: the ratio of the two, one value a replica."""

from __future__ import annotations

import torch

from unmix.claims import Sample
from unmix.papers.averaging import predict
from unmix.papers.averaging.measures.learned import off_ratio
from unmix.papers.averaging.measures.robustness import upper
from unmix.papers.base import Evidence
from unmix.papers.beside import Beside
from unmix.probes.alignment import on_pairs


def margin(evidence: Evidence, setting: str) -> Beside:
    """Final mean training margin."""
    run = evidence.run(setting)
    law = predict.margin(run.experiment, run.experiment.train.steps)
    return Beside(run.trace.columns["margin"][:, -1], law)


def off(evidence: Evidence, setting: str) -> Beside:
    """Off-class ratio u = -lambda_off/lambda_on."""
    law = predict.off_ratio(evidence.run(setting).experiment)
    return Beside(off_ratio(evidence, setting), law)


def cosine(evidence: Evidence, setting: str) -> Beside:
    """Mean on-class cosine."""
    law = predict.cosine_on(evidence.run(setting).experiment, _level(evidence, setting))
    return Beside(evidence.probe(setting, "cosines")["on"], law)


def error(evidence: Evidence, setting: str) -> Beside:
    """E/lambda (balanced clusters)."""
    law = predict.weight_error(evidence.run(setting).experiment, _level(evidence, setting))
    return Beside(evidence.probe(setting, "weight-error")["relative"], law)


def radius(evidence: Evidence, setting: str) -> Beside:
    """Mean radius of the two-label net, over |mu|."""
    found = evidence.attacked(setting)
    law = predict.averaging_radius(evidence.run(setting).data)
    return Beside(found.mean_radius(), law, upper(found.unverified))


def margin_law(evidence: Evidence, setting: str) -> Sample:
    """Largest relative deviation of the mean margin from the Lambert-W law, over t >= 10."""
    run = evidence.run(setting)
    late = [i for i, s in enumerate(run.trace.steps) if s >= 10]
    laws = [predict.margin(run.experiment, run.trace.steps[i]) for i in late]
    law = torch.tensor(laws, dtype=torch.float64)
    return evidence.sample(setting, (run.trace.columns["margin"][:, late] / law - 1).abs().amax(1))


def margin_over_law(evidence: Evidence, setting: str) -> Sample:
    """Final mean margin over the law's."""
    return _over(evidence, setting, margin(evidence, setting))


def off_over_law(evidence: Evidence, setting: str) -> Sample:
    """Off-class ratio over the law's."""
    return _over(evidence, setting, off(evidence, setting))


def cosine_over_law(evidence: Evidence, setting: str) -> Sample:
    """Mean on-class cosine over the law's."""
    return _over(evidence, setting, cosine(evidence, setting))


def error_over_law(evidence: Evidence, setting: str) -> Sample:
    """E/lambda over the law's (balanced clusters)."""
    return _over(evidence, setting, error(evidence, setting))


def radius_over_law(evidence: Evidence, setting: str) -> Sample:
    """Radius of the two-label net over alpha |mu|/sqrt(k)."""
    return _over(evidence, setting, radius(evidence, setting))


def granular_over_law(evidence: Evidence, setting: str) -> Sample:
    """Radius of a net trained with G labels over sqrt(G/(2k))."""
    run = evidence.run(setting)
    law = predict.granular_radius(run.data, run.experiment.net.labels)
    return _over(evidence, setting, Beside(evidence.attacked(setting).mean_radius(), law))


def decoupling_plus(evidence: Evidence, setting: str) -> Sample:
    """Radius of f_FD on positive points over its closed form at a centre."""
    return _decoupling(evidence, setting, 1)


def decoupling_minus(evidence: Evidence, setting: str) -> Sample:
    """Radius of f_FD on negative points over its closed form at a centre."""
    return _decoupling(evidence, setting, -1)


def non_robust_over_law(evidence: Evidence, setting: str) -> Sample:
    """Radius of the net of Prop 4.8 over 2/sqrt(k+6)."""
    law = predict.non_robust_radius(evidence.run(setting).data.k)
    return _over(evidence, setting, Beside(evidence.attacked(setting).mean_radius(), law))


def none_active_over_law(evidence: Evidence, setting: str) -> Sample:
    """Share of neurons that start with no own point active over 1/(n/k + 1)."""
    run = evidence.run(setting)
    law = predict.none_active(run.experiment.samples.train, run.data.k)
    share = evidence.probe(setting, "activation")["start_own_none"]
    return _over(evidence, setting, Beside(share, law))


def dead_had_none(evidence: Evidence, setting: str) -> Sample:
    """Of the neurons that died, the share that started with no own point active."""
    probe, run = evidence.probe(setting, "activation"), evidence.run(setting)
    own = (on_pairs(run.model).to(run.model.readout) @ run.model.readout.T > 0).T
    none = (probe["start_counts"] * own).sum(2) == 0
    dead = probe["dead_neurons"].bool()
    shares = [float(none[r][dead[r]].double().mean()) for r in range(len(dead)) if dead[r].any()]
    return evidence.sample(setting, shares, f"{int(dead.sum())} dead neurons")


def _over(evidence: Evidence, setting: str, beside: Beside) -> Sample:
    return evidence.sample(setting, beside.ratio, str(beside))


def _level(evidence: Evidence, setting: str) -> float:
    return float(evidence.probe(setting, "weight-error")["lambda"].mean())


def _decoupling(evidence: Evidence, setting: str, label: int) -> Sample:
    run, found = evidence.run(setting), evidence.attacked(setting)
    opposite = len(run.data.minus if label > 0 else run.data.plus)
    law = predict.decoupling_radius(run.experiment.net.beta, opposite, label)
    batch = run.fresh(found.smallest.shape[1])
    means = [r[y == label].mean() for r, y in zip(found.smallest, batch.y, strict=True)]
    return _over(evidence, setting, Beside(torch.stack(means) / found.unit, law))
