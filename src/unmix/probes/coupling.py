"""The linear functions that stand for the net in the proofs (purification, Lemmas D.6, F.11, F.12).

With the indicators of a net w at x frozen and its noise averaged out, put mu for w: as f is the
value at mu = w,

    g(mu; x) = f(x) + sum_i G_i(x) <mu_i - w_i, x>                              (Def D.3, Def F.10)

main    the part of g(mu*; x) that mu* brings, sum_i G_i(x) <mu*_i, x>, is <w*, z>     (Claim D.7)
robust  g(w; x + delta, x) = f(x) + <df/dx, delta> is f(x + delta)                    (Lemma F.11)
kept    the same with the pure parts g_i of the clean neurons for w is f_clean(x)     (Lemma F.12)

mu*_i = w*_j/n_j M_j at the n_j winners of feature j of the clean net, instead of its sure neurons:
at finite size most features have none. delta is FGM's of the net after adversarial training.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from unmix.data.sparse_code import SparseCode
from unmix.experiment import Run
from unmix.nets.activations import GaussianRelu
from unmix.nets.base import Params
from unmix.perturbations.base import dense
from unmix.perturbations.gradient import FGM
from unmix.probes.base import Measured, on
from unmix.probes.coded import Coded, per_replica

# Points, taken some at a time: a dense [points m] is formed of each part.
POINTS, PART = 1000, 250
# D.7 is an equality: points at which it holds up to this share of the score's deviation.
NEAR = 0.05


@on(SparseCode)
def coupling(run: Run) -> Measured:
    """How far each coupling is from what it stands for, over the size of that."""
    adversarial = "before" in run.trace.final
    clean, net = Coded.of(run, "before" if adversarial else "after"), Coded.of(run)
    net.orthogonal()
    values = _main(clean)
    if adversarial:
        train = run.experiment.train
        values |= _robust(clean, net, FGM(norm=train.attack.norm), train.tau)
    return Measured({name: per_replica(list(value)) for name, value in values.items()})


def _main(clean: Coded) -> dict[str, Tensor]:
    """Claims D.7 and D.8."""
    x, _ = clean.points(POINTS)
    z = clean.data.codes(clean.seeds, POINTS, "test", clean.w.dtype)[0].dense()
    score = (z @ clean.label_vector.unsqueeze(-1))[..., 0]
    f = clean.learner.outputs(x)
    brought = frozen(clean.params, dense(x), dense(x), stand_ins(clean))
    small = frozen(clean.params, dense(x), dense(x), clean.u * ~clean.mixture.large)
    own, size = (clean.learner.input_gradient(x) * dense(x)).sum(-1), score.std(1)
    return {
        "main_correlation": _correlation(brought, score),
        "main_uncorrelated": 1 - _correlation(brought, score),
        "main_exact": ((brought - score).abs() <= NEAR * size.unsqueeze(1)).double().mean(1),
        # g_{t,4} of Claim D.8: what does not depend on mu, in units of a score of alpha = 1.
        "main_bias": (f - own).std(1) / size,
        # What is off N_i in the neurons, as a part of the output.
        "small_share": small.abs().mean(1) / f.abs().mean(1),
    }


def _robust(clean: Coded, net: Coded, fgm: FGM, tau: float) -> dict[str, Tensor]:
    """Lemmas F.11, F.12 and F.15."""
    x, y = net.points(POINTS)
    delta = fgm.perturb(net.scene, x, y, tau)
    parts = clean.mixture
    pure = clean.u * parts.large
    moved = net.u - pure
    at = dense(x)
    linear = net.learner.outputs(x) + (net.learner.input_gradient(x) * delta).sum(-1)
    without = frozen(net.params, at, at + delta, moved)
    there, before = net.learner.outputs(at + delta), clean.learner.outputs(x)
    size = torch.linalg.vector_norm(moved, dim=-1)
    winners = clean.alive() & parts.alone
    typical = parts.peak.abs().masked_fill(~winners, torch.nan).nanmedian(1).values
    return {
        "robust_gap": (linear - there).abs().mean(1) / there.abs().mean(1),
        "kept_gap": (linear - without - before).abs().mean(1) / before.abs().mean(1),
        "moved_most": size.amax(1) / typical,
    }


def frozen(
    params: Params,
    x: Float[Tensor, "R n d"],
    there: Float[Tensor, "R n d"],
    mu: Float[Tensor, "R m d"],
) -> Float[Tensor, "R n"]:
    """sum_i G_i(x) <mu_i, there>: the indicators of w at x, other weights at other points."""
    relu, found = GaussianRelu(float(params["sigma"][0])), []
    for points, other in zip(x.split(PART, 1), there.split(PART, 1), strict=True):
        s = points @ params["w"].transpose(1, 2)
        b = params["b"].to(s).reshape(-1, 1, 1)
        g = relu.slope(s - b) + relu.slope(-s - b)
        found.append(((g @ mu) * other).sum(-1))
    return torch.cat(found, 1)


def stand_ins(coded: Coded) -> Float[Tensor, "R m d"]:
    """mu*: w*_j/n_j on feature j at its n_j winners, living neurons with |N_i| = 1; else 0."""
    parts, w = coded.mixture, coded.label_vector
    winners = (coded.alive() & parts.alone & parts.right_sign).to(w)
    count = torch.zeros_like(w).scatter_add_(1, parts.top, winners)
    share = winners * (w / count.clamp_min(1)).gather(1, parts.top)
    return torch.zeros_like(coded.u).scatter_(2, parts.top.unsqueeze(-1), share.unsqueeze(-1))


def _correlation(one: Float[Tensor, "R n"], other: Float[Tensor, "R n"]) -> Float[Tensor, " R"]:
    """Pearson's, through 0: both are odd in z."""
    return (one * other).sum(1) / (one.norm(dim=1) * other.norm(dim=1))
