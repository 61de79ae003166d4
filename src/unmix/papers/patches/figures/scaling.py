"""The race at the start, the recursion beside the training, and how times and ends scale."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from unmix import style
from unmix.papers.base import Drawing, Evidence
from unmix.papers.patches.measures.phases import effective, paths
from unmix.papers.patches.measures.races import race_slope

Table = dict[str, list[Any]]


def races(evidence: Evidence) -> Drawing:
    """B_0 against A_0 of every class of every seed, marked by which feature was larger later."""
    run = evidence.run("races")
    a, b = paths(run)
    slope, won = race_slope(run), (b > a)[..., -1]
    marks = ((won, "non-robust larger", style.RED), (~won, "robust larger", style.BLUE))
    with style.canvas(4.6, 3.6) as canvas:
        axes = canvas.subplots()
        for mask, label, color in marks:
            axes.plot(a[..., 0][mask], b[..., 0][mask], "o", color=color, label=label)
        low, top = float(a[..., 0].min()) * 0.95, float(a[..., 0].max()) * 1.05
        ends = [slope * low, slope * top]
        axes.plot([low, top], ends, color=style.INK, linewidth=1, label="$B_0 = S A_0$")
        axes.set(xlabel="$A_0$, largest of the filters at the start", ylabel="$B_0$")
        axes.legend(loc="upper right", fontsize=7)
    table = {
        "A_0": a[..., 0].flatten().tolist(),
        "B_0": b[..., 0].flatten().tolist(),
        "A": a[..., -1].flatten().tolist(),
        "B": b[..., -1].flatten().tolist(),
    }
    caption = (
        f"Starts of {a.shape[0] * a.shape[1]} classes and which coefficient is larger after "
        f"{run.trace.steps[-1]} noiseless steps of standard training; S = {slope:.3f}."
    )
    return Drawing(canvas, table, caption, "Classes below the line learn the robust feature.")


def recursion(evidence: Evidence) -> Drawing:
    """A and B of the training, of the noiseless training, and of the recursion."""
    curves = {
        "adv-mean": ("training", "-"),
        "quiet-adv": ("without noise", "--"),
        "recursion-adv": ("recursion", ":"),
    }
    table: Table = {"curve": [], "quantity": [], "step": [], "value": []}
    with style.canvas() as canvas:
        axes = canvas.subplots()
        for setting, (label, dash) in curves.items():
            run = evidence.run(setting)
            for name, color, path in zip("AB", (style.BLUE, style.RED), paths(run), strict=True):
                values = path.mean(dim=(0, 1)).tolist()
                axes.plot(run.trace.steps, values, dash, color=color, label=f"{name}, {label}")
                table["curve"] += [label] * len(values)
                table["quantity"] += [name] * len(values)
                table["step"] += list(run.trace.steps)
                table["value"] += values
        axes.set(xlabel="iteration", ylabel="largest coefficient, mean", yscale="log")
        axes.legend(loc="lower right", fontsize=7)
    caption = (
        "Largest A and B, mean over classes and seeds: the training with noise on 100 points, the "
        "same without noise on one point a class, and the two-variable recursion from its start."
    )
    return Drawing(canvas, table, caption, "The three curves lie close to each other.")


def scaling(evidence: Evidence) -> Drawing:
    """Four ladders of noiseless trainings."""
    table: Table = {"ladder": [], "x": [], "quantity": [], "value": []}
    with style.canvas(7.0, 5.0) as canvas:
        panels = canvas.subplots(2, 2)
        _times(panels[0][0], evidence, "quiet-eta*", "η", table)
        _ends(panels[0][1], evidence, table)
        _times(panels[1][0], evidence, "quiet-alpha*", "α", table)
        _winners(panels[1][1], evidence, table)
    caption = (
        "Noiseless adversarial training around η = 0.1, η̃ = 10, ε = 1.2, α = 2, β = 1: times of "
        "the phases against η and α, the final B against η̃ (line: slope −1/3), and the share of "
        "classes that end with A > B against ε (dotted: β). Bars are the range over seeds."
    )
    return Drawing(canvas, table, caption, "Times fall as 1/η, the final B as the cube root of η̃.")


def _times(axes: Axes, evidence: Evidence, ladder: str, symbol: str, table: Table) -> None:
    names = evidence.expand((ladder,))
    runs = [evidence.run(n) for n in names]
    x = [r.experiment.train.eta if symbol == "η" else r.data.alpha[0] for r in runs]
    phases = (("saturation", style.RED), ("takeoff", style.GREEN), ("crossing", style.BLUE))
    for phase, color in phases:
        values = np.stack([evidence.probe(n, "patch-phases")[phase].numpy() for n in names])
        if np.isnan(values).any():
            # A ladder whose trainings end before this phase has no times of it.
            continue
        _bars(axes, x, values, phase, color, table, symbol)
    axes.set(xscale="log", yscale="log", xlabel=symbol, ylabel="iteration")
    style.ticks_at(axes.xaxis, x)
    if axes.containers:
        axes.legend(fontsize=7)


def _ends(axes: Axes, evidence: Evidence, table: Table) -> None:
    names = evidence.expand(("quiet-step*",))
    x = [effective(evidence, n) for n in names]
    values = np.stack([evidence.probe(n, "patch-weights")["B_max"].numpy() for n in names])
    _bars(axes, x, values, "largest B", style.RED, table, "η̃")
    line = values.mean() * (np.array(x) / np.exp(np.log(x).mean())) ** (-1 / 3)
    axes.plot(x, line, color=style.INK, linewidth=1, label="slope −1/3")
    axes.set(xscale="log", yscale="log", xlabel="η̃", ylabel="final B")
    style.ticks_at(axes.xaxis, x)
    axes.legend(fontsize=7)


def _winners(axes: Axes, evidence: Evidence, table: Table) -> None:
    names = evidence.expand(("quiet-eps*",))
    runs = [evidence.run(n) for n in names]
    x = [r.experiment.train.attack.eps for r in runs]
    ended = [[path[..., -1] for path in paths(r)] for r in runs]
    won = np.stack([(a > b).double().mean(1).numpy() for a, b in ended])
    _bars(axes, x, won, "A > B", style.BLUE, table, "ε")
    axes.axvline(1, color=style.MUTED, linewidth=0.7, linestyle=":")
    axes.set(xlabel="ε", ylabel="share of classes with A > B", ylim=(-0.05, 1.05))


def _bars(
    axes: Axes,
    x: list[float],
    values: np.ndarray,
    label: str,
    color: str,
    table: Table,
    ladder: str,
) -> None:
    mean = values.mean(1)
    spread = np.stack([mean - values.min(1), values.max(1) - mean])
    axes.errorbar(x, mean, spread, fmt="o-", color=color, label=label, linewidth=1)
    table["ladder"] += [ladder] * len(x)
    table["x"] += list(x)
    table["quantity"] += [label] * len(x)
    table["value"] += mean.tolist()
