"""Figs 3, 4 and 6, Table 1 and the same on Fashion-MNIST: pReLU nets on images."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unmix import style
from unmix.papers.base import Drawing, Evidence
from unmix.papers.prelu.claims.mnist import MARGIN, POWERS, TABLE, every
from unmix.papers.prelu.measures import mnist as measures

Table = dict[str, list[Any]]

COLORS = dict(zip(POWERS, (style.RED, style.ORANGE, style.GREEN, style.BLUE), strict=True))
SHOWN = 30
LABELS = {"clean": "clean accuracy", "linf": "robust, $\\ell_\\infty$", "l2": "robust, $\\ell_2$",
          "l1": "robust, $\\ell_1$"}  # fmt: skip


def parity(evidence: Evidence) -> Drawing:
    """Fig 3."""
    return _panels(evidence, "parity", "parity of MNIST digits")


def digits(evidence: Evidence) -> Drawing:
    """Fig 6."""
    return _panels(evidence, "digits", "MNIST digits")


def frozen(evidence: Evidence) -> Drawing:
    """Fig 4 on features of CIFAR-10."""
    return _panels(evidence, "cifar2", "frozen features of CIFAR-10, two random groups of classes")


def table(evidence: Evidence) -> Drawing:
    """Table 1 beside the paper's numbers."""
    drawn, columns = _table(evidence, "digits", paper=True)
    caption = (
        "Table 1 again: mean (sd) over the seeds, each on images of its own, by the minimum-norm "
        "attack; below it the paper's mean. Green: the two agree within three of the paper's "
        f"standard deviations, or {MARGIN:g}."
    )
    return Drawing(drawn, columns, caption, "A table of seven rows and four columns.")


def fashion(evidence: Evidence) -> Drawing:
    """The same table on data that the paper never saw."""
    drawn, columns = _table(evidence, "fashion", paper=False)
    caption = (
        "The rows of Table 1 on Fashion-MNIST, which the paper did not ask for: mean (sd) over the "
        "seeds, each on images of its own, under the minimum-norm attack."
    )
    return Drawing(drawn, columns, caption, "A table of seven rows and four columns.")


def _panels(evidence: Evidence, task: str, what: str) -> Drawing:
    """Correlations, accuracy and stable rank over training, robust accuracy over the radius."""
    with style.canvas(7.2, 5.6) as canvas:
        axes = canvas.subplots(2, 2)
        _correlations(canvas, axes[0, 0], evidence, f"{task}-p=1")
        columns: Table = {"p": [], "panel": [], "x": [], "mean": [], "low": [], "high": []}
        _accuracies(axes[0, 1], evidence, task, columns)
        _ranks(axes[1, 0], evidence, task, columns)
        _curves(axes[1, 1], evidence, task, columns)
        for letter, panel in zip("abcd", axes.flat, strict=True):
            panel.set_title(f"({letter})")
    seeds = evidence.run(f"{task}-p=1").replicas
    caption = (
        f"pReLU nets on {what}, {seeds} seeds (bands: range). (a) Cosines of centred training "
        "points, sorted by class. (b) Accuracy on held-out (solid) and training images (dotted). "
        "(c) Stable rank of the hidden layer. (d) Accuracy under linf perturbations of the "
        "points, by the minimum-norm attack (lines) and the paper's attack (crosses)."
    )
    alt = (
        "A matrix of cosines; accuracy and stable rank over epochs; robust accuracy falling with "
        "the radius; each for four values of p."
    )
    return Drawing(canvas, columns, caption, alt)


def _correlations(canvas: Figure, axes: Axes, evidence: Evidence, name: str) -> None:
    found, kinds = measures.cosines(evidence, name, 1000)
    # Images spread evenly over the sorted ones: every class has its share.
    rows = np.linspace(0, len(kinds) - 1, SHOWN).round().astype(int)
    mesh = style.cosine_matrix(axes, found.numpy()[np.ix_(rows, rows)], digits=0)
    mesh.set_linewidth(0)
    middle = [float(np.flatnonzero(kinds.numpy()[rows] == k).mean()) + 0.5 for k in range(10)]
    axes.set(xticks=middle, yticks=middle, xticklabels=range(10), yticklabels=range(10))
    style.cosine_scale(canvas, mesh, axes)


def _accuracies(axes: Axes, evidence: Evidence, task: str, table: Table) -> None:
    for p in POWERS:
        run = evidence.run(f"{task}-p={p}")
        held = run.trace.columns["test_accuracy"].numpy()
        _band(axes, run.trace.steps, held, p, table, "test accuracy")
        seen = run.trace.columns["accuracy"].numpy().mean(0)
        axes.plot(run.trace.steps, seen, color=COLORS[p], linestyle=":", linewidth=1)
    end = evidence.run(f"{task}-p=1").trace.columns["test_accuracy"][:, -1].min()
    axes.set(xlabel="epoch", ylabel="accuracy", ylim=(1 - 4 * (1 - float(end)), 1.003))


def _ranks(axes: Axes, evidence: Evidence, task: str, table: Table) -> None:
    for p in POWERS:
        run = evidence.run(f"{task}-p={p}")
        ranks = run.trace.columns["stable_rank"].numpy()
        _band(axes, run.trace.steps, ranks, p, table, "stable rank")
    axes.set(xlabel="epoch", ylabel="stable rank", ylim=(0, None))


def _curves(axes: Axes, evidence: Evidence, task: str, table: Table) -> None:
    for p in POWERS:
        name = f"{task}-p={p}"
        found, clean = evidence.attacked(name), measures.clean(evidence, name).values
        grid = (0.0, *found.radii)
        union = np.concatenate([np.array(clean)[:, None], found.robust_accuracy().numpy()], 1)
        _band(axes, grid, union, p, table, "robust accuracy")
        if f"{name},apgd" in evidence.settings:
            papers = evidence.attacked(f"{name},apgd")
            left = papers.robust_accuracy().numpy().mean(0)
            axes.plot(papers.radii, left, "x", color=COLORS[p], markersize=5)
    axes.set(xlabel=r"$\ell_\infty$ radius", ylabel="robust accuracy")
    axes.set(ylim=(-0.02, 1.02))
    axes.legend(loc="upper right")


def _band(axes: Axes, x: Any, y: np.ndarray, p: int, table: Table, panel: str) -> None:
    """Mean and range over replicas."""
    axes.fill_between(x, y.min(0), y.max(0), color=COLORS[p], alpha=0.15, linewidth=0)
    axes.plot(x, y.mean(0), color=COLORS[p], label=f"p = {p}")
    table["p"] += [p] * len(x)
    table["panel"] += [panel] * len(x)
    table["x"] += [float(v) for v in x]
    for name, values in (("mean", y.mean(0)), ("low", y.min(0)), ("high", y.max(0))):
        table[name] += [float(v) for v in values]


def _table(evidence: Evidence, task: str, paper: bool) -> tuple[Figure, Table]:
    columns: Table = {name: [] for name in ("row", "p", "mean", "sd", "paper")}
    with style.canvas(7.0, 0.5 + 0.52 * len(TABLE)) as canvas:
        axes = canvas.subplots()
        axes.set(xlim=(-1.3, len(POWERS)), ylim=(len(TABLE), -0.7))
        axes.axis("off")
        for column, p in enumerate(POWERS):
            axes.text(column + 0.5, -0.35, f"p = {p}", ha="center", va="center")
        for index, row in enumerate(TABLE):
            norm, _, radius = row.partition(" ")
            label = LABELS[norm] + (f", {radius}" if radius else "")
            axes.text(-1.3, index + 0.5, label, va="center", fontsize=8)
            axes.axhline(index, color=style.GRID, linewidth=0.6)
            for column, (p, name) in enumerate(zip(POWERS, every(task, row), strict=True)):
                _cell(axes, evidence, (column, index), row, p, name, columns, paper)
    if not paper:
        columns.pop("paper")
    return canvas, columns


def _cell(
    axes: Axes,
    evidence: Evidence,
    place: tuple[int, int],
    row: str,
    p: int,
    name: str,
    columns: Table,
    paper: bool,
) -> None:
    """One cell, its numbers written into axes and columns."""
    values = np.array(measures.clean(evidence, name).values)
    if row != "clean":
        values = measures.left(evidence, name, float(row.partition(" ")[2])).numpy()
    mean, sd = float(values.mean()), float(values.std(ddof=1))
    known, spread = (part[p - 1] for part in TABLE[row])
    agrees = paper and abs(mean - known) <= max(3 * spread, MARGIN)
    x, y = place[0] + 0.5, place[1] + (0.33 if paper else 0.5)
    color = style.GREEN if agrees else style.INK
    axes.text(x, y, f"{mean:.3f} ({sd:.3f})", ha="center", va="center", color=color, fontsize=8)
    if paper:
        muted = {"color": style.MUTED, "fontsize": 7}
        axes.text(x, y + 0.36, f"{known:.3f}", muted, ha="center", va="center")
    for column, value in zip(columns, (row, p, mean, sd, known), strict=True):
        columns[column].append(value)
