"""Brute force: a convex problem for each of the 2^M activation patterns. The oracle of the others.

Within one pattern the margin is linear, so the closest misclassified point of its cell solves

    min |delta|   s.t.   m(x + delta) <= 0,   s_j z_j(x + delta) >= 0 for every neuron j,

in l2 a least-distance problem (Lawson and Hanson, chapter 23: one non-negative least squares), in
linf a linear program. Cells come in the order of the distance to the farthest of their half-spaces,
until that exceeds the best. Where only m < 0 is misclassified, a cell in which m stays >= 0 does
not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from pydantic import Field
from scipy.optimize import linprog, nnls
from torch import Tensor

from unmix.certify.base import EXACT, UNSUPPORTED, Certificate, Certifier, Norm, Question, blank
from unmix.certify.margins import Margin, margins
from unmix.errors import CertificateError
from unmix.nets.activations import Activation, LeakyRelu, Power, Relu

Solver = Callable[[np.ndarray, np.ndarray], np.ndarray | None]
# Orders of the norms and of their duals, and how far inside its cell a witness is put.
ORDERS: dict[Norm, float] = {"l2": 2, "linf": np.inf}
DUALS: dict[Norm, float] = {"l2": 2, "linf": 1}
INSIDE: dict[Norm, float] = {"l2": 1e-10, "linf": 1e-9}


class BruteForce(Certifier):
    """Exact radii of piecewise-linear nets of a few neurons."""

    kind: Literal["brute-force"] = "brute-force"
    most: int = Field(12, ge=1, description="neurons with a say, beyond which it refuses")
    threat: Norm = "l2"

    @property
    def norm(self) -> Norm:
        return self.threat

    def bracket(self, question: Question, above: Float[Tensor, "R n"]) -> Certificate:
        why = unsupported(question)
        if why:
            return blank(question, torch.zeros_like(above), UNSUPPORTED, self.norm, why)
        lower = torch.full(question.shape, torch.inf, dtype=torch.float64)
        upper, witness = lower.clone(), torch.zeros_like(question.x)
        for replica in range(len(question.x)):
            for margin in margins(question, replica):
                self._improve(question, margin, lower[replica], upper[replica], witness[replica])
        codes = torch.full(lower.shape, EXACT)
        return Certificate(lower, upper, codes, witness, norm=self.norm)

    def _improve(
        self, question: Question, margin: Margin, lower: Tensor, upper: Tensor, witness: Tensor
    ) -> None:
        if len(margin.a) > self.most:
            came = f"{len(margin.a)} neurons are 2^{len(margin.a)} patterns"
            raise CertificateError(came, "use exact-l2, or raise `most`")
        leak = linear_below(margin.activation)
        w, b, a = margin.w.numpy(), margin.b.numpy(), margin.a.numpy()
        basis = np.linalg.qr(w.T)[0] if self.threat == "l2" else np.eye(w.shape[1])
        order = ORDERS[self.threat]
        for point in (margin.points & ~question.lost[margin.replica]).nonzero().flatten().tolist():
            z0 = w @ question.x[margin.replica, point].numpy() + b
            length, delta = closest(w @ basis, z0, a, margin.c, leak, margin.strict, self.threat)
            if length < lower[point]:
                lower[point] = length
                upper[point] = float(np.linalg.norm(delta, order))
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
    w: np.ndarray, z0: np.ndarray, a: np.ndarray, c: float, leak: float, strict: bool, norm: Norm
) -> tuple[float, np.ndarray]:
    """Smallest |delta| over all cells with m <= 0 (and m < 0 somewhere in the cell, if strict).

    With it comes a delta of this length up to 1e-6; infinity if no cell holds one.
    """
    solved, order = SOLVERS[norm], ORDERS[norm]
    best, found = np.inf, np.zeros(w.shape[1])
    for bound, rows, least in sorted(_cells(w, z0, a, c, leak, norm), key=lambda cell: cell[0]):
        if bound >= best:
            break
        delta = solved(rows, least)
        length = np.inf if delta is None else float(np.linalg.norm(delta, order))
        if delta is None or length >= best or (strict and not _enters(rows, least, solved)):
            continue
        # A corner of the cell is not replayed well: a little inside it, where there is room.
        inner = solved(rows, least + INSIDE[norm] * np.linalg.norm(rows, axis=1))
        near = inner is not None and np.linalg.norm(inner, order) <= length * (1 + 1e-6)
        best, found = length, inner if inner is not None and near else delta
    return best, found


def _cells(
    w: np.ndarray, z0: np.ndarray, a: np.ndarray, c: float, leak: float, norm: Norm
) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
    """(distance to the farthest half-space, rows, bounds) of each pattern's { rows x >= bounds }:
    the margin's first, then the neurons'. Those with an empty half-space are left out."""
    for pattern in product((1.0, -1.0), repeat=len(a)):
        s = np.array(pattern)
        slope = a * np.where(s > 0, 1.0, leak)
        rows = np.concatenate([-(slope @ w)[None], s[:, None] * w])
        least = np.concatenate([[slope @ z0 + c], -s * z0])
        steep = np.linalg.norm(rows, DUALS[norm], axis=1)
        if not (least[steep == 0] > 0).any():
            yield max((least[steep > 0] / steep[steep > 0]).max(initial=0.0), 0.0), rows, least


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


def least_cube(rows: np.ndarray, least: np.ndarray) -> np.ndarray | None:
    """argmin |x|_inf s.t. rows x >= least, by HiGHS; None if there is no such x."""
    d = rows.shape[1]
    bounds = np.kron([[1.0], [-1.0]], np.eye(d))
    matrix = np.block([[-rows, np.zeros((len(rows), 1))], [bounds, -np.ones((2 * d, 1))]])
    answer = linprog(
        np.r_[np.zeros(d), 1.0],
        A_ub=matrix,
        b_ub=np.r_[-least, np.zeros(2 * d)],
        bounds=[(None, None)] * d + [(0, None)],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return answer.x[:d] if answer.status == 0 else None


def _enters(rows: np.ndarray, least: np.ndarray, solved: Solver) -> bool:
    """Does the cell hold a point with m < 0? (Rows and bounds as above, the margin's first.)"""
    lower = least.copy()
    lower[0] += 1e-7 * (np.abs(least).max() + np.abs(rows).max())
    return solved(rows, lower) is not None


SOLVERS: dict[Norm, Solver] = {"l2": least_distance, "linf": least_cube}
