"""Perturbations (Fig 7), and radii beside the oracle's."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from unmix import style
from unmix.attacks.coded import cleanly_trained
from unmix.papers.base import Drawing, Evidence
from unmix.papers.purification.measures.robust import oracle_radii
from unmix.perturbations.base import dense
from unmix.perturbations.gradient import FGM
from unmix.probes.coded import Coded

Table = dict[str, list[Any]]


def perturbations(evidence: Evidence) -> Drawing:
    """Fig 7: one point's code and its FGM perturbations in the basis of the features."""
    run = evidence.run("side")
    before, after = Coded.of(cleanly_trained(run)), Coded.of(run)
    x, y = after.points(20)
    # The point with the median number of features.
    counts = (dense(x)[0] != 0).sum(1)
    point = int(counts.argsort()[len(counts) // 2])
    rows = {"code z": dense(x)[0, point]}
    rows |= {
        name: FGM().perturb(net.scene, x, y, 1.0)[0, point]
        for name, net in (("clean net", before), ("purified net", after))
    }
    order = torch.argsort(rows["code z"].abs(), descending=True)
    table: Table = {"feature": order.tolist()}
    with style.canvas(6.4, 3.6) as canvas:
        panels = canvas.subplots(3, 1, sharex=True)
        colors = (style.INK, style.RED, style.BLUE)
        for axes, (name, row), color in zip(panels, rows.items(), colors, strict=True):
            values = row[order].tolist()
            axes.vlines(range(len(values)), 0, values, color=color, linewidth=1)
            axes.axhline(0, color=style.MUTED, linewidth=0.5)
            axes.set(title=name)
            table[name] = values
        panels[-1].set_xlabel("features, those of the point first")
    caption = (
        "A point and the unit FGM perturbations against it, in the basis of the features. Against "
        "the cleanly trained net the perturbation is dense, along −y w*; after adversarial "
        "training it lies on the point's own features."
    )
    return Drawing(canvas, table, caption, "Dense perturbation before, sparse one after.")


def radii(evidence: Evidence) -> Drawing:
    """Robust accuracy of clean and purified nets against the radius over the oracle's median."""
    ladder = evidence.expand(("clean-d*",))
    table: Table = {"d": [], "net": [], "radius": [], "accuracy": []}
    with style.canvas(2.5 * len(ladder), 2.8) as canvas:
        panels = np.atleast_1d(canvas.subplots(1, len(ladder), sharey=True))
        for axes, name in zip(panels, ladder, strict=True):
            d = evidence.run(name).data.d
            smallest = {
                stage: evidence.attacked(name.replace("clean", stage)).smallest.flatten()
                for stage in ("clean", "purified")
            }
            count = evidence.attacked(name).smallest.shape[1]
            best = oracle_radii(evidence.run(name), count).flatten()
            unit = float(best.median())
            curves = {
                "oracle": (best, style.INK),
                "clean": (smallest["clean"], style.RED),
                "purified": (smallest["purified"], style.BLUE),
            }
            grid = np.linspace(0, 1.5, 61)
            for label, (found, color) in curves.items():
                accuracy = [float((found > unit * t).double().mean()) for t in grid]
                axes.plot(grid, accuracy, color=color, label=label)
                table["d"] += [d] * len(grid)
                table["net"] += [label] * len(grid)
                table["radius"] += list(grid)
                table["accuracy"] += accuracy
            axes.set(title=f"d = {d}", xlabel="radius / oracle's median", ylim=(0, 1.02))
        panels[0].set_ylabel("robust accuracy")
        panels[-1].legend(loc="upper right")
    caption = (
        "Share of points that no attack fools, against the l2 radius in units of the pure rule's "
        "median (whose radii are exact up to 1/(2√k)). Clean nets fall behind as d grows."
    )
    return Drawing(canvas, table, caption, "Curves of clean nets lie below those of purified ones.")
