"""Engines: several ways to take the same gradient-descent steps, behind one door.

Papers, probes and claims never mention an engine; `reference` is what the others are tested
against. `choose` asks the cost model of this machine which is fastest.
"""

from __future__ import annotations

from typing import Literal

import torch

from unmix.train.engines.base import Engine, Problem
from unmix.train.engines.costs import Job, measured
from unmix.train.engines.gemm import Gemm
from unmix.train.engines.gram import Gram
from unmix.train.engines.reference import Reference

EngineName = Literal["auto", "reference", "gemm", "gram"]
ENGINES: dict[str, type[Engine]] = {"reference": Reference, "gemm": Gemm, "gram": Gram}


def choose(name: EngineName, problem: Problem, steps: int, batch: int | None) -> str:
    """The engine itself where one is named; else the fastest for so many steps."""
    if name != "auto":
        return name
    if problem.eta.device.type != "cpu":
        # Only CPUs are measured; elsewhere the fewer multiplications win.
        return "gram" if problem.x.shape[1] < 2 * problem.x.shape[2] else "gemm"
    w, dtype = problem.params["w"], str(problem.eta.dtype).removeprefix("torch.")
    sets, n, d = problem.x.shape
    job = Job(len(w), sets, w.shape[1], n, d, steps, batch, problem.top.normed, dtype)
    return measured().fastest(job, (torch.get_num_threads(),)).engine
