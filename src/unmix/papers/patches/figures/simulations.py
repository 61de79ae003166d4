"""Fig 3: weight-feature correlations and learning curves of standard and adversarial training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes

from unmix import style
from unmix.papers.base import Drawing, Evidence
from unmix.papers.patches.measures.snapshots import learned_at, robust_at
from unmix.papers.patches.settings import TIMES

NAMES = {"A": ("robust, max⟨w, u⟩", style.BLUE), "B": ("non-robust, max⟨w, v⟩", style.RED)}
CURVES = {
    "test": ("clean", style.INK, "-"),
    "ce-pgd": ("PGD, cross-entropy", style.PURPLE, "-"),
    "fy-pgd": ("PGD, $-F_y$", style.ORANGE, "-"),
    "own-features": ("own features off", style.GREEN, "-"),
    "union": ("union of all", style.RED, "--"),
}
Table = dict[str, list[Any]]


def simulation(evidence: Evidence) -> Drawing:
    """With the literal hyper-parameters."""
    return _panels(
        evidence,
        "adv",
        "The paper's simulation as literally set up (η̃ = 1000). Adversarial training stops B at "
        "0.05 and goes no further: no phase transition by T = 1000.",
        "Under the literal attack step neither feature is learned.",
    )


def nearest(evidence: Evidence) -> Drawing:
    """With eta~ of the batch mean."""
    return _panels(
        evidence,
        "adv-mean",
        "The same with the attack's gradient taken of the batch mean (a point sees η̃/N = 10): of "
        "the readings tried, the nearest to the text. B stops, A takes off and overtakes; how "
        "robust that makes the net depends on who asks.",
        "Non-robust learning stops, robust learning takes over.",
    )


def _panels(evidence: Evidence, adversarial: str, caption: str, alt: str) -> Drawing:
    settings = {"standard": "std", "adversarial": adversarial}
    table: Table = {"training": [], "quantity": [], "step": [], "value": []}
    with style.canvas(7.4, 5.2) as canvas:
        panels = canvas.subplots(2, 2)
        for column, (label, setting) in enumerate(settings.items()):
            _correlations(panels[0][column], evidence, setting, table, label)
            _accuracies(panels[1][column], evidence, setting, table, label)
            panels[0][column].set(title=f"{label} training", ylim=(0, None))
        panels[0][0].set_ylabel("largest correlation")
        panels[1][0].set_ylabel("test accuracy")
        panels[0][0].legend(loc="center right")
        panels[1][0].legend(loc="center right", fontsize=7)
    return Drawing(canvas, table, caption + " Lines are means, bands the range over seeds.", alt)


def _correlations(axes: Axes, evidence: Evidence, setting: str, table: Table, label: str) -> None:
    run = evidence.run(setting)
    steps, classes = run.trace.steps, range(run.data.k)
    for name, (title, color) in NAMES.items():
        columns = [run.trace.columns[f"{name}{i + 1}"] for i in classes]
        values = torch.cat(columns).double().numpy()
        low, high, mean = values.min(0), values.max(0), values.mean(0)
        axes.fill_between(steps, low, high, color=color, alpha=0.15, linewidth=0)
        axes.plot(steps, mean, color=color, label=title)
        _note(table, label, name, steps, mean)


def _accuracies(axes: Axes, evidence: Evidence, setting: str, table: Table, label: str) -> None:
    for name, (title, color, dash) in CURVES.items():
        take = learned_at if name == "test" else robust_at
        values = np.stack([take(evidence, setting, t)[name].numpy() for t in TIMES], 1)
        axes.plot(TIMES, values.mean(0), color=color, linestyle=dash, label=title, marker=".")
        _note(table, label, title, TIMES, values.mean(0))
    axes.set(xlabel="iteration", ylim=(-0.03, 1.03))


def _note(
    table: Table, label: str, name: str, steps: Sequence[int], values: Sequence[float]
) -> None:
    table["training"] += [label] * len(steps)
    table["quantity"] += [name] * len(steps)
    table["step"] += list(steps)
    table["value"] += [float(v) for v in values]
