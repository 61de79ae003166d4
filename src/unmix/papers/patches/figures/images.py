"""Figs 4 and 5, Tables 1 and 2: what deep nets learn of images, and what fools them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from unmix import style
from unmix.nets.deep import planes
from unmix.papers.base import Drawing, Evidence
from unmix.papers.patches.claims.images import TITLES, pair
from unmix.papers.patches.measures import images as measures

Table = dict[str, list[Any]]

KINDS = {
    "non-robust": ("on $\\hat{D}_{NR}$", style.RED),
    "robust": ("on $\\hat{D}_R$", style.BLUE),
    "clean": ("on images", style.MUTED),
}
TRAININGS = {"std": "standard", "adv": "adversarial"}
# Table 1: test and robust accuracy, FL_NR, FL_R, in per cent.
PAPER = {
    "mnist": {"std": (99.56, 0.04, 88.11, 44.61), "adv": (99.41, 94.43, 39.49, 69.19)},
    "cifar10": {"std": (95.74, 0.00, 91.79, 61.26), "adv": (86.28, 45.13, 10.88, 67.88)},
    "svhn": {"std": (96.84, 0.16, 73.91, 65.38), "adv": (91.99, 58.55, 35.50, 77.04)},
}
COLUMNS = ("test accuracy", "robust accuracy", "on $\\hat{D}_{NR}$", "on $\\hat{D}_R$")
# Table 2: success in per cent, by the order of the pairs.
PAPER_2 = {
    ("std", "NRF"): (71.41, 80.36, 54.08, 76.74),
    ("std", "RF"): (11.30, 9.58, 1.24, 2.63),
    ("adv", "NRF"): (9.60, 15.16, 0.34, 0.40),
    ("adv", "RF"): (19.38, 26.00, 2.64, 1.96),
}
MADE = ("mnist", "cifar10")
SHOWN = 8


def curves(evidence: Evidence) -> Drawing:
    """Fig 4."""
    return _curves(evidence, MADE)


def more_curves(evidence: Evidence) -> Drawing:
    """Fig 5: the same with SVHN."""
    return _curves(evidence, tuple(TITLES))


def representatives(evidence: Evidence) -> Drawing:
    """Images, where their search began, and what has the same representation."""
    table: Table = {name: [] for name in ("dataset", "column", "class", "D_NR", "D_R")}
    rows = ("$X$", "start", "$\\hat{X}_{NR}$", "$\\hat{X}_R$")
    with style.canvas(7.2, 6.6) as canvas:
        panels = canvas.subplots(len(MADE) * len(rows), SHOWN)
        for block, name in enumerate(MADE):
            pictures = _pictures(evidence, name, table)
            for row, images in enumerate(pictures):
                for column, image in enumerate(images):
                    axes = panels[block * len(rows) + row, column]
                    _image(axes, image)
                    if column == 0:
                        axes.set_ylabel(rows[row], rotation=0, ha="right", va="center")
            for column, label in enumerate(table["class"][-SHOWN:]):
                panels[block * len(rows), column].set_title(label, fontsize=7, loc="center", pad=3)
    caption = (
        "Held-out images X with their classes; images of other classes, where the search begins; "
        "what comes to have X's representation in a standardly trained net (D_NR) and in an "
        "adversarially trained one (D_R). "
        f"{measures.READINGS['gradient'].steps} steps of length "
        f"{measures.READINGS['gradient'].size:g} down the gradient."
    )
    alt = (
        "A grid of digits and photographs. For each image it has the start of the search and a "
        "representative by each kind of net."
    )
    return Drawing(canvas, table, caption, alt)


def table_1(evidence: Evidence) -> Drawing:
    """Table 1 beside the paper's numbers."""
    columns: Table = {n: [] for n in ("dataset", "training", "column", "mean", "sd", "paper")}
    rows = [(name, t) for name in MADE for t in TRAININGS]
    with style.canvas(7.0, 3.0) as canvas:
        axes = _sheet(canvas, COLUMNS, [f"{TITLES[n]}, {TRAININGS[t]}" for n, t in rows])
        for index, (name, training) in enumerate(rows):
            for column, values in enumerate(_cells(evidence, name, training)):
                known = PAPER[name][training][column]
                _number(axes, column, index, values, known)
                entry = (name, training, COLUMNS[column], *_summary(values), known / 100)
                _append(columns, entry)
    caption = (
        "Table 1 again at reduced size: a ResNet of three blocks on 2000 digits or 8000 "
        "photographs, per cent, mean (sd) over the seeds; the paper's number below. Robust "
        "accuracy is under APGD on the cross-entropy."
    )
    return Drawing(canvas, columns, caption, "A table of four rows and four columns.")


def table_2(evidence: Evidence) -> Drawing:
    """Table 2 beside the paper's numbers, with the rate of confusion without an attack."""
    found = measures.fooled(evidence, *pair("cifar10"))
    pairs = ["-".join(p) for p in measures.PAIRS["cifar10"]]
    columns: Table = {n: [] for n in ("victim", "attack", "pair", "mean", "sd", "paper")}
    rows = [(v, by) for v in TRAININGS for by in ("NRF", "RF", "clean")]
    labels = [f"{TRAININGS[v]}, {by + '-PGD' if by != 'clean' else 'no attack'}" for v, by in rows]
    with style.canvas(7.2, 3.8) as canvas:
        axes = _sheet(canvas, [p.replace("-", " →\n") for p in pairs], labels)
        for index, (victim, by) in enumerate(rows):
            for column, name in enumerate(pairs):
                values = found[f"{name}:{by}:{victim}"].numpy()
                known = PAPER_2[victim, by][column] if by != "clean" else None
                _number(axes, column, index, values, known)
                share = None if known is None else known / 100
                _append(columns, (victim, by, name, *_summary(values), share))
    caption = (
        "Table 2 again at reduced size: share of a class's images that the victim calls the "
        f"target, per cent, mean (sd) over the seeds ({measures.ATTACKED} images each); the "
        "paper's number below. Without an attack it is the rate of confusion."
    )
    return Drawing(canvas, columns, caption, "A table of six rows and four columns.")


def budgets(evidence: Evidence) -> Drawing:
    """Table 1's feature-learning accuracies against the steps of the search."""
    table: Table = {n: [] for n in ("dataset", "reading", "training", "kind", "steps", "mean")}
    with style.canvas(7.2, 4.6) as canvas:
        panels = canvas.subplots(2, len(MADE), sharex=True, sharey=True)
        for column, name in enumerate(MADE):
            for reading, dash in (("gradient", "-"), ("adam", ":")):
                _budget(evidence, name, reading, dash, panels[:, column], table)
            panels[0, column].set_title(TITLES[name])
            panels[1, column].set(xlabel="steps of the search", xscale="log")
            style.ticks_at(panels[1, column].xaxis, measures.BUDGETS)
        _name_rows(panels)
    caption = (
        "Feature-learning accuracy of the trained nets against the length of the search for the "
        "representatives, down the gradient (solid) and by Adam (dotted): the text does not say "
        "how long it was. Means over the seeds."
    )
    alt = "Curves that rise with the steps, for two trainings and two data sets."
    return Drawing(canvas, table, caption, alt)


def _curves(evidence: Evidence, names: Sequence[str]) -> Drawing:
    """Feature-learning accuracy over the epochs: standard above, adversarial below."""
    table: Table = {n: [] for n in ("dataset", "training", "kind", "epoch", "mean", "low", "high")}
    with style.canvas(1.2 + 3.0 * len(names), 4.6) as canvas:
        panels = canvas.subplots(2, len(names), sharex="col", sharey=True, squeeze=False)
        for column, name in enumerate(names):
            for row, training in enumerate(TRAININGS):
                _course(evidence, name, training, panels[row, column], table)
            panels[0, column].set_title(TITLES[name])
            panels[1, column].set(xlabel="epoch")
        _name_rows(panels)
    caption = (
        "Feature-learning accuracy during standard (top) and adversarial training (bottom) of "
        "small ResNets, over seeds (bands: range): on representatives by a standardly trained "
        "reference net (D_NR), by an adversarially trained one (D_R), and on the images."
    )
    alt = "Three curves over the epochs in each panel, for every data set and training."
    return Drawing(canvas, table, caption, alt)


def _course(evidence: Evidence, name: str, training: str, axes: Axes, table: Table) -> None:
    std, adv = pair(name)
    epochs = evidence.run(std).experiment.train.snapshots
    rows = [measures.learned(evidence, "gradient", std, adv, e)[training] for e in epochs]
    for kind, (label, color) in KINDS.items():
        values = np.stack([row[kind].numpy() for row in rows])
        low, high, mean = values.min(1), values.max(1), values.mean(1)
        axes.fill_between(epochs, low, high, color=color, alpha=0.13, linewidth=0)
        axes.plot(epochs, mean, color=color, label=label, linewidth=1 if kind == "clean" else 1.5)
        for entry in zip(epochs, mean, low, high, strict=True):
            _append(table, (name, training, kind, int(entry[0]), *map(float, entry[1:])))


def _budget(
    evidence: Evidence, name: str, reading: str, dash: str, panels: Any, table: Table
) -> None:
    steps = measures.budgets(reading)
    rows = [measures.learned(evidence, reading, *pair(name), steps=b) for b in steps]
    for axes, training in zip(panels, TRAININGS, strict=True):
        for kind in ("non-robust", "robust"):
            label, color = KINDS[kind]
            mean = [float(row[training][kind].mean()) for row in rows]
            shown = f"{label}, {reading}"
            axes.plot(steps, mean, dash, marker="o", markersize=3, color=color, label=shown)
            for budget, value in zip(steps, mean, strict=True):
                _append(table, (name, reading, training, kind, budget, value))


def _name_rows(panels: Any) -> None:
    for row, training in enumerate(TRAININGS.values()):
        panels[row, 0].set(ylabel=f"accuracy,\n{training} training", ylim=(-0.02, 1.02))
    panels[0, -1].legend(loc="upper right", fontsize=7)


def _pictures(evidence: Evidence, name: str, table: Table) -> list[Tensor]:
    """X, starts, representatives of both kinds: the first seed's first image of some classes."""
    std, adv = pair(name)
    run, asked = evidence.run(std), measures.READINGS["gradient"]
    batch, classes = run.fresh(measures.INVERTED), run.data.source.classes
    y = batch.y[0]
    chosen = [int((y == c).nonzero()[0]) for c in range(len(classes)) if bool((y == c).any())]
    chosen = chosen[:SHOWN]
    found = [measures.inverted(evidence, "gradient", s, asked.steps)["x"][0] for s in (std, adv)]
    rows = [batch.x[0], measures.starts_of(run, 0, asked), *found]
    far = [(images - batch.x[0]).flatten(1).norm(dim=1) for images in found]
    for column, which in enumerate(chosen):
        distances = [float(d[which]) for d in far]
        _append(table, (name, column, classes[int(y[which])], *distances))
    return [planes(images[chosen], run.data) for images in rows]


def _image(axes: Axes, image: Tensor) -> None:
    shown = image.movedim(0, -1).numpy()
    axes.imshow(shown.squeeze(-1) if shown.shape[-1] == 1 else shown, cmap="gray", vmin=0, vmax=1)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def _cells(evidence: Evidence, name: str, training: str) -> list[np.ndarray]:
    setting = f"{name}-{training}"
    run = evidence.run(setting)
    row = measures.learned(evidence, "gradient", *pair(name))[training]
    robust = evidence.attacked(setting).robust_accuracy()[:, 0]
    clean = run.classifier.accuracy(run.test_batch)
    return [t.numpy() for t in (clean, robust, row["non-robust"], row["robust"])]


def _sheet(canvas: Figure, columns: Sequence[str], rows: Sequence[str]) -> Axes:
    """Empty cells with their heads."""
    axes = canvas.subplots()
    axes.set(xlim=(-1.6, len(columns)), ylim=(len(rows), -0.9))
    axes.axis("off")
    for column, name in enumerate(columns):
        axes.text(column + 0.5, -0.4, name, ha="center", va="center", fontsize=8)
    for index, name in enumerate(rows):
        axes.text(-1.6, index + 0.5, name, va="center", fontsize=8)
        axes.axhline(index, color=style.GRID, linewidth=0.6)
    return axes


def _number(axes: Axes, column: int, row: int, values: np.ndarray, known: float | None) -> None:
    mean, sd = (100 * v for v in _summary(values))
    place: dict[str, Any] = {"ha": "center", "va": "center"}
    axes.text(column + 0.5, row + 0.35, f"{mean:.1f} ({sd:.1f})", fontsize=8, **place)
    if known is not None:
        axes.text(column + 0.5, row + 0.72, f"{known:.2f}", fontsize=7, color=style.MUTED, **place)


def _summary(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1))


def _append(table: Table, entry: Sequence[Any]) -> None:
    for column, value in zip(table, entry, strict=True):
        table[column].append(value)
