"""Closed-form predictors for the feature-averaging paper's trainings, to stand beside measurements.

They are derived, not in the paper: mean-field laws in which every own neuron is active on every own
point and fluctuations enter only through their variance. None of them replaces a training.
"""

from __future__ import annotations

import math

from scipy.optimize import brentq
from scipy.special import wrightomega
from scipy.stats import norm

from unmix.data.clusters import Clusters
from unmix.experiment import Experiment


def growth(experiment: Experiment) -> float:
    """kappa = (eta |mu|^2 / (neurons a label * k)) (alpha^2 + sigma^2 k/n)."""
    data, net = experiment.data, experiment.net
    width = getattr(net, "m", getattr(net, "h", 1))
    energy = data.alpha**2 + data.sigma**2 * data.k / experiment.samples.train
    return float(experiment.train.eta * data.unit**2 / (width * data.k) * energy)


def margin(experiment: Experiment, steps: float) -> float:
    """Mean training margin q after some steps.

    binary    q' = kappa / (1 + e^q)              =>  q + e^q = kappa t + 1
    k-class   q' = kappa (k-1) / (k-1 + e^q)      =>  (k-1) q + e^q = (k-1) kappa t + 1
    """
    rivals = _rivals(experiment)
    x = growth(experiment) * steps + 1 / rivals
    return float(x - wrightomega(x - math.log(rivals)).real)


def own_lambda(experiment: Experiment, steps: float) -> float:
    """lambda = q alpha^2 / (alpha^2 + sigma^2 k/n): the rest of q is the point's own noise."""
    data = experiment.data
    noise = data.sigma**2 * data.k / experiment.samples.train
    return margin(experiment, steps) * data.alpha**2 / (data.alpha**2 + noise)


def steps_for(experiment: Experiment, level: float) -> int:
    """Steps after which `own_lambda` reaches a level."""
    data, rivals = experiment.data, _rivals(experiment)
    q = level * (1 + data.sigma**2 * data.k / experiment.samples.train / data.alpha**2)
    return max(1, round((q + (math.exp(q) - 1) / rivals) / growth(experiment)))


def off_ratio(experiment: Experiment) -> float:
    """u = -lambda_off / lambda_on: u = Phi(-u/s) (binary), u = Phi(-u/s)/(k-1) (k-class).

    An off-class coefficient sinks until its cluster activates the neuron so rarely that the flow
    stops; s is the standard deviation of the neuron's noise response over lambda.
    """
    data, rivals = experiment.data, _rivals(experiment)
    own = 1 if rivals > 1 else _own(data)
    s = data.sigma / data.alpha * math.sqrt(own / data.d)
    return float(brentq(lambda u: u - norm.cdf(-u / s) / rivals, 0.0, 1.0))


def cosine_on(experiment: Experiment, level: float) -> float:
    """[own (1 + u^2 + (sigma/alpha)^2 k/n) + (sigma_w |mu|^2 / (alpha lambda))^2]^(-1/2)."""
    own = 1 if _rivals(experiment) > 1 else _own(experiment.data)
    return float((own + weight_error(experiment, level) ** 2) ** -0.5)


def weight_error(experiment: Experiment, level: float | None = None) -> float:
    """E / lambda for balanced clusters: sqrt(own (sigma/alpha)^2 k/n + others u^2 + start^2)."""
    data, rivals = experiment.data, _rivals(experiment)
    own, others = (1, rivals) if rivals > 1 else (_own(data), data.k - _own(data))
    noise = own * (data.sigma / data.alpha) ** 2 * data.k / experiment.samples.train
    start = _start(experiment, level) ** 2 if level else 0.0
    return math.sqrt(noise + others * off_ratio(experiment) ** 2 + start)


def averaging_radius(data: Clusters) -> float:
    """Radius of a feature-averaging net at a centre, over |mu|: alpha / sqrt(k)."""
    return data.alpha / math.sqrt(data.k)


def granular_radius(data: Clusters, labels: int) -> float:
    """alpha sqrt(G / (2k)): G = 2 averages all, G = k decouples all."""
    return data.alpha * math.sqrt(labels / (2 * data.k))


def decoupling_radius(beta: float, opposite: int, label: int) -> float:
    """Radius of f_FD with threshold beta at a centre, over |mu|.

    r_- = min_{1<=L<=opposite} (1 + (L-1) beta) / sqrt(L+1);   r_+ = min(1 - beta, r_-), since for
    y = +1 switching the own neuron off already gives f = 0, which counts as -1.
    """
    minus = min((1 + (used - 1) * beta) / math.sqrt(used + 1) for used in range(1, opposite + 1))
    return minus if label < 0 else min(1 - beta, minus)


def non_robust_radius(k: int) -> float:
    """Radius of the net of Prop 4.8 at a centre, over |mu|: 2 / sqrt(k + 6)."""
    return 2 / math.sqrt(k + 6)


def none_active(n: int, k: int) -> float:
    """P(a neuron starts with none of its cluster's n/k points active) = 1 / (n/k + 1)."""
    return 1 / (n / k + 1)


def _rivals(experiment: Experiment) -> int:
    """Number of competing classes: 1 for the binary net."""
    classes = experiment.net.classes(experiment.data)
    return 1 if classes is None else int(classes.max())


def _own(data: Clusters) -> int:
    return len(data.plus)


def _start(experiment: Experiment, level: float | None) -> float:
    data = experiment.data
    return float(experiment.net.sigma_w * data.unit**2 / (data.alpha * level)) if level else 0.0
