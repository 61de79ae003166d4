"""Which conditions of the theorems a run meets, and by what factor (A.4, A.6, A.10, A.12, A.13).

Every condition is written as a slack >= 1: allowed/used for upper bounds, used/required for lower
ones. Order symbols are read with constant 1, the most generous literal reading; m = Theta(k) and
c = Theta(1) are reported within a factor of 4.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from unmix.data.clusters import Clusters
from unmix.errors import DataError
from unmix.experiment import Run
from unmix.nets.base import Model
from unmix.nets.prelu import PowerNet
from unmix.probes.activation import activation
from unmix.probes.base import Measured, on
from unmix.train.descent import GradientDescent


@on(Clusters)
def assumptions(run: Run) -> Measured:
    """Slack of each condition, one column a condition; `met` is the share that is met."""
    if isinstance(run.experiment.net, PowerNet):
        message = "the conditions are those of nets with a frozen second layer"
        raise DataError(message, "--set net.kind=two-layer, or use the probe 'contributions'")
    values = _hyper_parameters(run) | _training_set(run) | _initialisation(run)
    met = torch.stack([v >= 1 for v in values.values()], 1).double().mean(1)
    return Measured(values | {"met": met})


def epsilon(k: int, d: int, n: int) -> float:
    """The error term of appendix B: max{2 ln(n/k)/(sqrt(n/k) - ln(n/k)), k^2 Delta/d, k^2/n}."""
    per = n / k
    gap = math.sqrt(per) - math.log(per) if per > 0 else 0.0
    first = 2 * math.log(per) / gap if gap > 0 else math.inf
    return max(first, k**2 * delta(d) / d, k**2 / n)


def delta(d: int) -> float:
    """Delta = 4 sqrt(d) ln d (Prop A.6)."""
    return 4 * math.sqrt(d) * math.log(d)


def _hyper_parameters(run: Run) -> dict[str, Tensor]:
    """Assumption 4.3 / A.4, and T >= 1/eta of Thm 4.5."""
    data, train, net = run.data, run.experiment.train, run.experiment.net
    n, k, d = run.experiment.samples.train, data.k, data.d
    eta = train.eta if isinstance(train, GradientDescent) else math.nan
    variance = getattr(net, "sigma_w", math.nan) ** 2
    width = getattr(net, "m", getattr(net, "h", 1) * k)
    slacks = {
        "d >= k^10": d / k**10,
        "n >= k^7": n / k**7,
        "n <= exp(ln^2 d)": math.exp(math.log(d) ** 2 - math.log(n)),
        "m within 4x of k": 4 * min(width / k, k / width),
        "c <= 4": 4 / data.balance,
        "eta <= d^-2": d**-2 / eta,
        "sigma_w^2 <= eta k^-5": eta * k**-5 / variance if variance else math.inf,
        "T >= 1/eta": train.length() * eta,
    }
    return {name: torch.full((run.replicas,), s, dtype=torch.float64) for name, s in slacks.items()}


def _training_set(run: Run) -> dict[str, Tensor]:
    """Prop A.6; property 6 for i != j only (its diagonal is |x|^2 ~ 2.1 d > 2 d)."""
    data, batch = run.data, run.train_batch
    d, n, k = data.d, batch.points, data.k
    root, bound = math.sqrt(d), delta(d)
    grow = root / data.unit
    x, xi = batch.x * grow, data.noise(batch, run.experiment.seeds) * grow
    mu = run.centres * grow
    same = batch.cluster.unsqueeze(1) == batch.cluster.unsqueeze(2)
    eye = torch.eye(n, dtype=torch.bool)
    gram, noise = x @ x.transpose(1, 2), xi @ xi.transpose(1, 2)
    inside = gram.masked_fill(~same | eye, d)
    counts = torch.nn.functional.one_hot(batch.cluster, k).sum(1).to(x)
    spread = math.sqrt(2 * n / k) * math.log(n / k) if n > k else 0.0
    return {
        "A.6.1 ||xi| - sqrt d| <= 2 ln d": 2 * math.log(d) / (xi.norm(dim=-1) - root).abs().amax(1),
        "A.6.2 |x| <= 3 sqrt d": 3 * root / x.norm(dim=-1).amax(1),
        "A.6.3 <xi_i, xi_j> <= Delta": bound / noise.masked_fill(eye, 0).abs().amax((1, 2)),
        "A.6.4 <mu, xi> <= Delta": bound / (xi @ mu.transpose(1, 2)).abs().amax((1, 2)),
        "A.6.5 <x_i, x_j> <= Delta": bound / gram.masked_fill(same, 0).abs().amax((1, 2)),
        "A.6.6 d/2 <= <x_i, x_j> <= 2d": torch.minimum(
            inside.amin((1, 2)) / (d / 2), 2 * d / inside.amax((1, 2))
        ),
        "A.6.7 |I_j| - n/k": spread / (counts - n / k).abs().amax(1),
    }


def _initialisation(run: Run) -> dict[str, Tensor]:
    """Prop A.10; binary A.12, A.13; k-class C.3. For nets that start from Gaussian weights."""
    net, data, train = run.experiment.net, run.data, run.experiment.train
    sigma = getattr(net, "sigma_w", 0)
    if not sigma or not isinstance(train, GradientDescent):
        return {}
    n, k = run.experiment.samples.train, data.k
    norms = (run.initial["w"].norm(dim=-1) / sigma - math.sqrt(data.d)).abs().amax(1)
    values = {"A.10 ||w0|/sigma_w - sqrt d| <= 2 ln d": 2 * math.log(data.d) / norms}
    count = activation(run)["start_min_count"]
    if run.model.class_signs is not None:
        return values | {"C.3 |T_srj| >= n/(3 k^3 h^2)": count / (n / (3 * k**3 * net.h**2))}
    allowed = train.eta * math.sqrt(data.d) / (n * net.m)
    start = Model(net, data, run.initial)
    z0 = start.preactivations(run.train_batch.x).abs().amax((1, 2))
    values["A.12 |T_srj| >= n/(3 k m^2)"] = count / (n / (3 * k * net.m**2))
    values["A.13 |z0| <= eta sqrt(d)/(n m)"] = allowed / z0
    if net.m > 1 and net.sigma_b:
        allowed = 2 * net.sigma_b * math.sqrt(2 * math.log(net.m))
        values["A.10 |b0| <= 2 sigma_b sqrt(2 ln m)"] = allowed / start.b.abs().amax(1)
    return values
