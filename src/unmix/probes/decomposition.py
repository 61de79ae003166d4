"""The weight decomposition of Lemmas 5.1 and 5.2, from the recursion that ran beside the training.

    w_r(T) = w_r(0) + sum_j lambda_{r,j} mu_j/|mu_j|^2 + sum_i sigma_{r,i} xi_i/|xi_i|^2

with the effective centre alpha mu_j and the effective noise sigma xi_i when alpha, sigma != 1.
Errors are relative to |w(T) - w(0)|: 0 is exact, 1 captures nothing.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from unmix.data.clusters import Clusters
from unmix.errors import DataError
from unmix.experiment import Run
from unmix.probes.alignment import on_pairs
from unmix.probes.base import Measured, on
from unmix.train.base import Reading
from unmix.train.coefficients import bias_move, unfold


@on(Clusters)
def decomposition(run: Run) -> Measured:
    """lambda, sigma, how well each reading explains the weights, signs and the identity (4)."""
    readings = run.experiment.train.record.coefficients
    if "paper" not in run.trace.final:
        raise DataError(
            "this run did not record the coefficients of any step",
            "--set 'train.record.coefficients=[\"paper\"]'",
        )
    mu, xi = _effective(run)
    values = {f"error_{name}": reconstruction_error(run, name, mu, xi) for name in readings}
    lam, sig = coefficients(run, "paper", mu, xi)
    own = own_neurons(run)
    own_sigma = own[run.train_batch.cluster].transpose(1, 2)
    values |= _statistics(lam, sig, own, own_sigma) | _identities(run, lam, sig, mu, xi)
    return Measured(values, {"lambda": lam, "sigma": sig, "own_sigma": own_sigma})


def coefficients(
    run: Run, reading: Reading, mu: Tensor, xi: Tensor
) -> tuple[Float[Tensor, "R M k"], Float[Tensor, "R M n"]]:
    """lambda and sigma under a reading."""
    squares = [t.square().sum(-1) for t in (mu, xi)]
    return unfold(reading, run.trace.final, run.train_batch.cluster, squares[0], squares[1])


def reconstruction_error(run: Run, reading: Reading, mu: Tensor, xi: Tensor) -> Float[Tensor, " R"]:
    """|w(T) - w(0) - sum lambda mu/|mu|^2 - sum sigma xi/|xi|^2| / |w(T) - w(0)|."""
    lam, sig = coefficients(run, reading, mu, xi)
    built = lam @ (mu / mu.square().sum(-1, keepdim=True)) + sig @ (
        xi / xi.square().sum(-1, keepdim=True)
    )
    move = run.params["w"] - run.initial["w"]
    return (move - built).flatten(1).norm(dim=1) / move.flatten(1).norm(dim=1)


def own_neurons(run: Run) -> Tensor:
    """[k M] bool: neuron r stands for cluster j's label (binary) or class (k-class)."""
    model = run.model
    columns = on_pairs(model)
    if model.class_signs is None:
        return columns
    return (columns.to(model.readout) @ model.readout.T) > 0


def _effective(run: Run) -> tuple[Tensor, Tensor]:
    """alpha mu_j and sigma xi_i."""
    if run.data.sigma == 0:
        raise DataError("without noise the decomposition has no sigma part", "--set data.sigma=1")
    mu = run.data.alpha * run.centres
    return mu, run.data.noise(run.train_batch, run.experiment.seeds)


def _statistics(lam: Tensor, sig: Tensor, own: Tensor, own_sigma: Tensor) -> dict[str, Tensor]:
    mask = own.T
    on, off = lam[:, mask], lam[:, ~mask]
    counts = own_sigma.to(sig).sum((1, 2)), (~own_sigma).to(sig).sum((1, 2))
    own_only = sig.masked_fill(~own_sigma, torch.nan).flatten(1)
    largest = own_only.nan_to_num(nan=-torch.inf).amax(1)
    zero = ((sig == 0) & ~own_sigma).to(sig).sum((1, 2)) / counts[1]
    return {
        "lambda_own": on.mean(1),
        "lambda_own_ratio": on.amax(1) / on.amin(1),
        "lambda_off": off.mean(1),
        "lambda_off_max": off.amax(1),
        "sigma_own": (sig * own_sigma).sum((1, 2)) / counts[0],
        "sigma_own_max": largest,
        "sigma_own_ratio": largest / own_only.nan_to_num(nan=torch.inf).amin(1),
        "sigma_off_zero": zero,
        "wrong_signs": _wrong_signs(lam, sig, mask, own_sigma),
    }


def _wrong_signs(lam: Tensor, sig: Tensor, own: Tensor, own_sigma: Tensor) -> Tensor:
    """Number of coefficients with the sign that Cor. B.5 (weak form, <= 0) forbids."""
    bad_lambda = torch.where(own, lam < 0, lam > 0).sum((1, 2))
    bad_sigma = torch.where(own_sigma, sig < 0, sig > 0).sum((1, 2))
    return (bad_lambda + bad_sigma).to(lam)


def _identities(run: Run, lam: Tensor, sig: Tensor, mu: Tensor, xi: Tensor) -> dict[str, Tensor]:
    """Eq (4), the bias recursion, and the identity b(T) - b(0) = sum_j lambda_j / |mu|^2."""
    per_point = sig / xi.square().sum(-1).unsqueeze(1)
    scaled = lam / mu.square().sum(-1).unsqueeze(1)
    members = torch.nn.functional.one_hot(run.train_batch.cluster, run.data.k).to(sig)
    gap = (scaled - per_point @ members).abs().amax((1, 2))
    values = {"eq4": gap / scaled.abs().amax((1, 2))}
    if "b" in run.params:
        move = run.params["b"] - run.initial["b"]
        values["bias_max"] = run.params["b"].abs().amax(1)
        values["bias_recursion"] = (move - bias_move(run.trace.final)).abs().amax(1)
        values["bias_identity"] = (move - scaled.sum(2)).abs().amax(1)
    return values
