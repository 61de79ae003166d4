"""Figs 2 (a-d) and 5 (a-d): distances to F and F^(p), contributions, cosines."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from unmix import style
from unmix.papers.base import Drawing, Evidence

COLORS = {1: style.RED, 3: style.BLUE}
SHOWN = {1: 300, 3: 50}
Table = dict[str, list[Any]]


def distances(evidence: Evidence) -> Drawing:
    """Fig 2a: Algorithm 1's distance against the noise, with the closed-form lower bound."""
    table = _empty()
    with style.canvas(6.4, 2.7) as canvas:
        for axes, p in zip(canvas.subplots(1, 2), (1, 3), strict=True):
            _ladder(axes, evidence, p, 10, table)
            sgd = np.asarray(evidence.probe(f"sgd-p={p}", "reference-distance")["distance"])
            axes.plot([0.1] * len(sgd), sgd, "x", color=style.INK, markersize=4)
    d = evidence.run("mean-p=1").data.d
    caption = (
        "Distance of the net to F (p = 1) and to F⁽³⁾ (p = 3), up to scale, against the noise α: "
        "Algorithm 1 (line: mean, band: range over seeds), the largest lower bound in closed form "
        "(dotted), and nets trained by SGD (crosses, after less flow time when quick). Lines are "
        f"the reduced flow at D = {d}."
    )
    return Drawing(canvas, table, caption, "Both distances are small; for p = 1 they grow with α.")


def contributions(evidence: Evidence) -> Drawing:
    """Fig 2b."""
    return _bars(evidence, {p: f"sgd-p={p}" for p in (1, 3)}, "trained by SGD")


def more_contributions(evidence: Evidence) -> Drawing:
    """Fig 5b."""
    return _bars(evidence, {p: f"K20-p={p}" for p in (1, 3)}, "K = 20, reduced flow")


def matrices(evidence: Evidence) -> Drawing:
    """Figs 2c and 2d."""
    return _matrices(evidence, {p: f"sgd-p={p}" for p in (1, 3)}, "trained by SGD")


def more_matrices(evidence: Evidence) -> Drawing:
    """Figs 5c and 5d."""
    return _matrices(evidence, {p: f"K20-p={p}" for p in (1, 3)}, "K = 20, reduced flow")


def more_distances(evidence: Evidence) -> Drawing:
    """Fig 5a: the same for 20 subclasses, above the 10 of Fig 2a."""
    table = _empty()
    with style.canvas(6.4, 2.7) as canvas:
        for axes, p in zip(canvas.subplots(1, 2), (1, 3), strict=True):
            for k in (20, 10):
                _ladder(axes, evidence, p, k, table)
            axes.legend(loc="upper left" if p == 1 else "lower left")
    d = evidence.run("mean-p=1").data.d
    caption = (
        "Distance of the net to F (p = 1) and to F⁽³⁾ (p = 3) against the noise α with 20 "
        "subclasses, and thin with 10: Algorithm 1 (line: mean, band: range over seeds) and the "
        f"largest lower bound in closed form (dotted). Reduced flow at D = {d}."
    )
    alt = "Distances are larger with 20 subclasses; they grow with the noise, for p = 1 most."
    return Drawing(canvas, table, caption, alt)


def _empty() -> Table:
    names = ("K", "p", "alpha", "distance", "low", "high", "lower_bound")
    return {name: [] for name in names}


def _ladder(axes: Axes, evidence: Evidence, p: int, k: int, table: Table) -> None:
    """One p and K: thick where K is what the figure is about."""
    stem, middle = (f"noise-p={p},", f"mean-p={p}") if k == 10 else (f"K{k}-p={p},", f"K{k}-p={p}")
    names = [*(s for s in evidence.settings if s.startswith(stem)), middle]
    rows = sorted((evidence.run(s).data.sigma, s) for s in names)
    alphas = [alpha for alpha, _ in rows]
    probes = [evidence.probe(s, "reference-distance") for _, s in rows]
    found = np.stack([np.asarray(probe["distance"]) for probe in probes])
    lower = [float(probe["lower"].mean()) for probe in probes]
    color, thin = COLORS[p], bool(axes.lines)
    axes.fill_between(alphas, found.min(1), found.max(1), color=color, alpha=0.15, linewidth=0)
    axes.plot(
        alphas,
        found.mean(1),
        "-" if thin else "o-",
        color=color,
        linewidth=0.8 if thin else 1.6,
        label=f"K = {k}",
    )
    axes.plot(alphas, lower, ":", color=color, linewidth=0.8 if thin else 1.6)
    target = "F" if p == 1 else "F⁽³⁾"
    axes.set(xlabel="noise α", ylabel=f"distance to {target}", title=f"p = {p}", ylim=(0, None))
    count = len(rows)
    columns = ([k] * count, [p] * count, alphas, found.mean(1), found.min(1), found.max(1), lower)
    for name, column in zip(table, columns, strict=True):
        table[name] += [float(v) for v in column]


def _bars(evidence: Evidence, settings: dict[int, str], how: str) -> Drawing:
    table: Table = {"p": [], "rank": [], "contribution": []}
    with style.canvas(6.4, 2.4) as canvas:
        for axes, (p, setting) in zip(canvas.subplots(1, 2), settings.items(), strict=True):
            q = evidence.probe(setting, "contributions")["q"][0].double().abs()
            top = np.asarray(q.sort(descending=True).values[: SHOWN[p]])
            axes.bar(np.arange(1, len(top) + 1), top, width=1.0, color=COLORS[p], linewidth=0)
            axes.set(xlabel="neuron, by contribution", ylabel="|v| |w|", title=f"p = {p}")
            table["p"] += [p] * len(top)
            table["rank"] += list(range(1, len(top) + 1))
            table["contribution"] += [float(v) for v in top]
    caption = (
        f"Contributions |v||w| of one net ({how}), largest first: with p = 1 hundreds of neurons "
        "share the work, with p = 3 a few per subclass do it."
    )
    return Drawing(canvas, table, caption, "A slow decay for p = 1, a sharp one for p = 3.")


def _matrices(evidence: Evidence, settings: dict[int, str], how: str) -> Drawing:
    table: Table = {"p": [], "direction": [], "neuron": [], "cosine": []}
    with style.canvas(8.0, 2.9) as canvas:
        panels = canvas.subplots(1, 2)
        for axes, (p, setting) in zip(panels, settings.items(), strict=True):
            matrix, names = _ordered(evidence, setting, 150 if p == 1 else 20)
            mesh = style.cosine_matrix(axes, matrix, digits=0)
            mesh.set_linewidth(0.0 if p == 1 else 0.4)
            axes.set(aspect="auto", xticks=[], title=f"p = {p}", xlabel="neurons")
            axes.set_yticks(np.arange(len(names)) + 0.5, names)
            for (row, column), value in np.ndenumerate(matrix):
                entry = (p, names[row], column, float(value))
                for name, part in zip(table, entry, strict=True):
                    table[name].append(part)
        style.cosine_scale(canvas, mesh, list(panels))
    caption = (
        f"Cosines of the largest neurons of one net ({how}) with the mean directions of both "
        "classes and with the subclass centres. Neurons are grouped by their nearest direction."
    )
    return Drawing(canvas, table, caption, "Rows of the means light up for p = 1 only.")


def _ordered(evidence: Evidence, setting: str, most: int) -> tuple[np.ndarray, list[str]]:
    """Cosines [2 + K, neurons], neurons grouped by their nearest direction."""
    probe = evidence.probe(setting, "contributions")
    q = probe["q"][0].double().abs()
    dominant = int((q > 0.01 * q.max()).sum())
    top = q.topk(min(most, dominant)).indices
    both = np.concatenate(
        [np.asarray(probe["mean_cosine"][0][top]), np.asarray(probe["cosine"][0][top])], 1
    ).T.astype(float)
    order = np.argsort(both.argmax(0), kind="stable")
    names = ["mean +", "mean −", *(str(k + 1) for k in range(len(both) - 2))]
    return both[:, order], names
