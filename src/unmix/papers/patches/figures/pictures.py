"""Fig 2: a point of the patch data, what is left of it with one feature, and its attack."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from unmix import style
from unmix.attacks.patch_suite import PatchSuite
from unmix.attacks.patch_view import PatchView
from unmix.papers.base import Drawing, Evidence
from unmix.papers.patches.settings import EPS

SHOWN = 12


def picture(evidence: Evidence) -> Drawing:
    """Coordinates of X, X_u, X_v and X + Delta, patch by patch."""
    run = evidence.run("std")
    view = PatchView.of(run, 8)
    data, batch = view.data, view.batch
    (free,) = PatchSuite(attacks=("model-free",)).members
    moved = batch.x + next(free.search(view, EPS)).clamp(-EPS, EPS)
    points: dict[str, Tensor] = {
        "$X$": batch.x,
        "$X_u$, robust alone": data.only(batch, "robust").x,
        "$X_v$, non-robust alone": data.only(batch, "non-robust").x,
        "$X + \\Delta$, model-free": moved,
    }
    outputs = {name: view.model.outputs(x)[0, 0].tolist() for name, x in points.items()}
    with style.canvas(7.4, 3.2) as canvas:
        panels = canvas.subplots(1, 4, sharey=True)
        for axes, (name, x) in zip(panels, points.items(), strict=True):
            shown = x[0, 0, :, :SHOWN].numpy()
            mesh = axes.pcolormesh(shown, cmap=style.DIVERGING, vmin=-2, vmax=2)
            f = ", ".join(f"{v:.1f}" for v in outputs[name])
            axes.set(title=f"{name}\nF = ({f})", xlabel="coordinate")
            axes.set_xticks(np.arange(4) + 0.5, ["$u_1$", "$u_2$", "$v_1$", "$v_2$"], fontsize=6)
        panels[0].set(ylabel="patch p")
        bar = canvas.colorbar(mesh, ax=list(panels), shrink=0.7, aspect=24, ticks=[-2, 0, 2])
        bar.outline.set_visible(False)
    table = {"point": list(points), "F_1": [f[0] for f in outputs.values()]}
    table["F_2"] = [f[1] for f in outputs.values()]
    caption = (
        f"A held-out point of class {int(batch.y[0, 0]) + 1} ({data.patches} patches, its first "
        f"{SHOWN} of {data.d} coordinates) and the outputs of a net after standard training. One "
        "patch holds the robust feature, all others the non-robust one; the model-free "
        "perturbation puts the other class's non-robust feature in its place."
    )
    return Drawing(canvas, table, caption, "Standard training follows the non-robust patches.")
