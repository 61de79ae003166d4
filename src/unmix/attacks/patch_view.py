"""What an attack sees of a patch CNN: held-out points, gradients by hand, and the judge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from unmix.attacks.objectives import TIE
from unmix.data.patches import Patched, Patches
from unmix.errors import AttackError
from unmix.experiment import Run
from unmix.nets.patch_cnn import PatchModel, margins
from unmix.streams import stream
from unmix.train.engines.smooth import smooth_for

# Relative to the largest output: far more than float32 loses in its sums.
DOUBT = 1e-3
Objective = Literal["Fy", "margin", "ce"]


@dataclass(frozen=True)
class PatchView:
    """Held-out points of all replicas, and the net that is attacked."""

    model: PatchModel
    batch: Patched
    seeds: tuple[int, ...]

    @classmethod
    def of(cls, run: Run, points: int | None = None) -> PatchView:
        model, batch = run.classifier, run.fresh(points or run.experiment.samples.test)
        if not (isinstance(model, PatchModel) and isinstance(batch, Patched)):
            raise AttackError("these attacks are for patch CNNs", "use attacks of suite-l2")
        if not torch.isfinite(model.w).all():
            raise AttackError("the model holds NaN or infinite weights", "see why the run stopped")
        return cls(model, batch, run.experiment.seeds)

    @property
    def data(self) -> Patches:
        return self.model.data

    def direction(
        self, features: Literal["robust", "non-robust"], y: Int[Tensor, "R n"]
    ) -> Float[Tensor, "R n 1 d"]:
        """u_y or v_y of each point."""
        table = self.data.axes()[0 if features == "robust" else 1].to(self.batch.x)
        return table[y].unsqueeze(2)

    @property
    def rivals(self) -> Iterator[Int[Tensor, "R n"]]:
        """Every other class of each point, one after the other."""
        for shift in range(1, self.data.k):
            yield (self.batch.y + shift) % self.data.k

    @cached_property
    def rival(self) -> Int[Tensor, "R n"]:
        """Another class of each point, at random."""
        n = self.batch.points
        shift = [stream(s, "attack.rival").integers(1, self.data.k, size=n) for s in self.seeds]
        return (self.batch.y + torch.stack([torch.from_numpy(s) for s in shift])) % self.data.k

    def ascent(self, x: Float[Tensor, "R n P d"], objective: Objective) -> Float[Tensor, "R n P d"]:
        """grad_X of -F_y, of max_{j != y} F_j - F_y, or of the cross-entropy."""
        smooth, w = smooth_for(self.model.net.activation(), x), self.model.w
        z = x.flatten(1, 2) @ w.flatten(1, 2).transpose(1, 2)
        z = z.reshape(*x.shape[:3], *w.shape[1:3])
        f = smooth.total(z)
        smooth.scale(z, self._side(f, objective).contiguous())
        g = z.reshape(len(x), -1, w.shape[1] * w.shape[2]) @ w.flatten(1, 2)
        return g.reshape(x.shape) * smooth.rho ** (1 - smooth.q)

    def looked(
        self, delta: Float[Tensor, "R n P d"]
    ) -> tuple[Bool[Tensor, "R n"], Bool[Tensor, "R n"]]:
        """Who may be misclassified, as the margin in the run's own precision is not clearly
        positive; and whom the search takes for misclassified, as it is not positive at all.

        A fast look that spares most replays by `broken`.
        """
        smooth, w = smooth_for(self.model.net.activation(), delta), self.model.w
        z = (self.batch.x + delta).flatten(1, 2) @ w.flatten(1, 2).transpose(1, 2)
        f = smooth.total(z.reshape(*delta.shape[:3], *w.shape[1:3]))
        margin = margins(f, self.batch.y)
        return margin <= DOUBT * f.amax(-1), margin <= 0

    def broken(self, delta: Float[Tensor, "R n P d"]) -> Bool[Tensor, "R n"]:
        """Who is misclassified with a perturbation, on the net in float64."""
        moved = self.batch.x.double() + delta.double()
        return self._exact.predict(moved) != self.batch.y

    def tied(self, delta: Float[Tensor, "R n P d"]) -> Bool[Tensor, "R n"]:
        """Whose margin in float64 is a tie, which the rounding of a search decides by chance."""
        x, y = self.batch.x.double(), self.batch.y
        left = self._exact.margin(x + delta.double(), y)
        return left.abs() <= TIE * self._exact.margin(x, y)

    @cached_property
    def _exact(self) -> PatchModel:
        return self.model.double()

    def _side(self, f: Float[Tensor, "R n k"], objective: Objective) -> Float[Tensor, "R n k"]:
        own = one_hot(self.batch.y, self.data.k).to(f)
        if objective == "ce":
            return f.softmax(-1) - own
        if objective == "Fy":
            return -own
        rival = f.masked_fill(own > 0, -torch.inf).argmax(-1)
        return one_hot(rival, self.data.k).to(f) - own
