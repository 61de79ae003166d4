"""The responses of section 3 (Fig 3), and cosines between neurons of trained nets (Fig 2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from unmix import style
from unmix.papers.base import Drawing, Evidence
from unmix.papers.purification.measures.trends import probed
from unmix.papers.purification.settings import world

Table = dict[str, list[Any]]


def responses(evidence: Evidence) -> Drawing:
    """Fig 3: a feature's response, linear, thresholded and by a pair of ReLUs."""
    data = world(100)
    small = data.k**-0.5
    b = small / 2
    s = np.linspace(-1.2, 1.2, 481) * 2 * small
    curves = {
        "linear": (s, style.RED),
        "thresholded": (s * (np.abs(s) >= b), style.BLUE),
        "symmetric ReLU": (np.maximum(s - b, 0) - np.maximum(-s - b, 0), style.GREEN),
    }
    table: Table = {"input": list(s)}
    with style.canvas(5.4, 3.2) as canvas:
        axes = canvas.subplots()
        for label, (values, color) in curves.items():
            axes.plot(s, values, color=color, label=label)
            table[label] = list(values)
        axes.axvspan(-b, b, color=style.MUTED, alpha=0.12, linewidth=0)
        axes.set(xlabel="$\\langle M_j, x\\rangle$", ylabel="response")
        axes.legend(loc="upper left")
    caption = (
        "Responses to one feature at d = 100, k = 10. A perturbation spread over all features "
        "moves each by less than b = 1/(2√k) (shaded): only the linear rule adds it up."
    )
    return Drawing(canvas, table, caption, "The linear response alone is not zero near zero.")


def cosines(evidence: Evidence) -> Drawing:
    """Fig 2: |cos| with the start, across adversarial training, and between neurons."""
    ladder = evidence.expand(("purified-d*",))
    names = {
        "θ(w⁰, w)": ("dense-mixture", "theta_start", "clean", style.RED),
        "θ(w, w′)": ("purified", "theta", "purified", style.BLUE),
        "θ(wᵢ, wⱼ) clean": ("dense-mixture", "theta_others", "clean", style.ORANGE),
        "θ(wᵢ, wⱼ) purified": ("dense-mixture", "theta_others", "purified", style.GREEN),
    }
    sizes = [evidence.run(s).data.d for s in ladder]
    table: Table = {"d": sizes}
    with style.canvas(5.6, 3.2) as canvas:
        axes = canvas.subplots()
        for label, (probe, value, stage, color) in names.items():
            rows = np.stack(
                [
                    np.asarray(
                        probed(evidence, s.replace("purified", stage), probe)[value].double()
                    )
                    for s in ladder
                ]
            )
            axes.semilogx(sizes, rows.mean(1), "o-", color=color, label=label)
            axes.fill_between(sizes, rows.min(1), rows.max(1), color=color, alpha=0.15, linewidth=0)
            table[label] = list(rows.mean(1))
        style.ticks_at(axes.xaxis, [float(d) for d in sizes])
        axes.set(xlabel="dimension d", ylabel="mean |cosine|", ylim=(0, 1))
        style.label_ends(axes)
    caption = (
        "Theory counterpart of Fig 2, means over living neurons (bands: range over seeds). Clean "
        "training leaves the start, adversarial training stays near the clean neurons, and what "
        "neurons have in common — the dense mixture — goes."
    )
    alt = "Cosines with the start fall, cosines across adversarial training stay near 0.9."
    return Drawing(canvas, table, caption, alt)
