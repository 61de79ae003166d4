"""Robust accuracies under named threats, radii, and what no net could be robust to."""

from __future__ import annotations

import torch

from unmix.attacks.patch_suite import PatchSuite
from unmix.attacks.patch_view import PatchView
from unmix.claims import Sample
from unmix.papers.base import Evidence
from unmix.papers.patches.settings import EPS


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
