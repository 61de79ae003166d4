"""Section 4 and appendix D: what turns neurons while outputs are small.

Theorem 2 is a statement about the field x^(p)(u) alone, so it is measured on directions u drawn on
shells around a class mean or a centre; Lemmas 1 and 4 on the flow of the simplified dataset.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import normalize

from unmix.claims import Sample
from unmix.data.base import Batch
from unmix.experiment import Run
from unmix.papers.base import Evidence
from unmix.probes.alignment_field import across, field
from unmix.streams import normals
from unmix.train.losses import pull

SHELL = 0.01
DIRECTIONS = 400
# Deviations: inside the span of the positive centres, or anywhere in R^D.
Where = Literal["span", "anywhere"]


def error_over_bound(evidence: Evidence, setting: str) -> Sample:
    """Lemma 1's error over 4 eps sqrt(h) M^2 K p."""
    run = evidence.run(setting)
    net = run.experiment.net
    bound = 4 * net.sigma * math.sqrt(net.h) * _largest(run) ** 2 * run.data.k * net.p
    return evidence.sample(setting, evidence.probe(setting, "alignment-field")["error"] / bound)


def error_over_outputs(evidence: Evidence, setting: str) -> Sample:
    """Lemma 1's error over 2 K p max |f|."""
    run, probe = evidence.run(setting), evidence.probe(setting, "alignment-field")
    bound = 2 * run.data.k * run.experiment.net.p * probe["output"]
    return evidence.sample(setting, probe["error"] / bound)


def error_over_speed(evidence: Evidence, setting: str) -> Sample:
    """Lemma 1's error over the speed that it is about."""
    probe = evidence.probe(setting, "alignment-field")
    return evidence.sample(setting, probe["error"] / probe["speed"])


def scaled_error_over_speed(evidence: Evidence, setting: str) -> Sample:
    """The same with the target |l'(0)| x^(p): 1/2 for the logistic loss."""
    probe = evidence.probe(setting, "alignment-field")
    return evidence.sample(setting, probe["error_scaled"] / probe["speed"])


def error_in_eps(evidence: Evidence, *settings: str) -> Sample:
    """Exponent of Lemma 1's error in eps."""
    sizes = torch.tensor([evidence.run(s).experiment.net.sigma for s in settings]).double().log()
    errors = torch.stack([evidence.probe(s, "alignment-field")["error"].log() for s in settings])
    x = sizes - sizes.mean()
    slope = (x.unsqueeze(1) * (errors - errors.mean(0))).sum(0) / x.square().sum()
    return evidence.sample(settings[0], slope)


def weights_over_bound(evidence: Evidence, setting: str) -> Sample:
    """max |w|^2 over 2 eps M^2/sqrt(h) (Lemma 4)."""
    run = evidence.run(setting)
    net = run.experiment.net
    bound = 2 * net.sigma * _largest(run) ** 2 / math.sqrt(net.h)
    size = evidence.probe(setting, "alignment-field")["weight"].square()
    return evidence.sample(setting, size / bound)


def outputs_over_bound(evidence: Evidence, setting: str) -> Sample:
    """max |f| over 2 eps sqrt(h) M^2 (Lemma 4)."""
    run = evidence.run(setting)
    net = run.experiment.net
    bound = 2 * net.sigma * math.sqrt(net.h) * _largest(run) ** 2
    return evidence.sample(setting, evidence.probe(setting, "alignment-field")["output"] / bound)


def turned(evidence: Evidence, setting: str) -> Sample:
    """Smallest cos(u_j(0), u_j(T)) at Lemma 4's horizon."""
    return evidence.sample(setting, evidence.probe(setting, "alignment-field")["turned"])


def powers_minimum(evidence: Evidence, setting: str) -> Sample:
    """Largest distance of the minimiser of g_p(q) = sum z^q sum z^(p+1-q) from (p+1)/2 (Lemma 5).

    Also counts second differences below 0: g_p is convex.
    """
    run = evidence.run(setting)
    q, p = torch.linspace(-1, 5, 601, dtype=torch.float64), run.experiment.net.p
    z = normals(run.experiment.seeds, "lemma5", (20, 6), torch.float64).exp()
    powers = z.unsqueeze(-1) ** q
    g = powers.sum(2) * (z.unsqueeze(-1) ** (p + 1 - q)).sum(2)
    away = (q[g.argmin(-1)] - (p + 1) / 2).abs().amax(1)
    bent = g[..., 2:] - 2 * g[..., 1:-1] + g[..., :-2]
    concave = (bent < -1e-9 * g[..., 1:-1]).any(-1).any(-1)
    return evidence.sample(setting, away + concave)


def slope_gap(evidence: Evidence, setting: str) -> Sample:
    """Largest |-dl/df - y| - 2 |f| over |f| <= 1 for the run's loss (Lemma 6)."""
    run = evidence.run(setting)
    f = torch.linspace(-1, 1, 2001, dtype=torch.float64)
    gap = ((pull(f, run.experiment.train.loss) - 1).abs() - 2 * f.abs()).amax()
    return evidence.sample(setting, [float(gap)] * run.replicas)


def to_mean(evidence: Evidence, where: Where, setting: str) -> Sample:
    """Share of directions on a shell around the positive mean that turn towards it (eq 7)."""
    rate, *_ = _around_mean(evidence.run(setting), where)
    return evidence.sample(setting, (rate > 0).double().mean(1))


def largest_rate(evidence: Evidence, where: Where, setting: str) -> Sample:
    """Largest |d/dt cos| on that shell: 0 for p = 2 in the span."""
    rate, *_ = _around_mean(evidence.run(setting), where)
    return evidence.sample(setting, rate.abs().amax(1))


def sign_law(evidence: Evidence, setting: str) -> Sample:
    """Share of directions whose rate has the sign of eta^2 - (p-2) beta^2."""
    run, agreed = evidence.run(setting), []
    for where in ("span", "anywhere"):
        rate, inside, outside = _around_mean(run, where)
        law = outside.square() - (run.experiment.net.p - 2) * inside.square()
        clear = law.abs() > 0.1 * (outside.square() + inside.square())
        agreed.append(((rate.sign() == law.sign()) | ~clear).double().mean(1))
    return evidence.sample(setting, torch.stack(agreed).amin(0))


def rate_law(evidence: Evidence, setting: str) -> Sample:
    """Mean rate over p K1^(1-p/2) (eta^2 - (p-2) beta^2), anywhere in R^D."""
    run = evidence.run(setting)
    rate, inside, outside = _around_mean(run, "anywhere")
    p, own = run.experiment.net.p, len(run.data.plus)
    law = p * own ** (1 - p / 2) * (outside.square() - (p - 2) * inside.square())
    return evidence.sample(setting, rate.mean(1) / law.mean(1))


def to_subclass(evidence: Evidence, where: Where, setting: str) -> Sample:
    """Share of directions on a shell around a positive centre that turn towards it (eq 8)."""
    run = evidence.run(setting)
    _, basis = _centres(run)
    rates = []
    for k in range(basis.shape[1]):
        u = _shell(run, basis[:, k], basis, where, f"shell.{k}")
        rates.append(_rate(run, u, basis[:, k]))
    return evidence.sample(setting, (torch.cat(rates, 1) > 0).double().mean(1))


def in_plane(p: float) -> tuple[Tensor, Tensor]:
    """Angles from mu_1 of w, between mu_1 and mu_2, and of x^(p)(w)."""
    angle = torch.linspace(0.05, math.pi / 2 - 0.05, 60, dtype=torch.float64)
    u = torch.stack([angle.cos(), angle.sin()], 1)[None]
    mu, y = torch.eye(2, dtype=torch.float64)[None], torch.ones(1, 2, dtype=torch.float64)
    pulled = field(u, Batch(mu, y, torch.arange(2)[None]), y, p)[0]
    return angle, torch.atan2(pulled[:, 1], pulled[:, 0])


def off_plane(evidence: Evidence, setting: str) -> Sample:
    """Largest difference of that angle and atan(tan^(p-1) th)."""
    run = evidence.run(setting)
    angle, pulled = in_plane(run.experiment.net.p)
    off = (pulled - torch.atan(angle.tan() ** (run.experiment.net.p - 1))).abs().max()
    return evidence.sample(setting, [float(off)] * run.replicas)


def _around_mean(run: Run, where: Where) -> tuple[Tensor, Tensor, Tensor]:
    """d/dt cos(u, mean), and lengths of the deviation inside and outside the positive span."""
    _, basis = _centres(run)
    mean = normalize(basis.sum(1), dim=-1)
    u = _shell(run, mean, basis, where, "shell")
    coordinates = u @ basis.transpose(1, 2)
    along = (u * mean.unsqueeze(1)).sum(-1)
    inside = (coordinates.square().sum(-1) - along.square()).clamp_min(0).sqrt()
    outside = (1 - coordinates.square().sum(-1)).clamp_min(0).sqrt()
    return _rate(run, u, mean), inside, outside


def _shell(run: Run, around: Tensor, basis: Tensor, where: Where, purpose: str) -> Tensor:
    """Unit u with cos(u, around) = 1 - SHELL, and a random rest."""
    draw = normals(run.experiment.seeds, purpose, (DIRECTIONS, run.data.d), torch.float64)
    if where == "span":
        draw = draw @ basis.transpose(1, 2) @ basis
    rest = draw - (draw * around.unsqueeze(1)).sum(-1, keepdim=True) * around.unsqueeze(1)
    cosine = 1 - SHELL
    return cosine * around.unsqueeze(1) + math.sqrt(1 - cosine**2) * normalize(rest, dim=-1)


def _rate(run: Run, u: Tensor, towards: Tensor) -> Tensor:
    """<P_u x^(p)(u), m>: how fast a positive neuron's cosine with m grows."""
    data, mu = run.data, _centres(run)[0]
    y = data.signs.expand(len(mu), -1)
    batch = Batch(mu, y, torch.arange(data.k).expand(len(mu), -1))
    moved = across(u, field(u, batch, y, run.experiment.net.p))
    return (moved * towards.unsqueeze(1)).sum(-1)


def _centres(run: Run) -> tuple[Tensor, Tensor]:
    """All unit centres, and the positive ones."""
    mu = run.data.centres(run.experiment.seeds) / run.data.unit
    return mu, mu[:, list(run.data.plus)]


def _largest(run: Run) -> float:
    """M = max_j |w_j0|, over replicas."""
    return float(run.initial["w"].norm(dim=-1).max()) / run.experiment.net.sigma
