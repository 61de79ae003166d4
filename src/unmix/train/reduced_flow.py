"""The reduced flow: pReLU training in the span of the centres, where only it matters.

On exact centres H_j lies in span(mu), so the part of w_j outside only changes its length: a neuron
is (P u_j, |u_j - P u_j|), k + 1 numbers, whatever d is. That is exact for data without noise.

With isotropic noise N(0, s^2 I), noise = "smoothed" averages relu^p over it: the same k + 1 numbers
with phi = M_p (see `fields`). It is an approximation of the flow on n points: it is the flow of
infinitely many while f ~ 0, and later it neglects that noise and e^(-y f) are correlated.
noise = "none" forgets the noise; at p = 1 it then ends in means over parts of a label's centres.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import torch
from jaxtyping import Float
from pydantic import Field as Described
from torch import Tensor
from torch.nn.functional import normalize

from unmix.data.clusters import Clusters
from unmix.errors import SpecError
from unmix.nets.prelu import unit
from unmix.train.angles import Angles
from unmix.train.base import Start
from unmix.train.fields import Field, PointField, SmoothField, State
from unmix.train.flow import USUAL, Flowing, FlowTraining

# Element-wise passes over neurons and centres of an evaluation, for an estimate of its time.
PASSES = 20


class ReducedFlow(FlowTraining):
    """An approximation of `flow` for clusters, thousands of times cheaper; never its substitute."""

    kind: Literal["reduced-flow"] = "reduced-flow"
    noise: Literal["smoothed", "none"] = Described(
        "smoothed", description="average the noise out of relu^p, or forget it"
    )
    frequencies: Literal["sample", "population"] = Described(
        "sample", description="cluster weights: as in the training set, or as in the distribution"
    )

    def cost(self, net: Any, data: Any, points: int) -> int:
        """Drawing the points, the basis, and evaluations whose size is that of the centres."""
        once = int(data.size) * (points + net.neurons(data) * data.k)
        return once + USUAL * PASSES * net.neurons(data) * data.k * (data.k + 1)

    def flowing(self, p: float, start: Start, r: int) -> Flowing:
        if self.noise == "smoothed" and p != int(p):
            message = f"train.noise: 'smoothed' needs a whole power, the net has p={p:g}"
            raise SpecError(message, "--set train.noise=none, or train.kind=flow")
        w, data = start.params["w"][r], start.data
        centres = data.centres(start.seeds[r : r + 1])[0].to(w.device)
        basis = torch.linalg.qr(centres.T).Q
        angles, u, a = Angles.of(w, start.params["v"][r])
        inside = u.double() @ basis
        rest = u.double() - inside @ basis.T
        both = torch.cat([inside, rest.norm(dim=-1, keepdim=True)], 1)
        points = (data.alpha * centres @ basis).to(w)
        field = self._field(p, data, points, self._weights(start, r).to(w.device), angles)
        field = replace(field, pace=1.0 if self.reduction == "mean" else float(start.batch.points))
        state = State(normalize(both, dim=-1).to(w), a)
        return Lifted(field, state, basis.to(w), unit(rest).to(w))

    def _field(
        self,
        p: float,
        data: Clusters,
        centres: Float[Tensor, "k k"],
        weight: Float[Tensor, " k"],
        angles: Angles,
    ) -> Field:
        """Centres in their own basis, with a last coordinate 0, weighted by their frequencies."""
        there = weight > 0
        x = torch.nn.functional.pad(centres, (0, 1))[there]
        y, share = data.signs.to(x)[there], weight[there] / weight.sum()
        if self.noise == "none":
            return PointField(x, y, share, 1.0, p, self.loss, angles)
        size = data.sigma * data.unit / data.d**0.5
        return SmoothField(x, y, share, 1.0, p, self.loss, angles, size)

    def _weights(self, start: Start, r: int) -> Float[Tensor, " k"]:
        data = start.data
        if self.frequencies == "sample":
            return torch.bincount(start.batch.cluster[r].cpu(), minlength=data.k).double()
        return torch.tensor(data.weights or [1.0] * data.k, dtype=torch.float64)


class Lifted(Flowing):
    """A replica whose last coordinate stands for the part of u outside the span of the centres."""

    def __init__(
        self,
        field: Field,
        start: State,
        basis: Float[Tensor, "d k"],
        outside: Float[Tensor, "h d"],
    ) -> None:
        super().__init__(field, start)
        self.basis, self.outside = basis, outside

    def directions(self, u: Float[Tensor, "h r"]) -> Float[Tensor, "h d"]:
        """u = sum_k u_k b_k + u_perp (the direction that it had outside)."""
        return u[:, :-1] @ self.basis.T + u[:, -1:] * self.outside
