"""Certified l_inf radii of patch CNNs, by intervals of the pre-activations.

Within radius eps every <w, x_p> moves by at most eps |w|_1, and s is nondecreasing, so that

    F_y(X + Delta) >= sum s(<w_yr, x_p> - eps |w_yr|_1),
    F_j(X + Delta) <= sum s(<w_jr, x_p> + eps |w_jr|_1),

sums over filters r and patches p. The difference of the two falls with eps; where it is positive
for every j no perturbation changes the class. Where no two filters share a coordinate (the minima
of Props 3.1 and 3.2) one perturbation attains every interval, and the radius is exact.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from unmix.certify.base import BOUND, EXACT, SLACK, Certificate
from unmix.errors import CertificateError
from unmix.experiment import Run
from unmix.nets.patch_cnn import PatchModel

DOUBLINGS, BISECTIONS = 60, 60
# Relative width at which a bisection ends: far below SLACK, by which the result is lowered.
NARROW = 1e-12
# By this share a witness goes beyond the certified radius.
PUSH = 1e-6


def interval(run: Run, points: int | None = None) -> Certificate:
    """Brackets of the first held-out points; upper ends only where the bound is exact."""
    model, batch = run.classifier, run.fresh(points or run.experiment.samples.test)
    if not isinstance(model, PatchModel):
        raise CertificateError("interval bounds are for patch CNNs", "see: unmix list certificates")
    if not torch.isfinite(model.w).all():
        raise CertificateError("the net holds NaN or infinite weights", "see why it stopped")
    return bracket(model.double(), batch.x.double(), batch.y)


def bracket(model: PatchModel, x: Float[Tensor, "R n P d"], y: Int[Tensor, "R n"]) -> Certificate:
    """Of labelled points, in float64."""
    radius = _radius(model, x, y)
    lower = radius * (1 - SLACK)
    witness = _witness(model, x, y, radius * (1 + PUSH))
    holds = (model.predict(x + witness) != y) & radius.isfinite()
    upper = torch.where(holds, radius * (1 + PUSH), torch.inf)
    status = torch.where(holds, EXACT, BOUND)
    witness = witness.masked_fill(~holds[..., None, None], 0).flatten(2)
    return Certificate(lower, upper, status, witness, norm="linf", method="interval")


def worst(
    model: PatchModel,
    x: Float[Tensor, "R n P d"],
    y: Int[Tensor, "R n"],
    eps: Float[Tensor, "R n"],
) -> Float[Tensor, "R n k"]:
    """Lower bounds of F_y - F_j within eps; infinity for j = y."""
    z = model.preactivations(x).unflatten(-1, model.w.shape[1:3])
    move = eps[..., None, None, None] * model.w.abs().sum(-1)[:, None, None]
    s, own = model.net.activation(), y.unsqueeze(-1)
    low, high = (s.value(z + sign * move).sum((2, 4)) for sign in (-1, 1))
    gap = low.gather(-1, own) - high
    return gap.masked_fill(one_hot(y, high.shape[-1]).bool(), torch.inf)


def _radius(
    model: PatchModel, x: Float[Tensor, "R n P d"], y: Int[Tensor, "R n"]
) -> Float[Tensor, "R n"]:
    """The largest eps at which the bound certifies; 0 for points that are wrong."""

    def safe(eps: Tensor) -> Bool[Tensor, "R n"]:
        return (worst(model, x, y, eps) > 0).all(-1)

    low = torch.zeros(y.shape, dtype=torch.float64)
    high = torch.full_like(low, 1e-6)
    for _ in range(DOUBLINGS):
        held = safe(high)
        if not held.any():
            break
        low, high = torch.where(held, high, low), torch.where(held, 2 * high, high)
    for _ in range(BISECTIONS):
        if (high - low <= NARROW * high).all():
            break
        middle = (low + high) / 2
        held = safe(middle)
        low, high = torch.where(held, middle, low), torch.where(held, high, middle)
    return low.masked_fill(~safe(torch.zeros_like(low)), 0.0)


def _witness(
    model: PatchModel,
    x: Float[Tensor, "R n P d"],
    y: Int[Tensor, "R n"],
    eps: Float[Tensor, "R n"],
) -> Float[Tensor, "R n P d"]:
    """eps (sign w_j - sign w_y), summed over the filters, for the class j that is nearest."""
    rival = worst(model, x, y, eps).argmin(-1)
    signs = model.w.sign().sum(2).clamp(-1, 1)
    rows = torch.arange(len(y)).unsqueeze(1)
    step = (signs[rows, rival] - signs[rows, y]).clamp(-1, 1)
    return (eps.unsqueeze(-1) * step).unsqueeze(2).expand_as(x)
