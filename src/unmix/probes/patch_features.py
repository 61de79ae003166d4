"""What a patch CNN has learned: feature-learning accuracies and graded shares (Def 4.1, A.1).

    FL_R = P(argmax F(X_u) = y),  FL_NR = P(argmax F(X_v) = y),   X_u, X_v with one feature alone
    share_R = E F_y(X_u) / (E F_y(X_u) + E F_y(X_v))

The accuracies saturate: a net whose output comes to 94 % from robust features may still classify
every X_v. The share does not. "Replaced by zero" has two readings: the feature goes and the noise
of its patch stays, or the patch goes.
"""

from __future__ import annotations

from typing import Literal

from jaxtyping import Float
from torch import Tensor

from unmix.data.patches import Patched, Patches
from unmix.experiment import Run
from unmix.nets.patch_cnn import PatchModel
from unmix.probes.base import Measured, on

READINGS: tuple[Literal["feature", "patch"], ...] = ("feature", "patch")


@on(Patches)
def patch_features(run: Run) -> Measured:
    """Of the final weights, on held-out points."""
    model: PatchModel = run.classifier  # type: ignore[assignment]
    batch: Patched = run.test_batch  # type: ignore[assignment]
    return Measured(learned(model, batch) | {"train": model.accuracy(run.train_batch)})


def learned(model: PatchModel, batch: Patched) -> dict[str, Float[Tensor, " R"]]:
    """All of it, for any weights and points."""
    values = {"test": model.accuracy(batch), "margin": model.margin(batch.x, batch.y).mean(1)}
    for gone in READINGS:
        tail = "" if gone == "feature" else "_patch"
        robust, other = (model.data.only(batch, name, gone) for name in ("robust", "non-robust"))
        values[f"robust{tail}"] = model.accuracy(robust)
        values[f"non_robust{tail}"] = model.accuracy(other)
        own = [_own(model, part).mean(1) for part in (robust, other)]
        values[f"share{tail}"] = own[0] / (own[0] + own[1])
    return values


def _own(model: PatchModel, batch: Patched) -> Float[Tensor, "R n"]:
    """F_y."""
    return model.outputs(batch.x).gather(-1, batch.y.unsqueeze(-1))[..., 0]
