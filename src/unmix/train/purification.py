"""Algorithm 2 (feature purification): the same descent on points that an attack has moved.

    x_adv = x + A(f, x, y, r),   |A|_p <= tau,   w <- w - eta grad Obj(x_adv),   b as it is

It begins with the clean training in `clean` (0 steps: with the net's own start). From random
weights the bias must still grow and tau must be 0 at first, or the attack destroys the signal
before any neuron has learned one.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from unmix.data.sparse_code import SparseCode
from unmix.nets.symmetric import Symmetric
from unmix.perturbations.gradient import FGM
from unmix.spec import AnySpec, Kind
from unmix.train.base import Start, Training
from unmix.train.noisy_descent import DENSE, LOOK, NoisyDescent
from unmix.train.walk import Phase, Plan, Walks


class Purification(Training):
    """Clean training first, then `steps` steps against an attack of radius tau."""

    kind: Literal["purification"] = "purification"
    clean: NoisyDescent = NoisyDescent()
    attack: Annotated[AnySpec, Kind("perturbations")] = FGM()
    tau: float = Field(0.15, ge=0, description="radius of the attack, in its norm")
    steps: int = Field(300, ge=0, description="number of adversarial steps T_g")
    eta: float = Field(4.0, gt=0)
    batch: int | None = Field(1000, ge=1)
    hold: int = Field(0, ge=0, description="first of these steps, with radius 0")
    rise: int = Field(0, ge=0, description="steps over which the radius then grows to tau")
    bias: Literal["frozen", "grows"] = Field("frozen", description="b in the adversarial steps")

    trains = (Symmetric,)

    def length(self) -> int:
        return self.clean.steps + self.steps

    def cost(self, net: Symmetric, data: SparseCode, points: int) -> int:
        """A gradient at sparse points and a step on dense ones, whose product is a fast one."""
        entries = self.steps * (self.batch or points) * net.m
        each = 2 * (LOOK + data.kappa) + data.d / DENSE
        return self.clean.cost(net, data, points) + int(entries * each)

    def threads(self, net: Any, data: Any, points: int, pack: int, dtype: str) -> int:
        """Its steps are compiled for one."""
        return 1

    def phases(self) -> tuple[Phase, ...]:
        """Clean ones and the adversarial one."""
        adversarial = Phase(
            self.steps,
            self.eta,
            self.batch,
            self.attack,
            self.tau,
            self.hold,
            self.rise,
            self.bias == "grows",
        )
        return *self.clean.phases(), adversarial

    def begin(self, start: Start) -> Walks:
        c = self.clean
        plan = Plan(self.phases(), c.schedule, c.points, c.noise, self.tau or c.radius)
        return Walks(plan, start, self.record.steps(self.length()))
