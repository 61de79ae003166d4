"""The field that turns neurons while outputs are small (pReLU, section 4.2).

    x^(p)(w) = sum_i share_i y_i p relu(cos(x_i, w) |x_i|)^(p-1) x_i                     (eq 5)
    d/dt w/|w| = (v/|w|) P_w sum_i g_i p relu(<x_i, u>)^(p-1) x_i,     g_i = -share_i dl/df_i

Lemma 1 says that the second is sign(v) P_w x^(p)(w) up to a small error while f is near 0. There
g_i is share_i y_i times |l'(0)|: 1 for the exponential loss, 1/2 for the logistic one. A direction
with P_u x^(p)(u) = 0 is extremal.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from unmix.data.base import Batch
from unmix.data.clusters import Clusters
from unmix.errors import DataError
from unmix.experiment import Run
from unmix.nets.prelu import unit
from unmix.probes.base import Measured, on
from unmix.probes.reference_distance import power
from unmix.train.losses import BinaryLoss, pull


@on(Clusters)
def alignment_field(run: Run) -> Measured:
    """Lemma 1's error, the largest output and weight, and how extremal the neurons are."""
    model, batch, train = run.model, run.train_batch, run.experiment.train
    if model.class_signs is not None:
        raise DataError("eq (5) speaks of one output", "use 'cosines' for several")
    w, v = run.params["w"].double(), _second(run).double()
    u, p = unit(w), power(model.form)
    f = model.double().decision(batch.x.double())
    loss: BinaryLoss = getattr(train, "loss", "logistic")
    share = 1.0 if getattr(train, "reduction", "mean") == "sum" else 1 / batch.points
    g = share * batch.y * pull(batch.y * f, loss)
    wanted = share * batch.y.double()
    turn = (v / w.norm(dim=-1)).unsqueeze(-1) * across(u, field(u, batch, g, p))
    toward = across(u, field(u, batch, wanted, p)) * v.sign().unsqueeze(-1)
    slope = float(pull(torch.zeros(1), loss))
    size = (v * w.norm(dim=-1)).abs()
    extreme = normalize(field(u, batch, wanted, p), dim=-1)
    values = {
        "error": (turn - toward).norm(dim=-1).amax(1),
        "error_scaled": (turn - slope * toward).norm(dim=-1).amax(1),
        "speed": toward.norm(dim=-1).amax(1),
        "output": f.abs().amax(1),
        "weight": w.norm(dim=-1).amax(1),
        "turned": (u * unit(run.initial["w"].double())).sum(-1).amin(1),
        "extremal": ((extreme * u).sum(-1) * v.sign() * size).sum(1) / size.sum(1),
    }
    return Measured(values, {"direction": u})


def field(
    u: Float[Tensor, "R h d"], batch: Batch, g: Float[Tensor, "R n"], p: float
) -> Float[Tensor, "R h d"]:
    """sum_i g_i p relu(<x_i, u>)^(p-1) x_i for unit u; relu^0 is 1[z > 0]."""
    x = batch.x.double()
    z = x @ u.transpose(1, 2)
    inner = (z > 0).to(z) if p == 1 else z.relu() ** (p - 1)
    return p * (inner * g.unsqueeze(-1)).transpose(1, 2) @ x


def across(u: Float[Tensor, "*s d"], field: Float[Tensor, "*s d"]) -> Float[Tensor, "*s d"]:
    """P_u field: its part orthogonal to u."""
    return field - (field * u).sum(-1, keepdim=True) * u


def _second(run: Run) -> Float[Tensor, "R h"]:
    """v_j, trained or frozen."""
    if "v" in run.params:
        return run.params["v"]
    return run.model.readout[:, 0].expand(run.params["w"].shape[:2])
