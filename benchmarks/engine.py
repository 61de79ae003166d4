"""Steps of two-layer nets against the loop that a researcher would write, in one process.

    python benchmarks/engine.py [--repeats 9]

"limit" is the time of the matrix products that a step cannot do without, at the best that is known
to do them here: W X^T and g X for `gemm`, C K for `gram`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import growth
import torch
from measure import Row, interleaved, keep, ratios
from problems import Case, Setup
from roof import roofs
from torch import Tensor

from unmix.data.clusters import Clusters
from unmix.experiment import Experiment, Samples
from unmix.nets.two_layer import TwoLayer
from unmix.train.base import Hooks, Start
from unmix.train.descent import Descent, GradientDescent
from unmix.train.engines import choose

DOUBLE, SINGLE = torch.float64, torch.float32
CASES = (
    Case("averaging baseline", 1000, 3072, 10, DOUBLE, goal=">= 14"),
    Case("averaging baseline", 1000, 3072, 10, SINGLE, goal=">= 4"),
    Case("shared data", 1000, 3072, 10, DOUBLE, replicas=32, goal=">= 30"),
    Case("shared data", 1000, 3072, 10, SINGLE, replicas=32, goal=">= 12"),
    Case("high dimension", 200, 100_000, 10, DOUBLE, goal=">= 400"),
    Case("high dimension", 200, 100_000, 10, SINGLE, goal=">= 400"),
    Case("wide", 1000, 1000, 2000, DOUBLE, goal=">= 1.9"),
    Case("wide", 1000, 1000, 2000, SINGLE, goal=">= 1.9"),
    Case("many points", 5000, 1000, 10, DOUBLE, goal=">= 1.3"),
    Case("many points", 5000, 1000, 10, SINGLE, goal=">= 1.3"),
    Case("pReLU p=3, SGD", 2000, 1000, 2000, DOUBLE, batch=100, p=3.0, goal=">= 2"),
    Case("pReLU p=3, SGD", 2000, 1000, 2000, SINGLE, batch=100, p=3.0, goal=">= 2"),
)


def measured(case: Case, repeats: int) -> tuple[Row, dict[str, Any]]:
    """The choice of `auto` against the plain loop, a step and a replica; and all engines."""
    setup = Setup.of(case)
    auto = choose("auto", setup.problem, case.steps, case.batch)
    # Coefficient space on mini-batches of a wide net would be the slower by far.
    names = ("reference", "gemm") if case.batch else ("reference", "gemm", "gram")
    works = {"plain": setup.plain(), "limit": setup.limit(auto)}
    seconds = interleaved(works | {name: setup.engine(name) for name in names}, repeats)
    gain = {
        name: [case.replicas * r for r in ratios(seconds["plain"], seconds[name])]
        for name in (*names, "limit")
    }
    reached = [100 * r for r in ratios(seconds["limit"], seconds[auto])]
    plain = 1e3 * statistics.median(seconds["plain"])
    row = Row(case.label, case.goal, gain[auto], gain["limit"], reached, auto, plain)
    return row, {"case": case.label} | {name: gain[name] for name in names}


class Watched(Descent):
    """A training that notes what its records cost."""

    spent = 0.0

    def _record(self, step: int, outputs: Tensor) -> None:
        start = time.process_time()
        super()._record(step, outputs)
        self.spent += time.process_time() - start


def recording(repeats: int) -> Row:
    """CPU time of the default schedule's rows over that of the baseline run without them."""
    e = Experiment(
        data=Clusters(), net=TwoLayer(), train=GradientDescent(), samples=Samples(), seeds=(0,)
    )
    share = []
    for _ in range(repeats + 1):
        begun = time.process_time()
        batch = e.data.sample(e.seeds, e.samples.train, "train")
        params = e.net.start(e.data, e.seeds, batch)
        descent = Watched(Start(e.net, e.data, params, batch, e.seeds, (e.train,)))
        descent.run(Hooks())
        whole = time.process_time() - begun
        share.append(100 * descent.spent / (whole - descent.spent))
    rows = len(e.train.record.steps(e.train.steps))
    label = f"recording {rows} rows of {e.train.steps} steps at the baseline, % of the run"
    # The first one warmed up.
    return Row(label, "<= 5", share[1:], by=descent.engine_name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = [measured(case, options.repeats) for case in CASES]
    rows = [*(row for row, _ in found), recording(options.repeats)]
    engines = [others for _, others in found]
    growth.draw(growth.costs(max(3, options.repeats // 3)), growth.apart("peaks"))
    million = growth.apart("million")
    keep("engine", rows, engines=engines, million=million, roofs=roofs(options.repeats))


if __name__ == "__main__":
    main()
