"""Inputs rebuilt from few features (Fig 4), and sparse reconstruction of all lengths (Fig 12)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from unmix import style
from unmix.papers.base import Drawing, Evidence
from unmix.perturbations.base import dense
from unmix.probes.coded import Coded
from unmix.probes.lasso import lasso_path

Table = dict[str, list[Any]]
COLORS = {"random": style.MUTED, "clean": style.RED, "robust": style.BLUE}
# The caption of Fig 4: at most this share of the coefficients.
FEW = 0.0405


def rebuilt(evidence: Evidence) -> Drawing:
    """Fig 4: one input, and what few random, clean and robust features make of it."""
    run = evidence.run("side")
    start, clean, robust = (Coded.of(run, name) for name in ("start", "before", "after"))
    x = dense(robust.points(20)[0])[0]
    # The point with the median number of features.
    counts = (x != 0).sum(1)
    point = x[[int(counts.argsort()[len(counts) // 2])]]
    living = {"random": (start, clean), "clean": (clean, clean), "robust": (robust, robust)}
    order = torch.argsort(point[0].abs(), descending=True)
    table: Table = {"feature": order.tolist(), "input": point[0, order].tolist()}
    with style.canvas(6.4, 4.4) as canvas:
        panels = canvas.subplots(4, 1, sharex=True, sharey=True)
        _stems(panels[0], table["input"], "input", style.INK)
        for axes, (name, (net, whose)) in zip(panels[1:], living.items(), strict=True):
            columns = normalize(net.w[0][whose.alive()[0]], dim=-1)
            row, count, error = _few(point, columns)
            table[name] = row[order].tolist()
            title = f"{name}: {count} of {len(columns)} features, squared error {error:.2f}"
            _stems(axes, table[name], title, COLORS[name])
        panels[-1].set_xlabel("features of the data, those of the point first")
    caption = (
        "Theory counterpart of Fig 4: one input rebuilt from 4.05 % of a net's living neurons, "
        "those with the largest Lasso coefficients, by least squares; in the basis of the features "
        "(one seed). Robust neurons are features; clean ones bring their dense mixture along."
    )
    return Drawing(canvas, table, caption, "Robust features rebuild the input best.")


def _few(point: Tensor, columns: Tensor) -> tuple[Tensor, int, float]:
    """The reconstruction from as many features as the share allows, their number, its error."""
    path, count = lasso_path(point, columns), max(1, int(FEW * len(columns)))
    enough = path.nonzeros[:, 0] >= count
    at = int(enough.double().argmax()) if enough.any() else -1
    chosen = columns[path.y[at, 0].abs().topk(count).indices]
    fit = torch.linalg.lstsq(chosen.T, point.T).solution
    row = (chosen.T @ fit)[:, 0]
    return row, count, float((point[0] - row).square().sum() / point.square().sum())


def _stems(axes: Any, values: list[float], title: str, color: str) -> None:
    axes.vlines(range(len(values)), 0, values, color=color, linewidth=1)
    axes.axhline(0, color=style.MUTED, linewidth=0.5)
    axes.set(title=title)


def reconstruction(evidence: Evidence) -> Drawing:
    """Fig 12: nonzeros against relative squared error, inputs left and perturbations right."""
    found = evidence.probe("side", "sparsity")
    groups = {
        "inputs": ("inputs_random", "inputs_clean", "inputs_robust"),
        "perturbations": ("delta_clean", "delta_robust"),
    }
    table: Table = {"what": [], "error": [], "nonzeros": []}
    with style.canvas(6.4, 3.0) as canvas:
        for axes, (title, members) in zip(canvas.subplots(1, 2), groups.items(), strict=True):
            for member in members:
                error, count = (
                    np.asarray(found[f"{member}_{part}"].double().mean(0))
                    for part in ("error", "nonzeros")
                )
                kind = member.split("_")[1]
                axes.semilogx(error, count, color=COLORS[kind], label=kind)
                table["what"] += [member] * len(error)
                table["error"] += list(error)
                table["nonzeros"] += list(count)
            axes.set(title=title, xlabel="relative squared error", xlim=(1e-3, 1))
            axes.legend(loc="upper right")
        canvas.axes[0].set_ylabel("nonzero coefficients")
    caption = (
        "Lasso over all weights, dictionary: living neurons. Left: inputs in random, clean and "
        "robust features. Right: perturbations of the clean and of the robust net, in robust ones."
    )
    return Drawing(canvas, table, caption, "Robust features need the fewest nonzeros.")
