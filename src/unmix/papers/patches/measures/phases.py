"""When the phases begin, and how their times and ends scale."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from unmix.claims import Sample
from unmix.experiment import Run
from unmix.papers.base import Evidence


def time_of(evidence: Evidence, phase: str, setting: str) -> Sample:
    """Step of a phase ("takeoff"), mean over classes; no number where a class never met it."""
    return evidence.sample(setting, evidence.probe(setting, "patch-phases")[phase])


def crossed(evidence: Evidence, setting: str) -> Sample:
    """Share of classes in which A overtook B."""
    times = evidence.probe(setting, "patch-phases")["crossings"]
    return evidence.sample(setting, (~times.isnan()).double().mean(1))


def ends_robust(evidence: Evidence, setting: str) -> Sample:
    """Share of classes with max_r A > max_r B at the end."""
    return evidence.sample(setting, _won(evidence, setting).double().mean(1))


def in_eta(evidence: Evidence, phase: str, *settings: str) -> Sample:
    """Slope of log(time of a phase) in log(eta)."""
    etas = [evidence.run(s).experiment.train.eta for s in settings]
    return _slope(evidence, etas, settings, lambda s: _time(evidence, s, phase))


def in_step(evidence: Evidence, phase: str, *settings: str) -> Sample:
    """Slope of log(time of a phase) in log(eta~)."""
    steps = [effective(evidence, s) for s in settings]
    return _slope(evidence, steps, settings, lambda s: _time(evidence, s, phase))


def in_alpha(evidence: Evidence, phase: str, *settings: str) -> Sample:
    """Slope of log(time of a phase) in log(alpha)."""
    alphas = [evidence.run(s).data.alpha[0] for s in settings]
    return _slope(evidence, alphas, settings, lambda s: _time(evidence, s, phase))


def learning_in_step(evidence: Evidence, what: str, *settings: str) -> Sample:
    """Slope in log(eta~) of log(max_r B), or of log(sum_s B_s^q) for what = "power"."""
    name = "B_power" if what == "power" else "B_max"
    steps = [effective(evidence, s) for s in settings]
    return _slope(
        evidence, steps, settings, lambda s: evidence.probe(s, "patch-weights")[name].double()
    )


def flip_radius(evidence: Evidence, *settings: str) -> Sample:
    """eps/beta at which the share of classes with A > B passes 1/2, linear between rungs."""
    eps = [evidence.run(s).experiment.train.attack.eps for s in settings]
    beta = evidence.run(settings[0]).data.beta[0]
    shares = torch.stack([_won(evidence, s).double().mean(1) for s in settings], 1)
    return evidence.sample(settings[-1], [_passed(eps, row.tolist()) / beta for row in shares])


def effective(evidence: Evidence, setting: str) -> float:
    """eta~ as one point sees it."""
    e = evidence.run(setting).experiment
    return float(e.train.attack.scale(e.samples.train))


def paths(run: Run) -> tuple[Float[Tensor, "R k T"], Float[Tensor, "R k T"]]:
    """max_r A and max_r B of each class, as recorded."""
    columns, classes = run.trace.columns, range(run.data.k)
    a, b = (torch.stack([columns[f"{n}{i + 1}"] for i in classes], 1).double() for n in "AB")
    return a, b


def _won(evidence: Evidence, setting: str) -> Tensor:
    """[R k]: A > B at the end."""
    a, b = paths(evidence.run(setting))
    return (a > b)[..., -1]


def _passed(x: list[float], share: list[float]) -> float:
    """Where a share passes 1/2 for the first time; NaN if it never does."""
    if share[0] >= 0.5:
        return x[0]
    for i in range(1, len(x)):
        if share[i] >= 0.5:
            return x[i - 1] + (x[i] - x[i - 1]) * (0.5 - share[i - 1]) / (share[i] - share[i - 1])
    return float("nan")


def _time(evidence: Evidence, setting: str, phase: str) -> Tensor:
    return evidence.probe(setting, "patch-phases")[phase]


def _slope(
    evidence: Evidence,
    sizes: list[float],
    settings: tuple[str, ...],
    value: Callable[[str], Tensor],
) -> Sample:
    """Least squares in logarithms, one slope a replica."""
    x = torch.tensor(sizes, dtype=torch.float64).log()
    y = torch.stack([value(s) for s in settings], 1).double().log()
    x = x - x.mean()
    slopes = (y * x).sum(1) / x.square().sum()
    return evidence.sample(settings[0], slopes)
