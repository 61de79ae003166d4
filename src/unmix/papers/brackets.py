"""Robust accuracy as a bracket: certified <= true <= attacked, drawn as a band."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from unmix.certify.base import EXACT, sandwich

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from unmix.papers.base import Evidence


@dataclass(frozen=True)
class Bracket:
    """Accuracies [R E] over radii [E], and the share of points whose radius is known exactly."""

    radii: np.ndarray
    certified: np.ndarray
    attacked: np.ndarray
    closed: float


def bracket(evidence: Evidence, setting: str) -> Bracket:
    """Of a setting that is attacked and certified; radii in units of |mu|.

    The upper end is the attack after polish: the certificate's witnesses join the union.
    """
    attacked, found = evidence.attacked(setting), evidence.certified(setting)
    points = min(attacked.smallest.shape[1], found.lower.shape[1])
    smallest, lower = attacked.smallest[:, :points], found.lower[:, :points]
    sandwich(lower, smallest, setting)
    best = torch.minimum(smallest, found.upper[:, :points])
    grid = torch.tensor(attacked.radii, dtype=torch.float64)
    held = [(r.unsqueeze(1) > grid[:, None]).double().mean(-1).numpy() for r in (lower, best)]
    closed = (found.status[:, :points] == EXACT).double().mean().item()
    return Bracket(np.array(attacked.radii) / attacked.unit, held[0], held[1], closed)


def draw_bracket(axes: Axes, found: Bracket, color: str, label: str) -> None:
    """Means over replicas: attacked (solid) and certified (dotted), the truth in between."""
    low, high = found.certified.mean(0), found.attacked.mean(0)
    axes.fill_between(found.radii, low, high, color=color, alpha=0.2, linewidth=0)
    axes.plot(found.radii, high, color=color, label=label)
    axes.plot(found.radii, low, color=color, linestyle=":", linewidth=1.4)
