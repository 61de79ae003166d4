"""What the trained weights hold: averages, coefficients, margins (sections 4.1, 5, B and C)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from unmix.claims import Sample
from unmix.papers.base import Evidence
from unmix.probes.decomposition import own_neurons
from unmix.probes.inner_products import approximate_margins

Slack = Callable[[Tensor, float, float], Tensor]


def averaging_index(evidence: Evidence, setting: str) -> Sample:
    """Mean on-class cosine over that of a perfect average, sqrt((1 + (J-1) rho) / J)."""
    return evidence.sample(setting, _index(evidence, setting))


def index_ratio(evidence: Evidence, setting: str, baseline: str) -> Sample:
    """Averaging index of a setting over that of the baseline."""
    return evidence.sample(setting, _index(evidence, setting) / _index(evidence, baseline))


def own_minus_off(evidence: Evidence, setting: str) -> Sample:
    """Smallest on-class cosine minus the largest off-class one (Fig 2)."""
    probe = evidence.probe(setting, "cosines")
    return evidence.sample(setting, probe["on_min"] - probe["off_max"])


def log_growth(evidence: Evidence, setting: str) -> Sample:
    """Slope of the mean margin in ln t over the last factor of three in time."""
    trace = evidence.run(setting).trace
    late = [i for i, s in enumerate(trace.steps) if s >= trace.steps[-1] / 3]
    t = np.log([trace.steps[i] for i in late])
    slopes = [np.polyfit(t, row[late].numpy(), 1)[0] for row in trace.columns["margin"]]
    return evidence.sample(setting, slopes)


def lambda_lower(evidence: Evidence, setting: str) -> Sample:
    """Smallest own lambda minus ln(T eta)/4 (B.23, C.23)."""
    return _lambda_slack(evidence, setting, lambda lam, low, high: lam.amin(1) - low)


def lambda_upper(evidence: Evidence, setting: str) -> Sample:
    """4 ln(T+1) minus the largest own lambda (B.23, C.23)."""
    return _lambda_slack(evidence, setting, lambda lam, low, high: high - lam.amax(1))


def sigma_over_bound(evidence: Evidence, setting: str) -> Sample:
    """Largest own sigma over (2k/n) ln(T+1) (B.7.1, C.10.1)."""
    run = evidence.run(setting)
    steps, n = run.experiment.train.steps, run.experiment.samples.train
    bound = 2 * run.data.k / n * math.log(steps + 1)
    return evidence.sample(
        setting, evidence.probe(setting, "decomposition")["sigma_own_max"] / bound
    )


def lambda_over_log_k(evidence: Evidence, setting: str) -> Sample:
    """Mean own lambda over ln k (Thm 4.7.2: Omega(1))."""
    level = evidence.probe(setting, "weight-error")["lambda"]
    return evidence.sample(setting, level / math.log(evidence.run(setting).data.k))


def active_at_one(evidence: Evidence, setting: str) -> Sample:
    """Share of own (point, neuron) pairs that are active after one step (Lemmas B.1, C.5)."""
    trace = evidence.run(setting).trace
    return evidence.sample(setting, trace.columns["active_own"][:, trace.steps.index(1)])


def noise_over_signal(evidence: Evidence, setting: str) -> Sample:
    """(n/k) sigma_own / lambda_own (B.7.1: Theta(1))."""
    probe, run = evidence.probe(setting, "decomposition"), evidence.run(setting)
    scale = run.experiment.samples.train / run.data.k
    return evidence.sample(setting, scale * probe["sigma_own"] / probe["lambda_own"])


def off_over_on(evidence: Evidence, setting: str) -> Sample:
    """u = -lambda_off / lambda_on."""
    return evidence.sample(setting, off_ratio(evidence, setting))


def margin_by_sigma(evidence: Evidence, setting: str) -> Sample:
    """Share of (point, own neuron) pairs with q_i within a factor 2 of (n/k) sigma_{r,i} (B.20)."""
    q, sigma, own = _sigma_pairs(evidence, setting)
    inside = (q >= sigma / 2) & (q <= 2 * sigma)
    return evidence.sample(setting, _share(inside, own))


def slope_by_sigma(evidence: Evidence, setting: str) -> Sample:
    """Share of pairs with e^{-2 n sigma/k}/3 <= |l'_i| <= 2 e^{-n sigma/(2k)} (B.21, corrected)."""
    q, sigma, own = _sigma_pairs(evidence, setting)
    slope = torch.sigmoid(-q)
    inside = (slope >= torch.exp(-2 * sigma) / 3) & (slope <= 2 * torch.exp(-sigma / 2))
    return evidence.sample(setting, _share(inside, own))


def slope_by_sigma_multi(evidence: Evidence, setting: str) -> Sample:
    """Share of pairs with e^{-2 n sigma/k}/2 <= |l'_i| <= 2k e^{-n sigma/(2k)} (C.21)."""
    _, sigma, own = _sigma_pairs(evidence, setting)
    slope = evidence.probe(setting, "margins")["slope"].unsqueeze(1)
    k = evidence.run(setting).data.k
    inside = (slope >= torch.exp(-2 * sigma) / 2) & (slope <= 2 * k * torch.exp(-sigma / 2))
    return evidence.sample(setting, _share(inside, own))


def ratio_by_gap_multi(evidence: Evidence, setting: str) -> Sample:
    """Share of pairs within C.18's bounds, with its e^epsilon taken as max_s f_s off class."""
    run, probe = evidence.run(setting), evidence.probe(setting, "margins")
    outputs = run.model.outputs(run.train_batch.x)
    own = one_hot(run.train_batch.cluster, run.data.k).bool()
    slack = outputs.masked_fill(own, 0).amax((1, 2)).reshape(-1, 1, 1)
    q, log = probe["q"], probe["slope"].log()
    gap, ratio = q.unsqueeze(2) - q.unsqueeze(1), log.unsqueeze(1) - log.unsqueeze(2)
    k = run.data.k
    low = torch.log((gap.exp() + k - 1) / k) - slack
    good = (ratio >= low - 1e-9) & (ratio <= gap + slack + 1e-9) | (gap < 0)
    return evidence.sample(setting, good.double().mean((1, 2)))


def margin_step(evidence: Evidence, setting: str, following: str) -> Sample:
    """Largest error of eq (17) with the factor eta/(nm), relative to the step of q-hat."""
    step, right = _margin_step(evidence, setting, following)
    return evidence.sample(setting, (step - right).abs().amax(1) / step.abs().amax(1))


def margin_step_printed(evidence: Evidence, setting: str, following: str) -> Sample:
    """Mean ratio of the step of q-hat to eq (17) with the printed factor eta/(2n), over 2/m."""
    step, right = _margin_step(evidence, setting, following)
    m = evidence.run(setting).experiment.net.m
    printed = right * m / 2
    return evidence.sample(setting, (step / printed).mean(1) / (2 / m))


def _index(evidence: Evidence, setting: str) -> Tensor:
    data = evidence.run(setting).data
    own = len(data.plus)
    ideal = math.sqrt((1 + (own - 1) * data.cosine) / own)
    return evidence.probe(setting, "cosines")["on"] / ideal


def _lambda_slack(evidence: Evidence, setting: str, slack: Slack) -> Sample:
    run, probe = evidence.run(setting), evidence.probe(setting, "decomposition")
    lam = probe["lambda"][:, own_neurons(run).T]
    steps, eta = run.experiment.train.steps, run.experiment.train.eta
    return evidence.sample(setting, slack(lam, math.log(steps * eta) / 4, 4 * math.log(steps + 1)))


def off_ratio(evidence: Evidence, setting: str) -> Tensor:
    probe = evidence.probe(setting, "decomposition")
    return -probe["lambda_off"] / probe["lambda_own"]


def _sigma_pairs(evidence: Evidence, setting: str) -> tuple[Tensor, Tensor, Tensor]:
    """q [R 1 n], (n/k) sigma [R M n] and which pairs are own."""
    run, probe = evidence.run(setting), evidence.probe(setting, "decomposition")
    scale = run.experiment.samples.train / run.data.k
    return (
        evidence.probe(setting, "margins")["q"].unsqueeze(1),
        scale * probe["sigma"],
        probe["own_sigma"],
    )


def _share(inside: Tensor, own: Tensor) -> Tensor:
    return (inside & own).double().sum((1, 2)) / own.double().sum((1, 2))


def _margin_step(evidence: Evidence, setting: str, following: str) -> tuple[Tensor, Tensor]:
    """q-hat(t+1) - q-hat(t), and eta/(nm) (sum_{own cluster} |l'_p| |mu|^2 + |l'_i| |xi_i|^2)."""
    before, after = evidence.run(setting), evidence.run(following)
    step = approximate_margins(after) - approximate_margins(before)
    slope = evidence.probe(setting, "margins")["slope"]
    members = one_hot(before.train_batch.cluster, before.data.k).to(slope)
    totals = (slope.unsqueeze(1) @ members)[:, 0]
    noise = before.data.noise(before.train_batch, before.experiment.seeds).square().sum(-1)
    shared = totals.gather(1, before.train_batch.cluster) * before.data.unit**2
    n, m = before.experiment.samples.train, before.experiment.net.m
    return step, before.experiment.train.eta / (n * m) * (shared + slope * noise)
