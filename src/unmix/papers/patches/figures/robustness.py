"""Who is robust depends on what is allowed: threats at one radius, and the whole ball."""

from __future__ import annotations

from typing import Any

import numpy as np

from unmix import style
from unmix.papers.base import Drawing, Evidence
from unmix.papers.patches.measures.robust import certified
from unmix.papers.patches.settings import EPS

TRAININGS = {
    "std": "standard",
    "adv": "adversarial, literal",
    "adv-mean": "adversarial, η̃/N = 10",
    "adv-margin": "adversarial, margin",
}
CURVES = {
    "std-curve": ("standard", style.RED, "-"),
    "adv-mean-curve": ("adversarial, $-F_y$", style.BLUE, "-"),
    "adv-margin-curve": ("adversarial, margin", style.GREEN, "-"),
    "minimum-robust-curve": ("$w = γu$ (Prop 3.2)", style.SKY, "--"),
    "minimum-non-robust-curve": ("$w = γv$ (Prop 3.1)", style.ORANGE, "--"),
}


def threats(evidence: Evidence) -> Drawing:
    """Accuracy of each net under each attack of the battery, as a matrix."""
    found = {label: evidence.attacked(name) for name, label in TRAININGS.items()}
    attacks = list(next(iter(found.values())).names)
    rows = [
        [float(a.robust_accuracy(name)[:, 0].mean()) for name in attacks] for a in found.values()
    ]
    values = np.array(rows)
    with style.canvas(7.0, 3.2) as canvas:
        axes = canvas.subplots()
        style.cosine_matrix(axes, values)
        axes.set_xticklabels(attacks, rotation=35, ha="right")
        axes.set_yticklabels(list(found))
    table: dict[str, list[Any]] = {"training": list(found)}
    table |= {name: values[:, i].tolist() for i, name in enumerate(attacks)}
    caption = (
        f"Robust accuracy at ε = {EPS} of the same nets, over seeds. The first four are closed "
        "forms, the others what published evaluations run. Every perturbation lies in one ball."
    )
    return Drawing(canvas, table, caption, "Each net ranges from zero to one across attacks.")


def radii(evidence: Evidence) -> Drawing:
    """Robust accuracy against the radius, under the strongest search."""
    table: dict[str, list[Any]] = {"net": [], "radius": [], "accuracy": [], "certified": []}
    with style.canvas(6.8, 3.4) as canvas:
        axes = canvas.subplots()
        for setting, (label, color, dash) in CURVES.items():
            found = evidence.attacked(setting)
            values = found.robust_accuracy().numpy()
            low, high, mean = values.min(0), values.max(0), values.mean(0)
            axes.fill_between(found.radii, low, high, color=color, alpha=0.12, linewidth=0)
            axes.plot(found.radii, mean, color=color, linestyle=dash, label=label)
            proved = certified(evidence, setting).certified_accuracy(found.radii).mean(0).tolist()
            axes.plot(found.radii, proved, color=color, linestyle=":", linewidth=1)
            table["certified"] += proved
            table["net"] += [label] * len(found.radii)
            table["radius"] += list(found.radii)
            table["accuracy"] += mean.tolist()
        axes.set(xlabel="radius ε of the l∞ ball", ylabel="robust accuracy")
        axes.set(ylim=(-0.03, 1.03))
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7)
    caption = (
        "Accuracy on the whole ball under aligned features and margin ascent from four starts (an "
        "upper bound; bands are the range over seeds) and certified by intervals (dotted, a lower "
        "bound). Training against −F_y does not enlarge the radius, training against the "
        "margin does; of the two minima, the non-robust one has the larger radius."
    )
    return Drawing(canvas, table, caption, "All nets are fooled well below the paper's radius.")
