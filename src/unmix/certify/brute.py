"""Brute force: a convex problem for each of the 2^M activation patterns. The oracle of the others.

Within one pattern the margin is linear, so the closest misclassified point of its cell solves

    min |delta|^2   s.t.   m(x + delta) <= 0,   s_j z_j(x + delta) >= 0 for every neuron j,

a least-distance problem (Lawson and Hanson, chapter 23: one non-negative least squares). Where only
m < 0 is misclassified, a cell in which m stays >= 0 does not count.
"""

from __future__ import annotations

from itertools import product
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from pydantic import Field
from scipy.optimize import nnls
from torch import Tensor

from unmix.certify.base import EXACT, UNSUPPORTED, Certificate, Certifier, Question, blank
from unmix.certify.margins import Margin, margins
from unmix.errors import CertificateError
from unmix.nets.activations import Activation, LeakyRelu, Power, Relu


class BruteForce(Certifier):
    """Exact l2 radii of piecewise-linear nets of a few neurons."""

    kind: Literal["brute-force"] = "brute-force"
    most: int = Field(12, ge=1, description="neurons with a say, beyond which it refuses")

    def bracket(self, question: Question, above: Float[Tensor, "R n"]) -> Certificate:
        why = unsupported(question)
        if why:
            return blank(question, torch.zeros_like(above), UNSUPPORTED, "l2", why)
        lower = torch.full(question.shape, torch.inf, dtype=torch.float64)
        upper, witness = lower.clone(), torch.zeros_like(question.x)
        for replica in range(len(question.x)):
            for margin in margins(question, replica):
                self._improve(question, margin, lower[replica], upper[replica], witness[replica])
        return Certificate(lower, upper, torch.full(lower.shape, EXACT), witness)

    def _improve(
        self, question: Question, margin: Margin, lower: Tensor, upper: Tensor, witness: Tensor
    ) -> None:
        if len(margin.a) > self.most:
            came = f"{len(margin.a)} neurons are 2^{len(margin.a)} patterns"
            raise CertificateError(came, "use exact-l2, or raise `most`")
        leak = linear_below(margin.activation)
        w, b, a = margin.w.numpy(), margin.b.numpy(), margin.a.numpy()
        basis = np.linalg.qr(w.T)[0]
        for point in margin.points.nonzero().flatten().tolist():
            z0 = w @ question.x[margin.replica, point].numpy() + b
            length, delta = closest(w @ basis, z0, a, margin.c, leak, margin.strict)
            if length < lower[point]:
                lower[point] = length
                upper[point] = float(np.linalg.norm(delta))
                witness[point] = torch.from_numpy(basis @ delta)


def unsupported(question: Question) -> str:
    """Why piecewise-linear oracles cannot answer; nothing if they can."""
    if question.reading == "difference":
        return "the difference of softmax probabilities is not piecewise linear"
    try:
        linear_below(question.form.activation)
    except CertificateError as error:
        return error.message
    return ""


def linear_below(activation: Activation) -> float:
    """Slope below 0 of an activation with slope 1 above; others are refused."""
    if isinstance(activation, LeakyRelu):
        return activation.leak
    if isinstance(activation, Relu) or (isinstance(activation, Power) and activation.p == 1):
        return 0.0
    raise CertificateError(
        f"{type(activation).__name__} is not piecewise linear", "use exact-l2 or root"
    )


def closest(
    w: np.ndarray, z0: np.ndarray, a: np.ndarray, c: float, leak: float, strict: bool
) -> tuple[float, np.ndarray]:
    """Smallest |delta| over all cells with m <= 0 (and m < 0 somewhere in the cell, if strict).

    With it comes a delta of this length up to 1e-6; infinity if no cell holds one.
    """
    found = []
    for pattern in product((1.0, -1.0), repeat=len(a)):
        s = np.array(pattern)
        slope = a * np.where(s > 0, 1.0, leak)
        rows = np.concatenate([-(slope @ w)[None], s[:, None] * w])
        least = np.concatenate([[slope @ z0 + c], -s * z0])
        delta = least_distance(rows, least)
        if delta is not None:
            found.append((float(np.linalg.norm(delta)), tuple(delta), (rows, least)))
    for length, nearest, (rows, least) in sorted(found, key=lambda f: f[0]):
        if not strict or _enters(rows, least):
            # A corner of the cell is not replayed well: a little inside it, where there is room.
            inner = least_distance(rows, least + 1e-10 * np.linalg.norm(rows, axis=1))
            if inner is None or np.linalg.norm(inner) > length * (1 + 1e-6):
                return length, np.array(nearest)
            return length, inner
    return np.inf, np.zeros(w.shape[1])


def least_distance(rows: np.ndarray, least: np.ndarray) -> np.ndarray | None:
    """argmin |x| s.t. rows x >= least; None if there is no such x."""
    scale = np.linalg.norm(rows, axis=1)
    if (least[scale == 0] > 0).any():
        return None
    rows, least = rows[scale > 0] / scale[scale > 0, None], least[scale > 0] / scale[scale > 0]
    if (least <= 0).all():
        return np.zeros(rows.shape[1])
    size = np.abs(least).max()
    system = np.vstack([rows.T, least / size])
    target = np.zeros(len(system))
    target[-1] = 1.0
    weights, _ = nnls(system, target, maxiter=50 * system.shape[1])
    rest = system @ weights - target
    if -rest[-1] <= 1e-11:
        return None
    x = -size * rest[:-1] / rest[-1]
    # An infeasible system leaves a residual of rounding errors only, and a useless x.
    return x if (rows @ x >= least - 1e-9 * (size + np.abs(x).max())).all() else None


def _enters(rows: np.ndarray, least: np.ndarray) -> bool:
    """Does the cell hold a point with m < 0? (Rows and bounds as above, the margin's first.)"""
    lower = least.copy()
    lower[0] += 1e-7 * (np.abs(least).max() + np.abs(rows).max())
    return least_distance(rows, lower) is not None
