"""Robust accuracies and radii, beside the oracle's: one value a replica.

The oracle is the pure rule of section 3, h(x) = sum_j w*_j <M_j, x> 1[|<M_j, x>| >= c] with
c = 1/(2 sqrt k). A perturbation shorter than c switches none of its indicators, so without noise
its radius at a point is exactly |<w*, z>| / |w*_supp(z)| up to c (l_inf: over the l1 norm).
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from unmix.attacks.coded import CodeSuite, cleanly_trained
from unmix.claims import Sample
from unmix.data.sparse_code import SparseCode
from unmix.errors import DataError
from unmix.experiment import Run
from unmix.papers.base import Evidence
from unmix.papers.purification.settings import TAU, TAU_INF
from unmix.perturbations.base import Perturbation, dense
from unmix.perturbations.fixed import Noise, Universal
from unmix.perturbations.gradient import FGM
from unmix.probes.coded import Coded


def clean_accuracy(evidence: Evidence, setting: str) -> Sample:
    """Accuracy on 2000 held-out points (of the weights that the setting attacks)."""
    return evidence.sample(setting, _accuracy(weights(evidence, setting)))


def clean_error(evidence: Evidence, setting: str) -> Sample:
    """1 - clean accuracy."""
    return evidence.sample(setting, 1 - _accuracy(weights(evidence, setting)))


def universal(evidence: Evidence, setting: str) -> Sample:
    """Accuracy under -tau y M w*/|M w*| at the training radius, on 2000 held-out points."""
    return evidence.sample(setting, _after(weights(evidence, setting), Universal()))


def random_over_clean(evidence: Evidence, setting: str) -> Sample:
    """Accuracy after random perturbations of the same length, over the clean one."""
    coded = weights(evidence, setting)
    return evidence.sample(setting, _after(coded, Noise()) / _accuracy(coded))


def over_oracle(evidence: Evidence, setting: str) -> Sample:
    """Robust accuracy of the union at the training radius, over the oracle's on the points."""
    run, tau = evidence.run(setting), tau_of(evidence.run(setting))
    best = (oracle_radii(run, _points(evidence, setting)) > tau).double().mean(1)
    return evidence.sample(setting, _at(evidence, setting, tau) / best)


def fgm_over_oracle(evidence: Evidence, setting: str) -> Sample:
    """The same under FGM, the attack of the training, alone."""
    run, tau = evidence.run(setting), tau_of(evidence.run(setting))
    best = (oracle_radii(run, _points(evidence, setting)) > tau).double().mean(1)
    return evidence.sample(setting, _at(evidence, setting, tau, "fgm") / best)


def fgm_gap(evidence: Evidence, setting: str) -> Sample:
    """Robust accuracy that FGM reports beyond that of the union, at the training radius."""
    tau = tau_of(evidence.run(setting))
    gap = _at(evidence, setting, tau, "fgm") - _at(evidence, setting, tau)
    return evidence.sample(setting, gap)


def gain(evidence: Evidence, setting: str, clean: str) -> Sample:
    """Median radius after adversarial training over that before it."""
    return evidence.sample(
        setting, median_radius(evidence, setting) / median_radius(evidence, clean)
    )


def over_clean(evidence: Evidence, setting: str, clean: str) -> Sample:
    """Robust accuracy at the training radius, less that of the cleanly trained net."""
    tau = tau_of(evidence.run(setting))
    return evidence.sample(setting, _at(evidence, setting, tau) - _at(evidence, clean, tau))


def like(evidence: Evidence, setting: str, other: str) -> Sample:
    """Robust accuracy at the training radius over that of another training."""
    tau = tau_of(evidence.run(setting))
    return evidence.sample(setting, _at(evidence, setting, tau) / _at(evidence, other, tau))


def transfer(evidence: Evidence, setting: str) -> Sample:
    """Accuracy under the FGM perturbations of the next seed's net, less that under the own ones.

    Seeds share w* and the dictionary and nothing else.
    """
    coded, tau = weights(evidence, setting), tau_of(evidence.run(setting))
    rolled = coded.w.roll(-1, 0)
    others = replace(coded, w=rolled, params=coded.params | {"w": rolled})
    x, y = coded.points()
    right = [
        (y * coded.learner.outputs(dense(x) + FGM().perturb(net.scene, x, y, tau)) > 0)
        for net in (others, coded)
    ]
    return evidence.sample(setting, right[0].double().mean(1) - right[1].double().mean(1))


def median_radius(evidence: Evidence, setting: str) -> Tensor:
    """Of the union over the points, misclassified ones included as 0."""
    return evidence.attacked(setting).smallest.median(1).values


def weights(evidence: Evidence, setting: str) -> Coded:
    """The weights that a setting attacks."""
    return Coded.of(attacked_run(evidence, setting))


def attacked_run(evidence: Evidence, setting: str) -> Run:
    """The run that a setting attacks, perhaps as it was before adversarial training."""
    run = evidence.run(setting)
    return cleanly_trained(run) if attacks_before(evidence, setting) else run


def attacks_before(evidence: Evidence, setting: str) -> bool:
    """Does a setting speak of the weights before adversarial training?"""
    suite = getattr(evidence.settings[setting].attack, "suite", None)
    return isinstance(suite, CodeSuite) and suite.weights == "before"


def tau_of(run: Run) -> float:
    """The radius at which a setting is judged: that of its norm."""
    attack = getattr(run.experiment.train, "attack", None)
    return TAU_INF if getattr(attack, "norm", "l2") == "linf" else TAU


def oracle_radii(run: Run, points: int) -> Tensor:
    """Exact radii of the pure rule on the first held-out points, up to 1/(2 sqrt k).

    Where features overlap the rule knows the support S and reads z_S = M_S^+ x there, so that its
    radius is |<w*, z>| / |(M_S^+)^T w*_S|.
    """
    data: SparseCode = run.data
    z, _ = data.codes(run.experiment.seeds, points, "test")
    w = data.label_vector(run.experiment.seeds).unsqueeze(1)
    codes = z.dense()
    held = (codes != 0) * w
    if not data.orthonormal:
        held = _read_out(data.dictionary(run.experiment.seeds), codes != 0, held)
    linf = tau_of(run) == TAU_INF
    size = held.abs().sum(-1) if linf else held.norm(dim=-1)
    return (codes * w).sum(-1).abs() / size.clamp_min(1e-12)


def _read_out(m: Tensor, on: Tensor, held: Tensor) -> Tensor:
    """(M_S^+)^T w*_S = M_S (M_S^T M_S)^-1 w*_S for each point [R n d], S = on [R n D]."""
    gram = m.transpose(1, 2) @ m
    rows = []
    for columns, overlaps, supports, weights in zip(m, gram, on, held, strict=True):
        # Beyond S the matrix is the identity and the weight 0.
        pairs = supports.unsqueeze(2) & supports.unsqueeze(1)
        inside = torch.where(pairs, overlaps, torch.eye(len(overlaps)).to(m))
        rows.append(torch.linalg.solve(inside, weights.unsqueeze(-1))[..., 0] @ columns.T)
    return torch.stack(rows)


def linear_radii(run: Run, points: int) -> Tensor:
    """Exact l2 radii of the linear rule <M w*, x>, which is <w*, z> where M is orthonormal."""
    if not run.data.orthonormal:
        came = f"data.basis={run.data.basis}"
        raise DataError(f"the linear rule reads <w*, z> of orthonormal features only; got {came}")
    z, _ = run.data.codes(run.experiment.seeds, points, "test")
    w = run.data.label_vector(run.experiment.seeds)
    score = (z.dense() @ w.unsqueeze(-1))[..., 0]
    return score.abs() / w.norm(dim=1, keepdim=True)


def _accuracy(coded: Coded) -> Tensor:
    x, y = coded.points()
    return (y * coded.learner.outputs(x) > 0).double().mean(1)


def _after(coded: Coded, rule: Perturbation) -> Tensor:
    """Accuracy after a perturbation of the training radius."""
    x, y = coded.points()
    moved = dense(x) + rule.perturb(coded.scene, x, y, TAU)
    return (y * coded.learner.outputs(moved) > 0).double().mean(1)


def _points(evidence: Evidence, setting: str) -> int:
    return int(evidence.attacked(setting).smallest.shape[1])


def _at(evidence: Evidence, setting: str, tau: float, name: str | None = None) -> Tensor:
    """Robust accuracy of the union, or of one attack, at one radius."""
    found = evidence.attacked(setting)
    radius = found.smallest if name is None else (found.by_attack | found.control)[name]
    return (radius > tau).double().mean(1)
