"""What was learned in the end: coefficients, shares, logits, noise."""

from __future__ import annotations

import math

import torch

from unmix.claims import Sample
from unmix.nets.patch_cnn import PatchModel
from unmix.papers.base import Evidence
from unmix.papers.patches.measures.phases import effective, paths


def non_robust_over_robust(evidence: Evidence, setting: str) -> Sample:
    """min over classes of max_r B / max_r A."""
    a, b = _diagonal(evidence, setting)
    return evidence.sample(setting, (b / a).amin(1))


def robust_over_non_robust(evidence: Evidence, setting: str) -> Sample:
    """min over classes of max_r A / max_r B."""
    a, b = _diagonal(evidence, setting)
    return evidence.sample(setting, (a / b).amin(1))


def restrained(evidence: Evidence, setting: str, free: str) -> Sample:
    """max_r B of a training over that of another, mean over classes."""
    mine, other = (_diagonal(evidence, name)[1] for name in (setting, free))
    return evidence.sample(setting, (mine / other).mean(1))


def stopping(evidence: Evidence, setting: str) -> Sample:
    """eta~ beta^(q-2) sum_s B_s^q / rho^(q-1), mean over classes: 1 where B stops (section 5.2)."""
    run = evidence.run(setting)
    net = run.experiment.net
    pull = effective(evidence, setting) * run.data.beta[0] ** (net.q - 2)
    power = evidence.probe(setting, "patch-weights")["B_power"].double()
    return evidence.sample(setting, pull * power / net.rho ** (net.q - 1))


def growth_of(evidence: Evidence, what: str, setting: str) -> Sample:
    """The largest coefficient ("A".."D") over what it was at the start."""
    return evidence.sample(setting, evidence.probe(setting, "patch-weights")[f"{what}_growth"])


def noise(evidence: Evidence, what: str, setting: str) -> Sample:
    """sqrt(d) max |<w, xi>| over log d, over all coordinates or outside the features."""
    run = evidence.run(setting)
    name = "noise_max" if what == "all" else "noise_max_outside"
    scale = math.sqrt(run.data.d) / math.log(run.data.d)
    return evidence.sample(setting, scale * evidence.probe(setting, "patch-weights")[name])


def output_over_log_d(evidence: Evidence, setting: str) -> Sample:
    """E F_y / log d on held-out points (Lemmas D.11, D.26)."""
    _, own = _outputs(evidence, setting)
    return evidence.sample(setting, own.mean(1) / math.log(evidence.run(setting).data.d))


def logit_constant(evidence: Evidence, setting: str) -> Sample:
    """max (1 - logit_y) e^{F_y} / (k - 1): bounded where the other outputs are (Lemma D.5)."""
    f, own = _outputs(evidence, setting)
    wrong = 1 - (own - f.logsumexp(-1)).exp()
    return evidence.sample(setting, (wrong * own.exp()).amax(1) / (f.shape[-1] - 1))


def rival_logit(evidence: Evidence, setting: str) -> Sample:
    """max over j != y of logit_j e^{F_y} (Lemma D.6)."""
    f, own = _outputs(evidence, setting)
    y = evidence.run(setting).test_batch.y.unsqueeze(-1)
    logit = f.softmax(-1).scatter(-1, y, 0).amax(-1)
    return evidence.sample(setting, (logit * own.exp()).amax(1))


def smallest_output(evidence: Evidence, setting: str) -> Sample:
    """min over max of F_y on the training points of a class, worst class (Lemma E.5)."""
    run = evidence.run(setting)
    model: PatchModel = run.classifier  # type: ignore[assignment]
    batch = run.train_batch
    own = model.outputs(batch.x).gather(-1, batch.y.unsqueeze(-1))[..., 0]
    parts = []
    for c in range(run.data.k):
        mine = batch.y == c
        low = own.masked_fill(~mine, torch.inf).amin(1)
        parts.append(low / own.masked_fill(~mine, -torch.inf).amax(1))
    return evidence.sample(setting, torch.stack(parts).amin(0))


def loss_budget(evidence: Evidence, setting: str) -> Sample:
    """eta sum_t E(1 - logit_y) / log^2 d, from the recorded steps on (Lemma E.6)."""
    run = evidence.run(setting)
    trace = run.trace
    steps = torch.tensor(trace.steps, dtype=torch.float64)
    total = torch.trapezoid(trace.columns["doubt"].double(), steps, dim=1)
    return evidence.sample(setting, run.experiment.train.eta * total / math.log(run.data.d) ** 2)


def label_leak(evidence: Evidence, setting: str) -> Sample:
    """Clean loss minus adversarial loss at the end."""
    return evidence.sample(setting, evidence.probe(setting, "patch-phases")["leak"])


def _diagonal(evidence: Evidence, setting: str) -> tuple[torch.Tensor, torch.Tensor]:
    """max_r A and max_r B [R k] at the end."""
    a, b = paths(evidence.run(setting))
    return a[..., -1], b[..., -1]


def _outputs(evidence: Evidence, setting: str) -> tuple[torch.Tensor, torch.Tensor]:
    """F [R n k] and F_y [R n] on held-out points, in float64."""
    run = evidence.run(setting)
    model: PatchModel = run.classifier.double()  # type: ignore[assignment]
    f = model.outputs(run.test_batch.x.double())
    return f, f.gather(-1, run.test_batch.y.unsqueeze(-1))[..., 0]
