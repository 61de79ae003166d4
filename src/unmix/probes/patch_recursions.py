"""The paper's recursions, run from a training's own start, and how far they end from it.

Standard training: all coefficients of Lemma D.4 (exact without noise), U = <w_ir, u_y> and
V = <w_ir, v_y> with f_y the share of class y among the training points,

    U <- U + eta f_y (1[i=y] - logit_i(y)) n_R s'(alpha U) alpha,     V alike with beta, n_NR,
    F_i(y) = n_R sum_r s(alpha U_iry) + n_NR sum_r s(beta V_iry).

Adversarial training: A and B alone, with the constants of `patch-recursion` (Lemmas 5.2, D.22).
Deviations are those of the largest coefficient of a class, relative to it, at the end and at worst.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from unmix.data.patches import Patches
from unmix.errors import DataError
from unmix.experiment import Run
from unmix.probes.base import Measured, on
from unmix.train.base import Hooks, Start
from unmix.train.engines.patch_ascent import Ascent
from unmix.train.patch_recursion import PatchRecursion
from unmix.train.patches import PatchDescent


@on(Patches)
def patch_recursions(run: Run) -> Measured:
    """`A`, `B` (and `C`, `D`) deviations of the recursion that belongs to the training."""
    train = run.experiment.train
    if not isinstance(train, PatchDescent):
        raise DataError("the recursions are those of a patch CNN", "train it by patch-descent")
    if train.ascent is None:
        return _standard(run, train)
    return _adversarial(run, train, train.ascent)


def _standard(run: Run, train: PatchDescent) -> Measured:
    data = run.data
    y = run.train_batch.y
    share = torch.stack([(y == c).double().mean(1) for c in range(data.k)], 1)
    features = data.axes()
    inner = [run.initial["w"].double() @ part.T for part in features]
    u, v = recursion(run, inner[0], inner[1], share, train)
    now = [run.params["w"].double() @ part.T for part in features]
    values = {}
    own = torch.eye(data.k, dtype=torch.bool)[:, None, :]
    for name, off, mine, theirs in (("A", "C", u, now[0]), ("B", "D", v, now[1])):
        wrong = (mine - theirs).abs()
        values[name] = wrong.masked_fill(~own, 0).amax((1, 2, 3)) / theirs.abs().amax((1, 2, 3))
        values[off] = wrong.masked_fill(own, 0).amax((1, 2, 3))
    return Measured(values, {"U": u, "V": v})


def recursion(
    run: Run, u: Tensor, v: Tensor, share: Float[Tensor, "R k"], train: PatchDescent
) -> tuple[Float[Tensor, "R k m k"], Float[Tensor, "R k m k"]]:
    """U and V after all steps."""
    data, s = run.data, run.experiment.net.activation()
    alpha, beta = sum(data.alpha) / 2, sum(data.beta) / 2
    others = data.patches - data.robust
    target = torch.eye(data.k, dtype=u.dtype)
    for _ in range(train.steps):
        f = data.robust * s.value(alpha * u).sum(2) + others * s.value(beta * v).sum(2)
        pull = train.eta * (share.unsqueeze(1) * (target - f.softmax(1))).unsqueeze(2)
        u = u + pull * data.robust * s.slope(alpha * u) * alpha
        v = v + pull * others * s.slope(beta * v) * beta
    return u, v


def _adversarial(run: Run, train: PatchDescent, attack: Ascent) -> Measured:
    alone = PatchRecursion(
        eta=train.eta,
        steps=train.steps,
        step=attack.scale(run.experiment.samples.train),
        eps=attack.eps,
        record=train.record,
    )
    e = run.experiment
    start = Start(e.net, e.data, run.initial, run.train_batch, e.seeds, (alone,))
    _, trace = alone.begin(start).run(Hooks())
    values, arrays = {}, {}
    for name in "AB":
        mine, theirs = (
            torch.stack([t.columns[f"{name}{i + 1}"] for i in range(e.data.k)], 1).double().mean(1)
            for t in (trace, run.trace)
        )
        wrong = (mine / theirs - 1).abs()
        values[name], values[f"{name}_worst"] = wrong[:, -1], wrong.amax(1)
        arrays[f"{name}_path"] = mine
    return Measured(values, arrays)
