"""Pictures computed from the constructed classifiers: Fig 1 and Remark 4.2."""

from __future__ import annotations

import math

import numpy as np
import torch
from matplotlib.axes import Axes
from torch.nn.functional import normalize

from unmix import style
from unmix.data.clusters import Clusters
from unmix.nets.base import Model
from unmix.nets.constructed import FeatureAveraging, FeatureDecoupling
from unmix.papers.averaging import predict
from unmix.papers.base import Drawing, Evidence

# Fig 1 of the paper: five clusters, three of them positive.
PICTURE = Clusters(k=5, d=64, positive=(0, 1, 2))
CENTRE = "at a centre: 1 − √k t"
EXTENT, CELLS = 1.6, 161

Point = tuple[float, float]


def boundaries(evidence: Evidence) -> Drawing:
    """Fig 1: the decision regions of f_FA and f_FD in the plane through a centre that holds both
    the average direction and the nearest opposite centre."""
    best = 1 - 1 / math.sqrt(2)
    nets = {
        "feature averaging": FeatureAveraging(),
        "feature decoupling": FeatureDecoupling(beta=best),
    }
    radii = (predict.averaging_radius(PICTURE), PICTURE.best_radius / PICTURE.unit)
    table: dict[str, list[object]] = {"net": [], "along_average": [], "across": [], "decision": []}
    with style.canvas(7.0, 3.3) as canvas:
        panels = canvas.subplots(1, 2, sharey=True)
        for axes, (name, net), radius in zip(panels, nets.items(), radii, strict=True):
            grid, values, marks = _section(
                Model(net, PICTURE, net.init(PICTURE, (0,), torch.float64))
            )
            _regions(axes, grid, values, marks, radius)
            axes.set(title=f"{name}: radius {radius:.3f}", xlabel="along the average direction")
            for (row, column), value in np.ndenumerate(values[::8, ::8]):
                point = (name, float(grid[::8][column]), float(grid[::8][row]), float(value))
                for key, entry in zip(table, point, strict=True):
                    table[key].append(entry)
        panels[0].set_ylabel("across it, towards $\\mu_4$")
    caption = (
        "A plane through the positive centre μ₁ of five orthogonal clusters (three positive), in "
        "units of √d: decision regions of the constructed classifiers, computed. The circle is the "
        "robust radius: averaging is fooled at 1/√5, decoupling only half-way to μ₄."
    )
    return Drawing(canvas, table, caption, "The averaging boundary passes close to the centre.")


def remark(evidence: Evidence) -> Drawing:
    """Remark 4.2: the margin of f_FA along -y u falls in a straight line through 0 at 1/sqrt(k)."""
    run = evidence.run("FA-k10")
    model, batch, data = run.model, run.test_batch, run.data
    u = normalize(torch.einsum("k,rkd->rd", data.signs, run.centres), dim=-1)
    lengths = np.linspace(0, 0.6, 31)
    margins = []
    for t in lengths:
        moved = batch.x - float(t) * data.unit * batch.y.unsqueeze(-1) * u.unsqueeze(1)
        margins.append((batch.y * model.decision(moved) / data.unit**2).flatten().numpy())
    points = np.stack(margins)
    low, high = np.quantile(points, (0.05, 0.95), axis=1)
    with style.canvas() as canvas:
        axes = canvas.subplots()
        axes.fill_between(lengths, low, high, color=style.RED, alpha=0.15, linewidth=0)
        axes.plot(lengths, points.mean(1), color=style.RED, label="points, mean and 90 %")
        line = 1 - math.sqrt(data.k) * lengths
        axes.plot(lengths, line, color=style.INK, linewidth=0.8, linestyle="--", label=CENTRE)
        axes.axhline(0, color=style.MUTED, linewidth=0.6)
        axes.axvline(1 / math.sqrt(data.k), color=style.MUTED, linewidth=0.7, linestyle=":")
        axes.set(xlabel="length t of −y u, in √d", ylabel="margin of $f_{FA}$, in d")
        axes.legend(loc="upper right")
    table = {
        "length": list(lengths),
        "mean": list(points.mean(1)),
        "low": list(low),
        "high": list(high),
    }
    caption = (
        "The perturbation of Remark 4.2 flips f_FA at length √(d/k): margins are linear in it."
    )
    alt = "Margins fall linearly and cross zero near 0.316."
    return Drawing(canvas, table, caption, alt)


def _section(model: Model) -> tuple[np.ndarray, np.ndarray, dict[str, Point]]:
    """Decisions on the plane through mu_1 spanned by -u and mu_4 - mu_1, and where centres lie."""
    mu = PICTURE.centres((0,))[0]
    first = -normalize(PICTURE.signs @ mu, dim=0)
    towards = mu[3] - mu[0]
    second = normalize(towards - (towards @ first) * first, dim=0)
    grid = np.linspace(-EXTENT / 2, EXTENT, CELLS)
    across, down = torch.from_numpy(grid), torch.from_numpy(grid)
    steps = across[None, :, None] * first + down[:, None, None] * second
    values = model.decision((mu[0] + PICTURE.unit * steps).reshape(1, -1, PICTURE.d))
    place = (float(towards @ first) / PICTURE.unit, float(towards @ second) / PICTURE.unit)
    return grid, values.reshape(CELLS, CELLS).numpy(), {"μ₁": (0.0, 0.0), "μ₄": place}


def _regions(
    axes: Axes, grid: np.ndarray, values: np.ndarray, marks: dict[str, Point], radius: float
) -> None:
    axes.contourf(
        grid, grid, values > 0, levels=[-0.5, 0.5, 1.5], colors=[style.RED, style.BLUE], alpha=0.16
    )
    axes.contour(grid, grid, values, levels=[0.0], colors=[style.INK], linewidths=1)
    angle = np.linspace(0, 2 * np.pi, 200)
    axes.plot(radius * np.cos(angle), radius * np.sin(angle), color=style.GREEN, linewidth=1.2)
    for text, (x, y) in marks.items():
        axes.plot([x], [y], "o", color=style.INK)
        axes.annotate(text, (x, y), xytext=(5, 4), textcoords="offset points", color=style.INK)
    axes.set(aspect="equal", xlim=(grid[0], grid[-1]), ylim=(grid[0], grid[-1]))
