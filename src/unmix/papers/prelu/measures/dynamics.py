"""Times and margins beside their closed forms, and SGD beside the flow."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from unmix.claims import Sample
from unmix.experiment import Run
from unmix.nets.base import Model
from unmix.papers.base import Evidence
from unmix.papers.beside import Beside
from unmix.papers.prelu import predict
from unmix.probes.base import Measured
from unmix.streams import stream


def escape(evidence: Evidence, setting: str) -> Beside:
    """First time of max |f| = 1 from a balanced start."""
    run = evidence.run(setting)
    measured = evidence.probe(setting, "phases")["escape"]
    return Beside(measured, _predicted_escape(run))


def class_margin(evidence: Evidence, setting: str) -> Beside:
    """p = 1: margin at positive centres less that at negative ones, against ln(K1/K2)/2."""
    run = evidence.run(setting)
    margins = centre_margins(run)
    plus, minus = (margins[:, list(side)].mean(1) for side in (run.data.plus, run.data.minus))
    law = torch.full_like(plus, predict.margin_gap(run.data))
    return Beside(plus - minus, law)


def margin(evidence: Evidence, setting: str) -> Beside:
    """Mean margin at the centres at the end, against Ei(m) - Ei(1) = 2 rate (T - t_escape)."""
    run = evidence.run(setting)
    left = run.experiment.train.time - evidence.probe(setting, "phases")["escape"]
    law = [_mean_margin(run, rates, float(t)) for rates, t in zip(_rates(run), left, strict=True)]
    return Beside(centre_margins(run).mean(1), torch.tensor(law, dtype=torch.float64))


def spread(evidence: Evidence, setting: str) -> Beside:
    """p >= 3: closed-form lower bound of the distance, against (m_max - m_min)/(m_max + m_min)
    of the law's margins for the frequencies of the training set."""
    run = evidence.run(setting)
    left = run.experiment.train.time - evidence.probe(setting, "phases")["escape"]
    rows = []
    for rates, t in zip(_rates(run), left, strict=True):
        margins = [predict.margin(rate, float(t)) for rate in rates]
        rows.append((max(margins) - min(margins)) / (max(margins) + min(margins)))
    law = torch.tensor(rows, dtype=torch.float64)
    return Beside(evidence.probe(setting, "reference-distance")["lower"], law)


def escape_over_law(evidence: Evidence, setting: str) -> Sample:
    """Escape time over its closed form."""
    return _over(evidence, setting, escape(evidence, setting))


def margin_over_law(evidence: Evidence, setting: str) -> Sample:
    """Mean margin over the law's."""
    return _over(evidence, setting, margin(evidence, setting))


def class_margin_over_law(evidence: Evidence, setting: str) -> Sample:
    """Gap between the classes' margins over ln(K1/K2)/2."""
    return _over(evidence, setting, class_margin(evidence, setting))


def spread_over_law(evidence: Evidence, setting: str) -> Sample:
    """Lower bound of the distance over what the class frequencies predict."""
    return _over(evidence, setting, spread(evidence, setting))


def escaped(evidence: Evidence, setting: str) -> Sample:
    """Whether max |f| reached 1 within the time (1 or 0)."""
    return evidence.sample(setting, evidence.probe(setting, "phases")["escape"].isfinite().double())


def predicted_share(evidence: Evidence, setting: str) -> Sample:
    """Predicted escape time over the time there is."""
    run = evidence.run(setting)
    return evidence.sample(setting, _predicted_escape(run) / run.experiment.train.time)


def same_contributions(evidence: Evidence, sgd: str, flow: str) -> Sample:
    """Correlation of all q_j between two trainings from one start."""
    q, other = (evidence.probe(s, "contributions")["q"].double() for s in (sgd, flow))
    pairs = zip(q, other, strict=True)
    return evidence.sample(sgd, [torch.corrcoef(torch.stack(pair))[0, 1] for pair in pairs])


def same_neurons(evidence: Evidence, sgd: str, flow: str) -> Sample:
    """Share of the K largest neurons of one training among those of the other."""
    k = evidence.run(sgd).data.k
    sets = [_largest(evidence.probe(s, "contributions"), k) for s in (sgd, flow)]
    return evidence.sample(sgd, [len(a & b) / k for a, b in zip(*sets, strict=True)])


def same_margins(evidence: Evidence, sgd: str, flow: str) -> Sample:
    """Largest difference of the margins at centres, over their mean."""
    one, other = (centre_margins(evidence.run(s)) for s in (sgd, flow))
    return evidence.sample(sgd, (one - other).abs().amax(1) / one.mean(1))


def same_parameters(evidence: Evidence, one: str, other: str) -> Sample:
    """Largest difference of contributions, over the largest."""
    q, r = (evidence.probe(s, "contributions")["q"].double() for s in (one, other))
    return evidence.sample(one, (q - r).abs().amax(1) / q.abs().amax(1))


def drift(evidence: Evidence, setting: str) -> Sample:
    """Drift of v^2 - |w|^2 over the largest neuron's v^2 + |w|^2."""
    return evidence.sample(setting, evidence.probe(setting, "invariants")["balance_drift"])


def homogeneity(evidence: Evidence, setting: str) -> Sample:
    """Distance of the degree in the parameters from 2."""
    return evidence.sample(setting, (evidence.probe(setting, "invariants")["degree"] - 2).abs())


def symmetry(evidence: Evidence, setting: str) -> Sample:
    """Largest change of f under a random order and random rescaling of the neurons."""
    run = evidence.run(setting)
    model, x = run.model.double(), run.test_batch.x.double()
    w, v = model.params["w"], model.params["v"]
    rows = []
    for r, seed in enumerate(run.experiment.seeds):
        draw = stream(seed, "theory.symmetry")
        order = torch.from_numpy(draw.permutation(w.shape[1]))
        scale = torch.from_numpy(draw.uniform(0.1, 10.0, w.shape[1]))
        moved = {"w": (scale.unsqueeze(1) * w[r])[order][None], "v": (v[r] / scale)[order][None]}
        f = model.decision(x)[r]
        other = Model(model.net, model.data, moved).decision(x[r : r + 1])[0]
        rows.append(float((f - other).abs().max() / f.abs().max()))
    return evidence.sample(setting, rows)


def centre_margins(run: Run) -> Tensor:
    """y_k f(mu_k) [R k]."""
    return (run.model.decision(run.data.alpha * run.centres).double()) * run.data.signs


def _predicted_escape(run: Run) -> Tensor:
    net, data = run.experiment.net, run.data
    form = net.form(data, run.initial)
    cosine = form.w.double() @ (run.centres.double() / data.unit).transpose(1, 2)
    # A neuron learns centres of its own sign only.
    own = form.readout[..., 0].sign().unsqueeze(-1).double() == data.signs
    best = cosine.masked_fill(~own, 0).flatten(1).max(1)
    neuron = best.indices // data.k
    length = run.initial["w"].double().norm(dim=-1).gather(1, neuron.unsqueeze(1))[:, 0]
    times = [
        predict.escape_time(data.k, net.p, float(c), float(size))
        for c, size in zip(best.values, length, strict=True)
    ]
    return torch.tensor(times, dtype=torch.float64)


def _rates(run: Run) -> list[list[float]]:
    """pi_k of every subclass (p >= 3); for p = 1 sqrt(K_own)/K of its class's margin."""
    data = run.data
    counts = torch.stack([torch.bincount(c, minlength=data.k) for c in run.train_batch.cluster])
    share = counts.double() / counts.sum(1, keepdim=True)
    if run.experiment.net.p > 1:
        return [row.tolist() for row in share]
    own = {1.0: len(data.plus), -1.0: len(data.minus)}
    rates = [math.sqrt(own[float(s)]) / data.k for s in data.signs]
    return [rates] * len(share)


def _mean_margin(run: Run, rates: list[float], time: float) -> float:
    return sum(predict.margin(rate, time) for rate in rates) / run.data.k


def _largest(probe: Measured, k: int) -> list[set[int]]:
    return [set(row.tolist()) for row in probe["q"].abs().topk(k, dim=1).indices]


def _over(evidence: Evidence, setting: str, beside: Beside) -> Sample:
    return evidence.sample(setting, beside.ratio, str(beside))
