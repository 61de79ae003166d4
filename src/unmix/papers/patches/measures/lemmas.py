"""The decompositions and recursions of appendix D, on noiseless trainings in float64."""

from __future__ import annotations

import torch
from torch import Tensor

from unmix.claims import Sample
from unmix.data.patches import Patched
from unmix.experiment import Run
from unmix.nets.patch_cnn import PatchModel
from unmix.papers.base import Evidence
from unmix.papers.patches.measures.snapshots import weights
from unmix.probes.patch_weights import coefficients


def drift(evidence: Evidence, setting: str) -> Sample:
    """Change of P_perp w, relative to it (Lemma D.2)."""
    probe = evidence.probe(setting, "patch-weights")
    return evidence.sample(setting, probe["drift"] / probe["outside"])


def recursion_error(evidence: Evidence, setting: str) -> Sample:
    """Largest deviation of the recursion's A, B, C, D from the training's (Lemmas 5.1, D.4)."""
    probe = evidence.probe(setting, "patch-recursions")
    return evidence.sample(setting, torch.stack([probe[name] for name in "ABCD"]).amax(0))


def two_variables(evidence: Evidence, name: str, setting: str) -> Sample:
    """Deviation of the recursion of A and B alone, at the end (Lemmas 5.2, D.22)."""
    return evidence.sample(setting, evidence.probe(setting, "patch-recursions")[name])


def attacked_points(evidence: Evidence, setting: str) -> Sample:
    """Largest deviation of X~ from the decomposition of Lemma D.17."""
    run = evidence.run(setting)
    model: PatchModel = run.classifier  # type: ignore[assignment]
    batch, attack = run.train_batch, run.experiment.train.attack
    side = -torch.nn.functional.one_hot(batch.y, run.data.k).to(batch.x)
    step = attack.scale(batch.points) * model.ascent(batch.x, side)
    wanted = batch.x + step.clamp(-attack.eps, attack.eps)
    return evidence.sample(setting, (decomposed(run, model) - wanted).abs().amax((1, 2, 3)))


def one_step(evidence: Evidence, setting: str) -> Sample:
    """Largest error of Lemma D.18's step of A and B, relative to the largest step."""
    run = evidence.run(setting)
    before, after = (weights(run, step) for step in run.experiment.train.snapshots)
    batch, data = run.train_batch, run.data
    xt = decomposed(run, before)
    target = torch.nn.functional.one_hot(batch.y, data.k).to(xt)
    pull = (target - before.outputs(xt).softmax(-1)).unsqueeze(2)  # [R n 1 k]
    slope = before.net.activation().slope(before.preactivations(xt))  # [R n P km]
    slope = slope.unflatten(-1, before.w.shape[1:3]) * pull.unsqueeze(-1)
    wrong = []
    for part, name in zip(data.axes().to(xt), "AB", strict=True):
        seen = xt @ part.T  # alpha~ or beta~ of each class, [R n P k]
        eta = run.experiment.train.eta / batch.points
        move = eta * torch.einsum("rnpkm,rnpk->rkm", slope, seen)
        real = coefficients(after)[name] - coefficients(before)[name]
        wrong.append((move - real).abs().amax((1, 2)) / real.abs().amax((1, 2)))
    return evidence.sample(setting, torch.stack(wrong).amax(0))


def decomposed(run: Run, model: PatchModel) -> Tensor:
    """X~ put together from its coefficients, each clamped on its own (Lemma D.17, two-sided).

    s' is taken at alpha A (beta B), which is <w, x_p> where there is no noise; the part outside the
    features is clamped coordinate by coordinate.
    """
    batch: Patched = run.train_batch  # type: ignore[assignment]
    data, attack = run.data, run.experiment.train.attack
    s = model.net.activation()
    own = coefficients(model)
    axes = data.axes().to(batch.x)
    outside = model.w - (model.w @ axes.flatten(0, 1).T) @ axes.flatten(0, 1)
    inner = [model.w @ part.T for part in axes]
    xt = torch.zeros_like(batch.x)
    for name, size, mine in (
        ("A", data.alpha[0], batch.robust),
        ("B", data.beta[0], ~batch.robust),
    ):
        slope = s.slope(size * own[name])  # [R k m]
        scale = -attack.scale(batch.points)
        moves = [scale * torch.einsum("rkm,rkmj->rkj", slope, part) for part in inner]
        rest = scale * torch.einsum("rkm,rkmd->rkd", slope, outside)
        clamped = [m.clamp(-attack.eps, attack.eps) for m in (*moves, rest)]
        whole = clamped[0] @ axes[0] + clamped[1] @ axes[1] + clamped[2]  # [R k d]
        delta = torch.stack([w[y] for w, y in zip(whole, batch.y, strict=True)])
        feature = axes[0 if name == "A" else 1][batch.y]
        point = (size * feature + delta).unsqueeze(2)
        xt = torch.where(mine.unsqueeze(-1), point, xt)
    return xt
