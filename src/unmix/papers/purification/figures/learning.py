"""What happens during training: the tickets (Fig 8) and the pure-dense plane (Fig 9)."""

from __future__ import annotations

from typing import Any

import numpy as np

from unmix import style
from unmix.papers.base import Drawing, Evidence

Table = dict[str, list[Any]]


def tickets(evidence: Evidence) -> Drawing:
    """Fig 8: accuracy, purity and who keeps the first largest coordinate, against the step."""
    ladder = evidence.expand(("clean-d*",))
    table: Table = {"d": [], "step": [], "accuracy": [], "purity": [], "kept": []}
    names = {"accuracy": style.INK, "purity": style.BLUE, "kept": style.ORANGE}
    with style.canvas(2.5 * len(ladder), 2.7) as canvas:
        panels = np.atleast_1d(canvas.subplots(1, len(ladder), sharey=True))
        for axes, setting in zip(panels, ladder, strict=True):
            run = evidence.run(setting)
            end = run.experiment.train.clean.steps
            rows = [i for i, step in enumerate(run.trace.steps) if 0 < step <= end]
            steps = [run.trace.steps[i] for i in rows]
            for name, color in names.items():
                values = run.trace.columns[name][:, rows].mean(0).tolist()
                axes.semilogx(steps, values, color=color, label=name)
                table[name] += values
            table["d"] += [run.data.d] * len(rows)
            table["step"] += steps
            axes.set(title=f"d = {run.data.d}", xlabel="step", ylim=(0, 1.02))
        panels[0].legend(loc="lower right")
    caption = (
        "Clean training: accuracy; mean purity (largest coordinate over the norm) of the neurons "
        "that live at that step; and the share of them whose largest coordinate is still that of "
        "the random start. Most winners are decided there."
    )
    return Drawing(canvas, table, caption, "Purity rises late, the kept share stays above a half.")


def plane(evidence: Evidence) -> Drawing:
    """Fig 9: purity against the dense share of the norm, one path a training."""
    paths = {
        "side": ("clean, then adversarial", style.BLUE),
        "scratch": ("adversarial from random weights", style.GREEN),
        "pure": ("clean from pure features", style.RED),
    }
    table: Table = {"training": [], "step": [], "pure": [], "dense": []}
    with style.canvas(5.4, 3.8) as canvas:
        axes = canvas.subplots()
        for setting, (label, color) in paths.items():
            trace = evidence.run(setting).trace
            pure, dense = (trace.columns[n].mean(0).tolist() for n in ("purity", "dense"))
            axes.plot(dense, pure, color=color, marker="o", markersize=2.5, label=label)
            axes.plot(dense[-1:], pure[-1:], color=color, marker="s", markersize=6)
            table["training"] += [label] * len(pure)
            table["step"] += list(trace.steps)
            table["pure"] += pure
            table["dense"] += dense
        turn = evidence.run("side")
        at = _row(turn.trace.steps, turn.experiment.train.clean.steps)
        x, y = (float(turn.trace.columns[n].mean(0)[at]) for n in ("dense", "purity"))
        axes.annotate("clean training ends", (x, y), xytext=(6, -10), textcoords="offset points")
        axes.set(xlabel="dense share of a neuron's norm", ylabel="pure share of a neuron's norm")
        axes.legend(loc="lower right")
    caption = (
        "Means over living neurons, each dot a recorded step, squares the end. Clean training "
        "wins features and accumulates the dense mixture; adversarial training removes it. From "
        "random weights, with a radius that waits and rises, the end is the same, but the mixture "
        "grows while the radius is small. From pure features clean training adds it."
    )
    return Drawing(canvas, table, caption, "Three paths in the plane of pure and dense shares.")


def _row(steps: tuple[int, ...], step: int) -> int:
    """The recorded row nearest to a step."""
    return int(np.abs(np.array(steps) - step).argmin())
