"""Accuracy and robustness: what attacks leave of a run."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from unmix.claims import Sample
from unmix.papers.base import Evidence

FRESH = 1000


def clean_accuracy(evidence: Evidence, setting: str) -> Sample:
    """Binary accuracy on fresh points."""
    run = evidence.run(setting)
    return evidence.sample(setting, run.model.accuracy(run.fresh(FRESH)))


def radius(evidence: Evidence, setting: str) -> Sample:
    """Mean radius found by the strongest attack, over alpha |mu|."""
    found = evidence.attacked(setting)
    alpha = evidence.run(setting).data.alpha
    return evidence.sample(setting, found.mean_radius() / alpha, upper(found.unverified))


def radius_over_law(evidence: Evidence, setting: str) -> Sample:
    """Radius over sqrt(d/k): Theta(1), not o(1)."""
    k = evidence.run(setting).data.k
    sample = radius(evidence, setting)
    return Sample([v * math.sqrt(k) for v in sample.values], sample.failed_premises, sample.note)


def worst_radius(evidence: Evidence, setting: str) -> Sample:
    """Smallest radius over the points, over |mu|."""
    found = evidence.attacked(setting)
    return evidence.sample(setting, found.smallest.amin(1) / found.unit, upper(found.unverified))


def certified_within(evidence: Evidence, setting: str, share: float) -> Sample:
    """Share of points that no perturbation within share * |mu| can change: a proof a point."""
    found = evidence.certified(setting)
    kept = (found.lower > share * found.unit).double().mean(1)
    return evidence.sample(setting, kept, f"certified by {found.method}: lower bounds")


def certified_at_tenth(evidence: Evidence, setting: str) -> Sample:
    """Certified accuracy at sqrt(d)/10, the constant in the proof of Thm 4.7."""
    return certified_within(evidence, setting, 0.1)


def certified_at_third(evidence: Evidence, setting: str) -> Sample:
    """Certified accuracy at sqrt(d)/3 (Thm D.3)."""
    return certified_within(evidence, setting, 1 / 3)


def paper_attack(evidence: Evidence, setting: str) -> Sample:
    """Accuracy under -y 2(1+c)/k U, the perturbation in the proof of Thm 4.5 (times the label)."""
    return _accuracy_under(evidence, setting, 2)


def paper_attack_multi(evidence: Evidence, setting: str) -> Sample:
    """Accuracy under -y 3(1+c)/k U, the perturbation in the proof of Thm D.4 (times the label)."""
    return _accuracy_under(evidence, setting, 3)


def average_over_union(evidence: Evidence, setting: str) -> Sample:
    """Radius along the average direction over the smallest radius found (1: it is the best)."""
    found = evidence.attacked(setting)
    return evidence.sample(setting, found.mean_radius("average-direction") / found.mean_radius())


def clean_start_gap(evidence: Evidence, setting: str) -> Sample:
    """Robust accuracy that PGD from the clean point adds to the union's, at 1.1 sqrt(d/k)."""
    found, k = evidence.attacked(setting), evidence.run(setting).data.k
    level = 1.1 * found.unit / math.sqrt(k)
    kept = (found.control["pgd-clean-start"] > level).double().mean(1)
    return evidence.sample(setting, kept - (found.smallest > level).double().mean(1))


def random_is_harmless(evidence: Evidence, setting: str) -> Sample:
    """Accuracy under random directions of length |mu|."""
    found = evidence.attacked(setting)
    return evidence.sample(setting, (found.control["random"] > found.unit).double().mean(1))


def curve_gap(evidence: Evidence, coarse: str, fine: str) -> Sample:
    """Smallest lead of the fine-label net's robust accuracy over all radii (Fig 3 left)."""
    lead = _curves(evidence, fine) - _curves(evidence, coarse)
    return evidence.sample(fine, lead.amin(1))


def curve_area(evidence: Evidence, coarse: str, fine: str) -> Sample:
    """Mean lead over the radii."""
    return evidence.sample(fine, (_curves(evidence, fine) - _curves(evidence, coarse)).mean(1))


def fine_over_coarse(evidence: Evidence, coarse: str, fine: str) -> Sample:
    """Ratio of mean radii, over sqrt(k/2): 1 is the best possible gain."""
    k = evidence.run(fine).data.k
    ratio = evidence.attacked(fine).mean_radius() / evidence.attacked(coarse).mean_radius()
    return evidence.sample(fine, ratio / math.sqrt(k / 2))


def upper(unverified: int) -> str:
    """What to say about radii: they are upper bounds, and how many claims of an attack failed."""
    note = "radii are the strongest attack's: upper bounds"
    return f"{note}; perturbations that did not hold: {unverified}" if unverified else note


def _accuracy_under(evidence: Evidence, setting: str, factor: float) -> Sample:
    run = evidence.run(setting)
    model, batch, data = run.model, run.fresh(FRESH), run.data
    average = torch.einsum("k,rkd->rd", data.signs.to(batch.x), run.centres)
    step = factor * (1 + data.balance) / data.k * average
    moved = batch.x - batch.y.unsqueeze(-1) * step.unsqueeze(1)
    return evidence.sample(setting, (model.predict(moved) == batch.y).double().mean(1))


def _curves(evidence: Evidence, setting: str) -> Tensor:
    return evidence.attacked(setting).robust_accuracy()
