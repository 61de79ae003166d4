"""Fig 1: neurons of a net in R^3 on the sphere, seen from one side, before, during and after."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes

from unmix import style
from unmix.nets.prelu import unit
from unmix.papers.base import Drawing, Evidence

# Coordinates along the three centres -> the picture's plane; the third axis looks at the reader.
VIEW = np.array([[-0.72, 0.69, 0.0], [-0.34, -0.35, 0.87], [0.6, 0.63, 0.49]])
PANELS = (
    ("(a) start", "sphere-p=1", "start"),
    ("(b) p = 1, aligned", "sphere-aligned-p=1", "end"),
    ("(c) p = 1, end", "sphere-p=1", "end"),
    ("(d) p = 3, aligned", "sphere-aligned-p=3", "end"),
    ("(e) p = 3, end", "sphere-p=3", "end"),
)
Table = dict[str, list[Any]]


def sphere(evidence: Evidence) -> Drawing:
    """Five spheres: directions are places, contributions |v||w| are sizes."""
    names = ("panel", "sign", "along_1", "along_2", "along_3", "contribution")
    table: Table = {name: [] for name in names}
    with style.canvas(9.2, 2.35) as canvas:
        panels = canvas.subplots(1, len(PANELS))
        for axes, (title, setting, when) in zip(panels, PANELS, strict=True):
            _ball(axes)
            _points(axes, evidence, setting)
            _neurons(axes, evidence, setting, when, title, table)
            axes.set_title(title, loc="center")
    caption = (
        "One net in R³, computed: small grey dots are training points, × the mean direction of "
        "each class, blue and orange dots positive and negative neurons, larger the more they "
        "contribute. With p = 1 positive neurons meet at the mean of their two subclasses, with "
        "p = 3 they part towards one or the other. Hollow dots are on the far side."
    )
    alt = "For p = 1 neurons gather between two clusters, for p = 3 at each of them."
    return Drawing(canvas, table, caption, alt)


def _ball(axes: Axes) -> None:
    angle = np.linspace(0, 2 * np.pi, 181)
    axes.plot(np.cos(angle), np.sin(angle), color=style.MUTED, linewidth=0.7)
    for axis in range(3):
        ring = np.zeros((3, len(angle)))
        ring[(axis + 1) % 3], ring[(axis + 2) % 3] = np.cos(angle), np.sin(angle)
        x, y, depth = VIEW @ ring
        axes.plot(np.where(depth >= 0, x, np.nan), y, color=style.GRID, linewidth=0.6)
    axes.set(aspect="equal", xlim=(-1.12, 1.12), ylim=(-1.12, 1.12), xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def _points(axes: Axes, evidence: Evidence, setting: str) -> None:
    run = evidence.run(setting)
    mu = run.centres[0].double()
    inside = unit(run.train_batch.x[0].double() @ mu.T).numpy() @ VIEW.T
    axes.scatter(inside[:, 0], inside[:, 1], s=1.5, color=style.MUTED, linewidth=0, zorder=2)
    data = run.data
    means = [
        torch.zeros(3, dtype=torch.float64).index_fill(0, torch.tensor(side), 1.0)
        for side in (data.plus, data.minus)
    ]
    for mean in means:
        x, y, _ = VIEW @ unit(mean).numpy()
        axes.plot(x, y, "x", color=style.INK, markersize=5, markeredgewidth=1.1, zorder=5)


def _neurons(
    axes: Axes, evidence: Evidence, setting: str, when: str, title: str, table: Table
) -> None:
    run = evidence.run(setting)
    params = run.initial if when == "start" else run.params
    form = run.experiment.net.form(run.data, params)
    q = form.readout[0, :, 0].double().numpy()
    u = (form.w[0].double() @ run.centres[0].double().T).numpy()
    place = u @ VIEW.T
    size = 5 + 45 * np.abs(q) / np.abs(q).max() if when == "end" else np.full(len(q), 6.0)
    for sign, color in ((1, style.BLUE), (-1, style.ORANGE)):
        for near in (False, True):
            chosen = (np.sign(q) == sign) & ((place[:, 2] >= 0) == near)
            axes.scatter(
                place[chosen, 0],
                place[chosen, 1],
                s=size[chosen],
                facecolor=color if near else "none",
                edgecolor=color,
                linewidth=0.5,
                alpha=0.85 if near else 0.5,
                zorder=4 if near else 1,
            )
    table["panel"] += [title] * len(q)
    table["sign"] += [int(s) for s in np.sign(q)]
    for axis in range(3):
        table[f"along_{axis + 1}"] += [float(v) for v in u[:, axis]]
    table["contribution"] += [float(v) for v in np.abs(q)]
