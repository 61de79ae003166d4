"""docs/performance.md from what the benchmarks (those that were run) kept in docs/performance.json.

python benchmarks/page.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from measure import KEPT, Row, cell, shown, table

PAGE = Path("docs/performance.md")
PARTS = ("engine", "steps", "flow")
SIGNS = {True: "yes", False: "**no**", None: ""}

TOP = """# Performance

The plain loop is what a researcher would write: nn.Module, autograd, torch.optim.SGD. *Times
faster* is CPU time a step and a replica on one thread, median [range] over interleaved repeats in
one process. *Limit* is the same ratio for nothing but the matrix products of that step, by the
fastest product known here; *reached* is how much of that limit the engine attains. It may exceed
100 % where an engine does not form the products at all.

`make bench` writes this page (about ten minutes); `docs/performance.json` keeps every repeat.
"""

MISSED = """## Where a goal or 70 % of the limit is missed

**pReLU by SGD in float64.** Two products of [100 1000] by [1000 2000] are all that a step must do,
and the plain loop spends more than half of its time in them, too: the limit itself lies below the
goal. In float32, where oneDNN uses the full vector width, the goal is met.

**Dominant neurons.** Dominant is whose contribution exceeds a hundredth of the largest; around that
edge SGD's noise and the flow disagree on a few. What these carry is in [flow.md](flow.md), neuron
by neuron; sums along a direction agree. (The data flow takes half a minute and is timed in fewer
repeats than the rest.)

**High dimension, share of the limit.** 200 points are so few that C K takes some ten microseconds;
the step is the twenty calls of torch around it. The goal is met all the same.

**Tiny patch CNNs, share of the limit.** Products of [80 20] by [20 20] are too small for any
library's full speed, and the element-wise passes are as large as they are.
"""

ROOF = """## The roof

Billions of operations a second in one product W X^T, by torch.bmm and by the product that the
engines use (`train/engines/product.py`). With few neurons memory may be the bound: beside them
stand the speed at which X passes through the product and that at which X can be read at all (its
sum).
"""

GROWTH = """## How cost grows

![CPU time of a step and peak memory against n, d, h and R](engine-growth.png)

Coefficient space (gram) does not depend on d, and pays for n with n^2; `gemm` is linear in both.
The plain loop trains one replica after the other; those that share data share every product.
Memory is the most that a process holds in a set-up and three steps, data included. (The plain loop
holds one net of the R, and its optimiser.)
"""


def rows(kept: dict[str, Any], part: str) -> list[Row]:
    return [Row(**row) for row in kept[part]["rows"]]


def goals(kept: dict[str, Any]) -> list[str]:
    """The one table."""
    head = ("case", "by", "goal", "measured", "met", "limit", "reached, %", "plain loop, ms a step")
    return table(head, [_goal(row) for part in PARTS if part in kept for row in rows(kept, part)])


def _goal(row: Row) -> list[str]:
    measured = cell(row.gain) if len(row.gain) > 1 else shown(row.gain[0])
    limits = [cell(values) if values else "" for values in (row.limit, row.reached)]
    plain = "" if row.plain != row.plain else shown(row.plain)
    return [row.case, row.by, row.goal, measured, SIGNS[row.met], *limits, plain]


def engines(kept: dict[str, Any]) -> list[str]:
    """Every engine beside the one that `auto` chose."""
    names = ("reference", "gemm", "gram")
    found = zip(kept["engine"]["engines"], rows(kept, "engine"), strict=False)
    lines = [
        [others["case"], *(cell(others[n]) if n in others else "" for n in names), row.by]
        for others, row in found
    ]
    return table(("case", *names, "auto"), lines)


def roof(kept: dict[str, Any]) -> list[str]:
    head = (
        "product",
        "torch.bmm, GFLOP/s",
        "ours, GFLOP/s",
        "X passes at, GB/s",
        "X is read at, GB/s",
    )
    names = ("torch", "ours", "bound", "read")
    lines = [[r["case"], *(shown(r[n]) for n in names)] for r in kept["engine"]["roofs"]]
    return table(head, lines)


def page(kept: dict[str, Any]) -> str:
    million = kept["engine"]["million"]
    machines = [f"- {part}: {kept[part]['machine']}" for part in PARTS if part in kept]
    return "\n".join(
        [
            TOP,
            *goals(kept),
            "",
            "*auto* (the column *by*) is the engine that the measured costs of this machine choose "
            "for 100 steps (`unmix list engines`). The set-up of coefficient space costs one "
            "product X X^T and is not part of a step; `auto` counts it.",
            "",
            "What was measured on:",
            "",
            *machines,
            "",
            MISSED,
            ROOF,
            *roof(kept),
            "",
            "## All engines",
            "",
            *engines(kept),
            "",
            GROWTH,
            "In a million dimensions (n=200, 10 neurons, float64; X is 1,600 MB, W 80 MB) 20 steps "
            f"take {million['held']:,.0f} MB with X in memory, and {million['drawn']:,.0f} MB with "
            "X drawn in blocks of 16,384 columns, which are never all there.",
            "",
            "## Symmetric net: what the default reach leaves out",
            "",
            "Largest deviation over largest entry, in float64. " + kept["steps"]["exactness"],
            "",
        ]
    )


def main() -> None:
    PAGE.write_text(page(json.loads(KEPT.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main()
