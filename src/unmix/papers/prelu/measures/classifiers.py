"""F and F^(p): realisability, clean accuracy and robustness (section 3), by their formulas.

Both see x only through its coordinates along the K centres, where the noise is N(0, alpha^2/D I_K);
so probabilities are means over draws of these coordinates.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from unmix.claims import Sample
from unmix.data.clusters import Clusters
from unmix.nets.prelu_constructed import PReLUAveraging, PReLUSubclasses
from unmix.papers.base import Evidence
from unmix.papers.prelu import predict
from unmix.streams import normals, stream

DRAWS = 20_000
# Bisections take fewer.
FEWER = 4000
RHOS = (0.05, 0.1, 0.2, 0.3, 0.5)
DELTAS = (0.05, 0.1, 0.2, 0.4, 0.8)


def coordinates(
    data: Clusters, seeds: tuple[int, ...], draws: int = DRAWS
) -> tuple[Tensor, Tensor]:
    """x along the centres [R n k] and y [R n], as D(K, K1, D, alpha) has them."""
    cluster = torch.stack(
        [torch.from_numpy(stream(s, "theory.cluster").integers(data.k, size=draws)) for s in seeds]
    )
    noise = normals(seeds, "theory.noise", (draws, data.k), torch.float64)
    x = noise * (data.sigma / data.alpha / math.sqrt(data.d))
    return x.scatter_add(2, cluster.unsqueeze(-1), torch.ones_like(x[..., :1])), data.signs[cluster]


def value(x: Tensor, data: Clusters, p: float | None) -> Tensor:
    """F (p = None) or F^(p) in coordinates along the centres."""
    sides = [x[..., list(side)] for side in (data.plus, data.minus)]
    plus, minus = (s.sum(-1).relu() if p is None else (s.relu() ** p).sum(-1) for s in sides)
    return plus - minus


def realised(evidence: Evidence, setting: str) -> Sample:
    """Largest difference between the net, with random groups of neurons and lam, and its F."""
    run = evidence.run(setting)
    data, seeds, p = run.data, run.experiment.seeds, _p(evidence, setting)
    errors = []
    for seed in seeds:
        net = _scattered(data, seed, p)
        form = net.form(data, net.init(data, (seed,), torch.float64))
        x = normals((seed,), "theory.point", (200, data.d), torch.float64)
        inside = x @ (data.centres((seed,)) / data.unit).transpose(1, 2)
        wanted = value(inside, data, p)
        errors.append(float((form.decision(x) - wanted).abs().max() / wanted.abs().max()))
    return evidence.sample(setting, errors)


def clean_slack(evidence: Evidence, setting: str) -> Sample:
    """Clean accuracy less the bound of Prop 1."""
    data, x, y, p = _drawn(evidence, setting)
    right = (value(x, data, p) * y > 0).double().mean(1)
    bound = predict.clean_bound(data, p)
    return evidence.sample(setting, right - bound, f"bound {bound:.4g}")


def broken_slack(evidence: Evidence, setting: str) -> Sample:
    """Smallest distance, over rho, of F's accuracy under d_0 below the bound of Thm 1."""
    data, x, y, _ = _drawn(evidence, setting)
    slack = [predict.broken_bound(data, rho) - _under_average(data, x, y, rho) for rho in RHOS]
    return evidence.sample(setting, torch.stack(slack).amin(0))


def broken_over_law(evidence: Evidence, setting: str) -> Sample:
    """Largest difference, over rho, of that accuracy and Phi(-rho sqrt(D/K)/alpha)."""
    data, x, y, _ = _drawn(evidence, setting)
    off = [_under_average(data, x, y, rho) - predict.broken_share(data, rho) for rho in RHOS]
    return evidence.sample(setting, torch.stack(off).abs().amax(0))


def robust_slack(evidence: Evidence, setting: str) -> Sample:
    """Certified robust accuracy of F^(p) at (sqrt 2 - delta)/2 less the bound of Thm 1."""
    data, x, y, p = _drawn(evidence, setting)
    radius = predict.certified_radius(x, y, data, float(p or 1))
    slack = [
        (radius > (math.sqrt(2) - delta) / 2).double().mean(1) - predict.robust_bound(data, delta)
        for delta in DELTAS
    ]
    return evidence.sample(setting, torch.stack(slack).amin(0))


def kept_slack(evidence: Evidence, setting: str) -> Sample:
    """Exact robust accuracy of F at (1 - rho)/sqrt K less the bound of Thm 3."""
    data, x, y, _ = _drawn(evidence, setting)
    radius = predict.exact_radius(x, y, data)
    slack = [
        (radius > (1 - rho) / math.sqrt(data.k)).double().mean(1) - predict.kept_bound(data, rho)
        for rho in RHOS
    ]
    return evidence.sample(setting, torch.stack(slack).amin(0))


def lost_slack(evidence: Evidence, setting: str) -> Sample:
    """The corrected bound of Thm 3 less F^(p)'s accuracy half-way to every opposite centre."""
    return _lost(evidence, setting, union=True)


def lost_slack_printed(evidence: Evidence, setting: str) -> Sample:
    """The same with the printed bound, 4 for 4 K."""
    return _lost(evidence, setting, union=False)


def radii(evidence: Evidence, setting: str) -> Tensor:
    """Radii of the drawn points: exact for F, certified for F^(p), p >= 2; 0 if misclassified."""
    data, x, y, p = _drawn(evidence, setting)
    if p is None:
        return predict.exact_radius(x, y, data).clamp_min(0)
    return predict.certified_radius(x, y, data, p).clamp_min(0)


def critical(evidence: Evidence, setting: str) -> Sample:
    """Median radius: exact for F, between the certificate and half-way for F^(p)."""
    data, x, y, p = _drawn(evidence, setting)
    if p is None:
        return evidence.sample(setting, predict.exact_radius(x, y, data).median(1).values)
    x, y = x[:, :FEWER], y[:, :FEWER]
    low = predict.certified_radius(x, y, data, p).median(1).values
    high = halfway_radius(x, y, data, p).median(1).values
    note = f"certified {float(low.mean()):.4f}, attacked {float(high.mean()):.4f}"
    return evidence.sample(setting, (low + high) / 2, note)


def bracket(evidence: Evidence, setting: str) -> Sample:
    """Width of the median's bracket over its middle: certificate against attack."""
    data, x, y, p = _drawn(evidence, setting)
    x, y = x[:, :FEWER], y[:, :FEWER]
    low = predict.certified_radius(x, y, data, float(p or 1)).median(1).values
    high = halfway_radius(x, y, data, float(p or 1)).median(1).values
    return evidence.sample(setting, (high - low) / (high + low) * 2)


def halfway_radius(x: Tensor, y: Tensor, data: Clusters, p: float) -> Tensor:
    """Smallest length of t (mu_l - mu_k)/sqrt 2 that fools F^(p): k the largest own coordinate.

    Only these two coordinates move, so y F = rest + (x_k - s)_+^p - (x_l + s)_+^p at s = t/sqrt 2.
    It falls in t and so changes sign once, found by bisection for every opposite l together.
    """
    mine = y.unsqueeze(-1) == data.signs
    own = torch.where(mine, x, -torch.inf).amax(-1, keepdim=True)
    rest = (value(x, data, p) * y).unsqueeze(-1) - own.relu() ** p + x.relu() ** p
    low, high = torch.zeros_like(x), torch.full_like(x, 2.0)
    for _ in range(30):
        middle = (low + high) / 2
        step = middle * math.sqrt(0.5)
        right = rest + (own - step).relu() ** p > (x + step).relu() ** p
        low, high = torch.where(right, middle, low), torch.where(right, high, middle)
    return high.masked_fill(mine, torch.inf).amin(-1)


def _lost(evidence: Evidence, setting: str, union: bool) -> Sample:
    data, x, y, p = _drawn(evidence, setting)
    radius = halfway_radius(x[:, :FEWER], y[:, :FEWER], data, float(p or 1))
    slack = [
        predict.lost_bound(data, delta, union)
        - (radius > (math.sqrt(2) + delta) / 2).double().mean(1)
        for delta in DELTAS
    ]
    return evidence.sample(setting, torch.stack(slack).amin(0))


def _under_average(data: Clusters, x: Tensor, y: Tensor, rho: float) -> Tensor:
    """Accuracy of F at x - y (1 + rho) d_0/sqrt K; d_0 has the signs over sqrt K as coordinates."""
    moved = x - (1 + rho) / data.k * y.unsqueeze(-1) * data.signs
    return (value(moved, data, None) * y > 0).double().mean(1)


def _drawn(evidence: Evidence, setting: str) -> tuple[Clusters, Tensor, Tensor, float | None]:
    run = evidence.run(setting)
    return run.data, *coordinates(run.data, run.experiment.seeds), _p(evidence, setting)


def _p(evidence: Evidence, setting: str) -> float | None:
    """The exponent of F^(p); None for F."""
    net = evidence.run(setting).experiment.net
    return net.p if isinstance(net, PReLUSubclasses) else None


def _scattered(data: Clusters, seed: int, p: float | None) -> PReLUAveraging | PReLUSubclasses:
    """Disjoint random groups of one to three neurons among 4K, with random sizes lam."""
    draw = stream(seed, "theory.groups")
    h, groups = 4 * data.k, data.k if p else 2
    order, sizes = draw.permutation(h).tolist(), draw.integers(1, 4, groups).tolist()
    chosen = [tuple(order[sum(sizes[:g]) : sum(sizes[: g + 1])]) for g in range(groups)]
    lam = tuple(draw.uniform(0.2, 2.0, sum(sizes)).tolist())
    if p:
        return PReLUSubclasses(p=p, groups=tuple(chosen), lam=lam, h=h)
    return PReLUAveraging(plus=chosen[0], minus=chosen[1], lam=lam, h=h)
