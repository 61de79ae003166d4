"""Algorithm 1 (feature purification): descent of the symmetric net under a growing threshold.

    w_i <- w_i - eta grad_i (mean log(1 + e^(-y f)) + lambda sum_i Reg(w_i)),   b <- b + eta c_b / d

on fresh points at every step, which stands for N >= poly(d), or on the training points. An opening
of some steps with larger batches and smaller eta lets the lottery be decided by the population's
gradient: with few points a step, noise of size eta/batch would blur the start (eta/batch << b).
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from unmix.data.sparse_code import SparseCode
from unmix.nets.symmetric import Symmetric
from unmix.train.base import Start, Training
from unmix.train.engines.symmetric import Schedule
from unmix.train.walk import Noise, Phase, Plan, Source, Walks

# Looking at one entry of [points, neurons], in multiplications: with it the estimate is within a
# fifth of the CPU time that the paper's ladder took at d = 100, 200 and 400.
LOOK = 80
# A plain dense product does so many multiplications while a training does one.
DENSE = 4


class NoisyDescent(Training):
    """Clean training; `noise` says whether rho is averaged out or drawn for each point."""

    kind: Literal["noisy-descent"] = "noisy-descent"
    eta: float = Field(4.0, gt=0, description="step size; the loss is a mean over the batch")
    steps: int = Field(1000, ge=0, description="number of steps T_f, the opening included")
    batch: int | None = Field(1000, ge=1, description="points a step; none: all training points")
    opening: int = Field(150, ge=0, description="first steps, taken with opening_eta and batch")
    opening_eta: float = Field(2.0, gt=0)
    opening_batch: int = Field(4000, ge=1)
    points: Source = Field("fresh", description="new points at each step, or the training set")
    noise: Noise = Field("mean", description="rho averaged out, or drawn as in Algorithm 1")
    schedule: Schedule = Schedule()
    radius: float = Field(0.15, gt=0, description="l2 radius at which robustness is watched")

    trains = (Symmetric,)

    def length(self) -> int:
        return self.steps

    def cost(self, net: Symmetric, data: SparseCode, points: int) -> int:
        opening = min(self.opening, self.steps)
        seen = opening * self.opening_batch + (self.steps - opening) * (self.batch or points)
        return int(seen * net.m * (LOOK + (data.kappa if data.sparse else data.d / DENSE)))

    def threads(self, net: Any, data: Any, points: int, pack: int, dtype: str) -> int:
        """Its steps are compiled for one."""
        return 1

    def phases(self) -> tuple[Phase, ...]:
        """The opening and the rest."""
        opening = min(self.opening, self.steps)
        return (
            Phase(opening, self.opening_eta, self.opening_batch),
            Phase(self.steps - opening, self.eta, self.batch),
        )

    def begin(self, start: Start) -> Walks:
        plan = Plan(self.phases(), self.schedule, self.points, self.noise, self.radius)
        return Walks(plan, start, self.record.steps(self.steps))
