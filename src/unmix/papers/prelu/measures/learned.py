"""What training ends in: neurons, contributions, distances to F and F^(p) (Conjecture 1)."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from unmix.claims import Sample
from unmix.nets.prelu_constructed import PReLUAveraging, PReLUSubclasses
from unmix.papers.base import Evidence
from unmix.probes.reference_distance import Search, estimate, power, reference_net

Pairing = Literal["averaging", "subclasses"]
# Algorithm 1 as its text has it: uniform starts, small equal steps, the end counts. Fewer starts.
LITERAL = Search(starts="sphere", random=100, steps=300, first=0.01, last=0.01)


def covered(evidence: Evidence, setting: str) -> Sample:
    """Share of the K subclasses that a dominant neuron points at."""
    k = evidence.run(setting).data.k
    return evidence.sample(setting, evidence.probe(setting, "contributions")["covered"] / k)


def distance(evidence: Evidence, setting: str) -> Sample:
    """Algorithm 1's distance to F (p = 1) or F^(p), beside its closed-form bounds."""
    probe = evidence.probe(setting, "reference-distance")
    low, high = float(probe["lower"].mean()), float(probe["upper"].mean())
    return evidence.sample(setting, probe["distance"], f"dist lies in [{low:.3g}, {high:.3g}]")


def searched_over_lower(evidence: Evidence, setting: str) -> Sample:
    """Distance for the best c over the closed-form lower bound at centres and class means."""
    probe = evidence.probe(setting, "reference-distance")
    return evidence.sample(setting, probe["best"] / probe["lower"])


def distance_to(evidence: Evidence, pairing: Pairing, setting: str) -> Sample:
    """Distance to the other reference: F^(p) for p = 1, F for p = 3."""
    run = evidence.run(setting)
    p = power(run.model.form)
    net = PReLUAveraging() if pairing == "averaging" else PReLUSubclasses(p=p)
    return evidence.sample(setting, estimate(run, net).searched)


def literal_over_default(evidence: Evidence, setting: str) -> Sample:
    """Algorithm 1 by its text (uniform starts) over the one with centres among its starts."""
    run = evidence.run(setting)
    found = estimate(run, reference_net(run), LITERAL).searched
    return evidence.sample(
        setting, found / evidence.probe(setting, "reference-distance")["distance"]
    )


def fitted_on_data(evidence: Evidence, setting: str) -> Sample:
    """Distance with c fitted on data points (the code) over that on the sphere (the text)."""
    run = evidence.run(setting)
    found = estimate(run, reference_net(run), Search(fit="data")).searched
    return evidence.sample(
        setting, found / evidence.probe(setting, "reference-distance")["distance"]
    )


def distance_in_noise(evidence: Evidence, *settings: str) -> Sample:
    """Slope of the distance in alpha (Fig 2a)."""
    alphas = [evidence.run(s).data.sigma for s in settings]
    rows = [evidence.probe(s, "reference-distance")["distance"].tolist() for s in settings]
    slopes = [np.polyfit(alphas, row, 1)[0] for row in zip(*rows, strict=True)]
    return evidence.sample(settings[0], slopes)


def largest_distance(evidence: Evidence, *settings: str) -> Sample:
    """Largest distance over the noise levels."""
    rows = [evidence.probe(s, "reference-distance")["distance"] for s in settings]
    return evidence.sample(settings[0], torch.stack(rows).amax(0))


def dominant_share(evidence: Evidence, setting: str) -> Sample:
    """Share of the h neurons that contribute more than 1 % of the largest (Fig 2b)."""
    h = evidence.run(setting).params["w"].shape[1]
    return evidence.sample(setting, evidence.probe(setting, "contributions")["dominant"] / h)


def aligned_at_escape(evidence: Evidence, aligned: str, setting: str) -> Sample:
    """Cosine of a neuron's directions at the escape and at the end, weighted by its end's |q|."""
    now, then = (_directions(evidence, s) for s in (setting, aligned))
    q = evidence.probe(setting, "contributions")["q"].abs()
    return evidence.sample(setting, ((now * then).sum(-1) * q).sum(1) / q.sum(1))


def predictable(evidence: Evidence, setting: str) -> Sample:
    """Share of subclasses whose largest neuron at the end is the one that began nearest to it.

    Read among neurons of the right sign at the end; no training is needed to name them.
    """
    run, probe = evidence.run(setting), evidence.probe(setting, "contributions")
    form = run.experiment.net.form(run.data, run.initial)
    before = form.w @ (run.centres / run.data.unit).transpose(1, 2)
    q, cosine = probe["q"], probe["cosine"]
    signs = run.data.signs.to(q)
    hits = []
    for k in range(run.data.k):
        own = q.sign() == signs[k]
        first = before[..., k].masked_fill(~own, -2).argmax(1)
        largest = (q.abs() * (cosine[..., k] > 0.9)).masked_fill(~own, 0).argmax(1)
        hits.append(first == largest)
    return evidence.sample(setting, torch.stack(hits, 1).double().mean(1))


def _directions(evidence: Evidence, setting: str) -> Tensor:
    w = evidence.run(setting).params["w"].double()
    return w / w.norm(dim=-1, keepdim=True).clamp_min(1e-300)
