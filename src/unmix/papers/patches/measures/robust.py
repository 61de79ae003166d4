"""Robust accuracies under named threats, radii, and what no net could be robust to."""

from __future__ import annotations

from dataclasses import replace

import torch

from unmix.attacks.patch_suite import PatchSuite
from unmix.attacks.patch_view import PatchView
from unmix.certify.base import Certificate
from unmix.certify.patches import interval
from unmix.claims import Sample
from unmix.experiment import Run
from unmix.nets.patch_cnn import RobustMinimum
from unmix.papers.base import Evidence
from unmix.papers.patches.measures.snapshots import kept
from unmix.papers.patches.settings import EPS
from unmix.papers.standing import Best
from unmix.probes.base import Measured


def accuracy(evidence: Evidence, name: str, setting: str) -> Sample:
    """Robust accuracy at the paper's radius under one attack, or under their "union"."""
    found = evidence.attacked(setting).robust_accuracy(None if name == "union" else name)
    return evidence.sample(setting, found[:, 0])


def error(evidence: Evidence, name: str, setting: str) -> Sample:
    """One minus `accuracy`."""
    found = evidence.attacked(setting).robust_accuracy(None if name == "union" else name)
    return evidence.sample(setting, 1 - found[:, 0])


def overstated(evidence: Evidence, name: str, setting: str) -> Sample:
    """Accuracy under one attack minus that under the union of all."""
    found = evidence.attacked(setting)
    return evidence.sample(setting, (found.robust_accuracy(name) - found.robust_accuracy())[:, 0])


def on_training_points(evidence: Evidence, setting: str) -> Sample:
    """Accuracy of the training points under all-features at the paper's radius."""
    run = evidence.run(setting)
    view = PatchView(run.classifier, run.train_batch, run.experiment.seeds)  # type: ignore[arg-type]
    found = PatchSuite(attacks=("all-features",)).on(view, (EPS,))
    return evidence.sample(setting, found.robust_accuracy()[:, 0])


def radius_over(evidence: Evidence, setting: str, baseline: str) -> Sample:
    """Mean smallest radius of the grid that breaks a point, over that of another training."""
    mine, other = (_radius(evidence, name) for name in (setting, baseline))
    return evidence.sample(setting, mine / other)


def certified(evidence: Evidence, setting: str) -> Certificate:
    """Interval radii of the points that the setting's plan attacks, judged once."""
    plan = evidence.settings[setting].attack
    points = plan.points if plan else None

    def take(run: Run) -> Measured:
        found = interval(run, points)
        ends = {"lower": found.lower, "upper": found.upper, "status": found.status}
        return Measured({}, ends | {"witness": found.witness})

    ends = kept(evidence, setting, "interval", take)
    return Certificate(
        ends["lower"],
        ends["upper"],
        ends["status"],
        ends["witness"],
        norm="linf",
        method="interval",
    )


def sandwich(evidence: Evidence, setting: str) -> Sample:
    """The smallest distance of an attack's radius above the certified one."""
    gap = evidence.attacked(setting).smallest - certified(evidence, setting).lower
    return evidence.sample(setting, gap.amin(1))


def exact_over_law(evidence: Evidence, setting: str) -> Sample:
    """Mean exact radius of a minimum over size n/(n + P), n patches with its feature."""
    found = certified(evidence, setting)
    law = radius_law(evidence.run(setting))
    premise = () if found.closed.all() else ("some brackets did not close",)
    sample = evidence.sample(setting, found.upper.mean(1) / law)
    return replace(sample, failed_premises=(*sample.failed_premises, *premise))


def radius_law(run: Run) -> float:
    """alpha n_R/(n_R + P) for w = gamma u, beta n_NR/(n_NR + P) for w = gamma v."""
    data = run.data
    robust = isinstance(run.experiment.net, RobustMinimum)
    count = data.robust if robust else data.patches - data.robust
    size = data.alpha[0] if robust else data.beta[0]
    return float(size * count / (count + data.patches))


def best(evidence: Evidence, setting: str) -> Best:
    """Half the l_inf distance of two points of different classes that share partition and noise."""
    return Best(max(evidence.run(setting).data.alpha) / 2, "half-way to another class, in l∞")


def certified_over_exact(evidence: Evidence, setting: str, other: str) -> Sample:
    """Mean certified radius of one net over the mean radius at which another one is fooled."""
    mine, theirs = certified(evidence, setting).lower, certified(evidence, other).upper
    return evidence.sample(setting, mine.mean(1) / theirs.mean(1))


def threshold(evidence: Evidence, *settings: str) -> Sample:
    """alpha at which half of the points survive all-features, over eps (1 + P/n_R)."""
    data = [evidence.run(s).data for s in settings]
    alphas = [d.alpha[0] for d in data]
    share = torch.stack(
        [evidence.attacked(s).robust_accuracy("all-features")[:, 0] for s in settings], 1
    )
    predicted = EPS * (1 + data[0].patches / data[0].robust)
    return evidence.sample(settings[0], [_half(alphas, row.tolist()) / predicted for row in share])


def loss_of(evidence: Evidence, setting: str) -> Sample:
    """The clean cross-entropy of the training points."""
    return evidence.sample(setting, evidence.run(setting).trace.columns["clean_loss"][:, -1])


def intersecting(evidence: Evidence, setting: str) -> Sample:
    """Share of pairs of points of two classes within 2 eps of each other in l_inf."""
    run = evidence.run(setting)
    batch = run.fresh(60)
    values = []
    for x, y in zip(batch.x, batch.y, strict=True):
        near = torch.cdist(x.flatten(1), x.flatten(1), p=torch.inf) <= 2 * EPS
        pairs = y[:, None] != y
        values.append(float(near[pairs].double().mean()))
    return evidence.sample(setting, values)


def ratio(evidence: Evidence, name: str, setting: str) -> Sample:
    """A quantity of Assumption 2.3 (tau = q) or of separability."""
    run = evidence.run(setting)
    found = run.data.ratios(run.experiment.net.q, EPS)[name]
    return evidence.sample(setting, [found] * run.replicas)


def _radius(evidence: Evidence, setting: str) -> torch.Tensor:
    """Mean smallest radius; a point that no radius of the grid broke counts with the largest."""
    found = evidence.attacked(setting)
    return found.smallest.clamp_max(max(found.radii)).mean(1)


def _half(x: list[float], share: list[float]) -> float:
    """Where a rising share passes 1/2, linear between the settings; NaN if it does not."""
    for i in range(1, len(x)):
        if share[i - 1] < 0.5 <= share[i]:
            return x[i - 1] + (x[i] - x[i - 1]) * (0.5 - share[i - 1]) / (share[i] - share[i - 1])
    return float("nan")
