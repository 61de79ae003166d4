"""One attack alone, where thousands of images allow no more; what it misses is measured beside it.

`min-norm` is the strongest of the suite for its cost, and one run gives the whole curve; it is the
lean form of it, of which `benchmarks/attacks.py` measures what it gives and takes. `apgd` is
what the pReLU paper's tables were made with: APGD on the cross-entropy, 100 steps from one start.
"""

from __future__ import annotations

from typing import Literal

from unmix.attacks.base import Attack
from unmix.attacks.gradient import APGD
from unmix.attacks.minimum import CURVE
from unmix.attacks.suite import Suite
from unmix.attacks.threat import Threat

PUBLISHED = APGD(loss="ce", steps=100, restarts=0)


class SuiteOfOne(Suite):
    """`only` one attack in a norm; judge robustness by the other suites."""

    kind: Literal["suite-of-one"] = "suite-of-one"
    norm: Literal["l2", "linf", "l1"] = "linf"
    only: Literal["min-norm", "apgd"] = "min-norm"

    @property
    def threat(self) -> Threat:
        return Threat(norm=self.norm, box=self.box)

    @property
    def passes(self) -> int:
        """As measured on nets of 784 inputs: a whole curve, or two radii."""
        return 9 if self.only == "min-norm" else 25

    @property
    def members(self) -> tuple[Attack, ...]:
        return (CURVE if self.only == "min-norm" else PUBLISHED,)

    @property
    def controls(self) -> tuple[Attack, ...]:
        return ()
