"""Engines: several ways to take the same gradient-descent steps, behind one door.

Papers, probes and claims never mention an engine; `reference` is what the others are tested
against. `choose` asks the cost model of this machine which is fastest.
"""

from __future__ import annotations

from typing import Literal

from unmix.train.engines.base import Engine, Problem
from unmix.train.engines.gemm import Gemm
from unmix.train.engines.gram import Gram
from unmix.train.engines.reference import Reference

EngineName = Literal["auto", "reference", "gemm", "gram"]
ENGINES: dict[str, type[Engine]] = {"reference": Reference, "gemm": Gemm, "gram": Gram}


def choose(name: EngineName, problem: Problem, steps: int, batch: int | None) -> str:
    """The engine itself where one is named; else the fastest for so many steps."""
    if name != "auto":
        return name
    _, n, d = problem.x.shape
    return "gram" if n < 2 * d and steps >= 20 else "gemm"
