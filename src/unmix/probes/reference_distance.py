"""How far a net is from the pReLU paper's F (p = 1) or F^(p), up to scale (Algorithm 1, A.1).

    dist(f, F) = inf_{c > 0} sup_{|x| = |mu|} |c f(x) - F(x)| / |mu|^p

Algorithm 1 fits c by least squares and climbs |c f - F|^2 by normalised projected gradient ascent;
its find lies below the supremum for that c. Beside it stand two closed forms: at points x_i with
a_i = f(x_i), b_i = F(x_i) no c at all does better than

    max_{i,j} |a_i b_j - a_j b_i| / (|a_i| + |a_j|)         (a lower bound of dist: two lines cross)

and |relu(<u,x>)^p - relu(<m,x>)^p| <= p |u - m| on the unit sphere gives an upper one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from unmix.data.clusters import Clusters
from unmix.experiment import Run
from unmix.nets.activations import Power
from unmix.nets.form import Form
from unmix.nets.prelu import PowerNet
from unmix.nets.prelu_constructed import PReLUAveraging, PReLUSubclasses
from unmix.probes.base import Measured, on
from unmix.streams import normals

# Neurons that together add less than this share of all contributions are left out of the search.
NEGLIGIBLE = 1e-6
POINTS = 200


@dataclass(frozen=True)
class Search:
    """How Algorithm 1 is read: where c is fitted, where the ascent starts, and its steps.

    The text fits c on the sphere and starts there, the code does both on data. "anchors" adds
    centres, class means and the largest neurons to the sphere's starts: near p = 1 the supremum
    lies at a class mean, which random starts may miss by a quarter.
    """

    fit: Literal["sphere", "data"] = "sphere"
    starts: Literal["sphere", "anchors"] = "anchors"
    random: int = 12
    steps: int = 40
    first: float = 0.3
    last: float = 0.003

    def step(self, index: int) -> float:
        """Geometric from first to last."""
        part = index / max(self.steps - 1, 1)
        return self.first * (self.last / self.first) ** part


@dataclass(frozen=True)
class Distance:
    """`searched` for the fitted c; `best` over all c on the points found; both closed forms."""

    searched: Float[Tensor, " R"]
    best: Float[Tensor, " R"]
    lower: Float[Tensor, " R"]
    scale: Float[Tensor, " R"]
    where: Float[Tensor, "R d"]


@on(Clusters)
def reference_distance(run: Run) -> Measured:
    """Distance to the reference of the net's own p, searched and in closed forms."""
    net = reference_net(run)
    found = estimate(run, net)
    values = {
        "distance": found.searched,
        "best": found.best,
        "lower": found.lower,
        "scale": found.scale,
    }
    if isinstance(run.experiment.net, PowerNet):
        values["upper"] = upper(run, found.scale, net)
    return Measured(values, {"where": found.where})


def reference_net(run: Run) -> PowerNet:
    """F for p = 1, F^(p) else."""
    p = power(run.model.form)
    return PReLUAveraging() if p == 1 else PReLUSubclasses(p=p)


def power(form: Form) -> float:
    """p of a net's activation; every kind of ReLU has 1."""
    return form.activation.p if isinstance(form.activation, Power) else 1.0


def estimate(run: Run, reference: PowerNet, search: Search | None = None) -> Distance:
    """Algorithm 1 for all replicas at once."""
    search = search or Search()
    data, seeds = run.data, run.experiment.seeds
    form = _kept(run.model.form)
    target = reference.form(data, reference.init(data, seeds, form.w.dtype))
    c = _fitted(run, form, target, search)
    anchors = _anchors(data, seeds, form.w)
    x, gap = _climb(form, target, c, _starts(run, form, anchors, search), data.unit, search)
    unit = data.unit ** reference.power()
    points = torch.cat([anchors, x], 1)
    a, b = form.decision(points) / unit, target.decision(points) / unit
    few = anchors.shape[1]
    top = gap.argmax(1)
    where = x[torch.arange(len(x)), top]
    return Distance(
        gap.amax(1).double() / unit,
        crossing(a, b),
        crossing(a[:, :few], b[:, :few]),
        c.double(),
        where,
    )


def crossing(a: Float[Tensor, "R n"], b: Float[Tensor, "R n"]) -> Float[Tensor, " R"]:
    """inf_c max_i |c a_i - b_i|: convex and piecewise linear, so two of the lines decide it."""
    a, b = a.double(), b.double()
    across = (a.unsqueeze(2) * b.unsqueeze(1) - a.unsqueeze(1) * b.unsqueeze(2)).abs()
    total = a.abs().unsqueeze(2) + a.abs().unsqueeze(1)
    return (across / total.clamp_min(1e-300)).amax((1, 2))


def upper(run: Run, c: Float[Tensor, " R"], reference: PowerNet) -> Float[Tensor, " R"]:
    """sup |c f - F| <= size of (c Q_g - lam_g)_g + p c sum_j |q_j| |u_j - m_g(j)|.

    Neuron j belongs to the direction m_g of its sign that is nearest, Q_g sums their q. Over
    orthonormal m_g the first part is at most its length (p = 1) or its largest entry (p >= 2).
    """
    form, data = run.model.form, run.data
    target = reference.form(data, reference.init(data, run.experiment.seeds, form.w.dtype))
    q, lam, p = form.readout[..., 0].double(), target.readout[..., 0].double(), power(form)
    cosine = (form.w @ target.w.transpose(1, 2)).double()
    same = q.sign().unsqueeze(-1) == lam.sign().unsqueeze(1)
    nearest = cosine.masked_fill(~same, -2).argmax(-1)
    angle = cosine.gather(2, nearest.unsqueeze(-1))[..., 0]
    moved = (2 - 2 * angle).clamp_min(0).sqrt()
    totals = torch.zeros_like(lam).scatter_add_(1, nearest, q)
    off = (c.unsqueeze(1) * totals - lam).abs()
    first = off.norm(dim=1) if p == 1 else off.amax(1)
    return first + c * (q.abs() * (p * moved).clamp_max(1)).sum(1)


def _kept(form: Form) -> Form:
    """Without the neurons that are negligible in every replica."""
    if form.readout.shape[-1] > 1 or form.b.any():
        return form
    size = form.readout[..., 0].abs() * form.w.norm(dim=-1) ** power(form)
    ordered, order = size.sort(dim=1)
    small = ordered.cumsum(1) < NEGLIGIBLE * size.sum(1, keepdim=True)
    keep = (~torch.zeros_like(small).scatter(1, order, small)).any(0)
    return replace(form, w=form.w[:, keep], b=form.b[:, keep], readout=form.readout[:, keep])


def _fitted(run: Run, form: Form, target: Form, search: Search) -> Float[Tensor, " R"]:
    """c = E[f F]/E[f^2]."""
    x = (
        run.fresh(POINTS).x
        if search.fit == "data"
        else run.data.unit * _sphere(run, "distance.fit", 4 * POINTS)
    )
    f, wanted = form.decision(x), target.decision(x)
    return (f * wanted).sum(1) / f.square().sum(1).clamp_min(1e-300)


def _sphere(run: Run, purpose: str, n: int) -> Float[Tensor, "R n d"]:
    draw = normals(run.experiment.seeds, purpose, (n, run.data.d), run.params["w"].dtype)
    return normalize(draw, dim=-1)


def _anchors(data: Clusters, seeds: Sequence[int], like: Tensor) -> Float[Tensor, "R a d"]:
    """Centres and class means, on the sphere of the centres."""
    mu = data.centres(seeds, like.dtype)
    means = [mu[:, list(side)].sum(1, keepdim=True) for side in (data.plus, data.minus)]
    return data.unit * normalize(torch.cat([mu, *means], 1), dim=-1)


def _starts(
    run: Run, form: Form, anchors: Float[Tensor, "R a d"], search: Search
) -> Float[Tensor, "R S d"]:
    random = run.data.unit * _sphere(run, "distance.start", search.random)
    if search.starts == "sphere":
        return random
    size = form.readout.abs().sum(-1)
    largest = size.topk(min(8, size.shape[1]), dim=1).indices
    rows = torch.arange(len(size)).unsqueeze(1)
    neurons = run.data.unit * normalize(form.w[rows, largest], dim=-1)
    return torch.cat([anchors, -anchors, neurons, random], 1)


def _climb(
    form: Form,
    target: Form,
    c: Float[Tensor, " R"],
    x: Float[Tensor, "R S d"],
    radius: float,
    search: Search,
) -> tuple[Float[Tensor, "R S d"], Float[Tensor, "R S"]]:
    """The best iterate of every start, and |c f - F| there."""
    best, most = x, torch.zeros_like(x[..., 0])
    for index in range(search.steps + 1):
        z, a = form.preactivations(x), target.preactivations(x)
        gap = c.unsqueeze(1) * form.decide(z) - target.decide(a)
        better = gap.abs() > most
        best = torch.where(better.unsqueeze(-1), x, best)
        most = torch.where(better, gap.abs(), most)
        if index == search.steps:
            break
        slope = (c.reshape(-1, 1, 1) * form.slope(z)) @ form.w - target.slope(a) @ target.w
        ascent = normalize(slope * gap.sign().unsqueeze(-1), dim=-1)
        x = radius * normalize(x / radius + search.step(index) * ascent, dim=-1)
    return best, most
