"""Figs 2 and 5 to 9: cosine matrices of centres mu_i (rows) and neurons w_j (columns)."""

from __future__ import annotations

import numpy as np

from unmix import style
from unmix.papers.averaging.figures.radii import draw_curves
from unmix.papers.base import Drawing, Evidence


def cosines_binary(evidence: Evidence) -> Drawing:
    """Fig 2a: two labels; columns 1-5 are positive neurons."""
    return _one(evidence, "binary", "two labels: every neuron points at all centres of its label")


def cosines_fine(evidence: Evidence) -> Drawing:
    """Fig 2b: ten labels."""
    return _one(evidence, "k-class", "ten labels: every neuron points at one centre")


def overview(evidence: Evidence) -> Drawing:
    """Both learners side by side: what they learn, and how robust it makes them."""
    runs = {"two labels": "binary", "ten labels": "k-class"}
    matrices = {title: _matrix(evidence, name) for title, name in runs.items()}
    with style.canvas(9.0, 2.9) as canvas:
        panels = canvas.subplots(1, 3, width_ratios=(1, 1, 1.7))
        for axes, (title, matrix) in zip(panels, matrices.items(), strict=False):
            mesh = style.cosine_matrix(axes, matrix, digits=0)
            axes.set(xticks=[], yticks=[], title=title, xlabel="neurons", ylabel="centres")
        style.cosine_scale(canvas, mesh, list(panels[:2]))
        draw_curves(panels[2], evidence)
    caption = (
        "The same clusters, learned from two labels and from ten. With two, every neuron points at "
        "the average of its label's centres; with ten, at one centre each. Averaging costs a "
        "factor √(k/2) of robustness: both nets classify every clean point correctly."
    )
    alt = "Averaged weights lose robustness near radius 0.32 √d, separate ones near 0.69 √d."
    return Drawing(canvas, _table(matrices), caption, alt)


def samples(evidence: Evidence) -> Drawing:
    """Fig 5."""
    names = ("binary", *evidence.expand(("n=*",)))
    titles = [f"n = {evidence.run(name).experiment.samples.train}" for name in names]
    return _row(evidence, dict(zip(names, titles, strict=True)), "number of samples n")


def rates(evidence: Evidence) -> Drawing:
    """Fig 6, with 0.1 added."""
    names = {"eta=0.1": "η = 0.1", "eta=0.01": "η = 0.01", "binary": "η = 0.001"}
    return _row(evidence, names | {"eta=0.0001": "η = 0.0001"}, "learning rate η at T = 100")


def initial_scales(evidence: Evidence) -> Drawing:
    """Fig 7, with 0.01 added; sigma is a standard deviation."""
    names = {f"init={s}": f"σ = {s}" for s in ("0.01", "0.001", "0.0001")}
    return _row(evidence, names | {"binary": "σ = 0.00001"}, "initial scale σ")


def noise_ratios(evidence: Evidence) -> Drawing:
    """Fig 8; which of alpha and sigma varies is not stated, so both do."""
    names = {
        "snr=0.5,alpha": "0.5 by α",
        "snr=0.5,sigma": "0.5 by σ",
        "binary": "1",
        "snr=2,alpha": "2 by α",
        "snr=2,sigma": "2 by σ",
    }
    return _row(evidence, names, "signal-to-noise ratio α/σ")


def centre_cosines(evidence: Evidence) -> Drawing:
    """Fig 9, with 0.3 added; equicorrelated centres."""
    names = {f"cos={c}": f"cos = {c}" for c in ("1e-05", "0.001", "0.09", "0.3")}
    return _row(evidence, names, "common cosine of the centres")


def _one(evidence: Evidence, setting: str, what: str) -> Drawing:
    matrix = _matrix(evidence, setting)
    with style.canvas(4.4, 3.7) as canvas:
        axes = canvas.subplots()
        mesh = style.cosine_matrix(axes, matrix)
        axes.set_xlabel("weight $w_j$")
        axes.set_ylabel("centre $\\mu_i$")
        style.cosine_scale(canvas, mesh, axes)
    seeds = evidence.run(setting).replicas
    caption = f"cos(μᵢ, wⱼ), mean over {seeds} seeds. {what[0].upper()}{what[1:]}."
    return Drawing(canvas, _table({setting: matrix}), caption, f"Cosine matrix, {what}")


def _row(evidence: Evidence, names: dict[str, str], varied: str) -> Drawing:
    """Matrices side by side, with the averaging index and the radius under each."""
    matrices = {title: _matrix(evidence, name) for name, title in names.items()}
    with style.canvas(1.75 * len(names) + 0.6, 2.5) as canvas:
        panels = np.atleast_1d(canvas.subplots(1, len(names)))
        for axes, (name, title) in zip(panels, names.items(), strict=True):
            mesh = style.cosine_matrix(axes, matrices[title], digits=0)
            axes.set(xticks=[], yticks=[], title=title)
            axes.set_xlabel(_summary(evidence, name), fontsize=7.5)
        style.cosine_scale(canvas, mesh, list(panels))
    seeds = evidence.run(next(iter(names))).replicas
    caption = (
        f"Cosine matrices for several values of the {varied}, mean over {seeds} seeds; columns "
        "1-5 are positive neurons. Below each: mean own cosine, radius of the strongest attack "
        "in units of α√d."
    )
    return Drawing(canvas, _table(matrices), caption, f"Cosine matrices against {varied}")


def _matrix(evidence: Evidence, setting: str) -> np.ndarray:
    return np.asarray(evidence.probe(setting, "cosines")["matrix"].double().mean(0))


def _summary(evidence: Evidence, setting: str) -> str:
    own = float(evidence.probe(setting, "cosines")["on"].mean())
    radius = float(evidence.attacked(setting).mean_radius().mean())
    return f"own {own:.3f}, radius {radius / evidence.run(setting).data.alpha:.3f}"


def _table(matrices: dict[str, np.ndarray]) -> dict[str, list[object]]:
    rows = [(s, i, j, v) for s, m in matrices.items() for (i, j), v in np.ndenumerate(m)]
    names = ("setting", "centre", "weight", "cosine")
    columns = [list(column) for column in zip(*rows, strict=True)]
    indices = [columns[0], [i + 1 for i in columns[1]], [j + 1 for j in columns[2]]]
    return dict(zip(names, [*indices, [float(v) for v in columns[3]]], strict=True))
