"""The decomposition of a patch CNN's weights (Lemmas D.2, D.16, E.2, E.9).

    w_ir = P_perp w_ir + A u_i + B v_i + sum_{y != i} (C_y u_y + D_y v_y)

The features are orthonormal, so the coefficients are inner products, noise or not. Without noise
P_perp w stays in the span of all P_perp w_ys(0) (D.16), and for standard training does not move
(D.2); with noise it takes up P N noise vectors, which in d < P N dimensions have no coefficients
of their own. So what is measured is the drift, and the share of it outside that span.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from unmix.data.patches import Patched, Patches
from unmix.experiment import Run
from unmix.nets.base import Params
from unmix.nets.patch_cnn import PatchModel
from unmix.probes.base import Measured, on


@on(Patches)
def patch_weights(run: Run) -> Measured:
    """A, B [R k m], C, D [R k m k-1], and what is left outside the features."""
    model: PatchModel = run.classifier  # type: ignore[assignment]
    batch: Patched = run.train_batch  # type: ignore[assignment]
    now, before = coefficients(model), coefficients(PatchModel(model.net, model.data, run.initial))
    values = {f"{name}_max": _largest(now[name]).mean(1) for name in "ABCD"}
    values |= {f"{name}_growth": _growth(now[name], before[name]) for name in "ABCD"}
    values |= _outside(model, run.initial) | _noise(model, batch)
    power = (now["B"].clamp_min(0) ** model.net.q).sum(-1)
    values["B_power"] = power.mean(1)
    arrays = {name: now[name] for name in "ABCD"} | {f"{n}_start": before[n] for n in "ABCD"}
    return Measured(values, arrays | {"B_powers": power})


def coefficients(model: PatchModel) -> dict[str, Tensor]:
    """A, B [R k m] and C, D [R k m k-1]."""
    k = model.data.k
    features = model.data.axes().to(model.w).flatten(0, 1)
    u, v = (model.w @ features.T).unflatten(-1, (2, k)).unbind(3)
    own = torch.arange(k)
    others = torch.tensor([[y for y in range(k) if y != i] for i in range(k)])
    table: dict[str, Tensor] = {}
    for diagonal, rest, inner in (("A", "C", u), ("B", "D", v)):
        table[diagonal] = inner[:, own, :, own].movedim(0, 1)
        picked = others[None, :, None, :].expand(*inner.shape[:3], -1)
        table[rest] = inner.gather(-1, picked)
    return table


def _largest(values: Tensor) -> Float[Tensor, "R k"]:
    """max over the filters of a class (and over other classes)."""
    return values.flatten(2).amax(-1)


def _growth(now: Tensor, before: Tensor) -> Float[Tensor, " R"]:
    """The largest coefficient over what it was at the start, mean over classes."""
    return (_largest(now) / _largest(before)).mean(1)


def _outside(model: PatchModel, initial: Params) -> dict[str, Float[Tensor, " R"]]:
    """Norms of P_perp w, of its drift, and of the drift outside span{P_perp w_ys(0)}."""
    features = model.data.axes().to(model.w).flatten(0, 1)
    now, before = ((w - (w @ features.T) @ features).flatten(1, 2) for w in (model.w, initial["w"]))
    drift = now - before
    basis = torch.linalg.qr(before.transpose(1, 2)).Q
    beyond = drift - (drift @ basis) @ basis.transpose(1, 2)
    return {
        "outside": before.norm(dim=-1).mean(1),
        "drift": drift.norm(dim=-1).mean(1),
        "beyond": beyond.norm(dim=-1).amax(1) / now.norm(dim=-1).amax(1),
    }


def _noise(model: PatchModel, batch: Patched) -> dict[str, Float[Tensor, " R"]]:
    """max and rms of <w, xi_p>, and of its part outside the features (Lemmas E.3, E.10)."""
    axis = model.data.axis(batch.y, batch.robust).unsqueeze(-1)
    xi = batch.x.scatter_add(-1, axis, -batch.signal.unsqueeze(-1)).flatten(1, 2)
    w = model.w.flatten(1, 2)
    whole = xi @ w.transpose(1, 2)
    inside = 2 * model.data.k
    part = xi[..., inside:] @ w[..., inside:].transpose(1, 2)
    return {
        "noise_max": whole.abs().amax((1, 2)),
        "noise_rms": whole.square().mean((1, 2)).sqrt(),
        "noise_max_outside": part.abs().amax((1, 2)),
    }
