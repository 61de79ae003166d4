"""The exact solver of binary ReLU nets over subsets of the neurons that vote against the label.

Oriented, the margin is g - h with g (own neurons) and h (opposite ones) convex, and
h = max over subsets S of l_S(x) = sum_{j in S} |a_j| z_j(x). So the misclassified set is a union of
2^|opposite| convex sets { g <= l_S }, and

    r(x) = min_S max_theta (sum_own theta a z + sum_S a z + c)_+ / |sum_own theta a w + sum_S a w|

over theta in [0, 1]^own (a < 0 on S).

Subsets are visited in the order of their bound with theta = the activations at x, and cut off once
that bound exceeds the best radius; each convex problem is solved by cutting planes and
least-distance programming. Strict margins leave out subsets whose set has no interior.
"""

from __future__ import annotations

from itertools import product
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from pydantic import Field
from scipy.optimize import linprog
from torch import Tensor

from unmix.certify.base import (
    BOUND,
    EXACT,
    UNSUPPORTED,
    Certificate,
    Certifier,
    Question,
    blank,
)
from unmix.certify.brute import least_distance, linear_below, unsupported
from unmix.certify.margins import Margin, margins
from unmix.errors import CertificateError

# Cutting planes a subset; each is one activation pattern of the own neurons.
CUTS = 200


class Subsets(Certifier):
    """Exact l2 radii where few neurons oppose the label, to a relative `tol`."""

    kind: Literal["subsets"] = "subsets"
    most: int = Field(14, ge=1, description="opposite neurons, beyond which it refuses")
    tol: float = Field(1e-9, gt=0)

    def bracket(self, question: Question, above: Float[Tensor, "R n"]) -> Certificate:
        why = unsupported(question)
        if why:
            return blank(question, torch.zeros_like(above), UNSUPPORTED, "l2", why)
        radius = torch.full(question.shape, torch.inf, dtype=torch.float64)
        lower, witness = radius.clone(), torch.zeros_like(question.x)
        for replica in range(len(question.x)):
            for margin in margins(question, replica):
                ends = lower[replica], radius[replica], witness[replica]
                self._improve(question, margin, *ends)
        open_ = lower < radius * (1 - self.tol)
        return Certificate(lower, radius, torch.where(open_, BOUND, EXACT), witness)

    def _improve(
        self, question: Question, margin: Margin, lower: Tensor, upper: Tensor, witness: Tensor
    ) -> None:
        against = int((margin.a < 0).sum())
        if linear_below(margin.activation) != 0:
            raise CertificateError("subsets: expected a ReLU net", "use exact-l2")
        if against > self.most:
            came = f"{against} neurons oppose the label: 2^{against} subsets"
            raise CertificateError(came, "use exact-l2, or raise `most`")
        w, b, a = margin.w.numpy(), margin.b.numpy(), margin.a.numpy()
        basis = np.linalg.qr(w.T)[0]
        for point in margin.points.nonzero().flatten().tolist():
            z0 = w @ question.x[margin.replica, point].numpy() + b
            low, delta = self._nearest(w @ basis, z0, a, margin.c, margin.strict)
            lower[point] = min(float(lower[point]), low)
            if delta is not None and np.linalg.norm(delta) < upper[point]:
                upper[point] = float(np.linalg.norm(delta))
                witness[point] = torch.from_numpy(basis @ delta)

    def _nearest(
        self, w: np.ndarray, z0: np.ndarray, a: np.ndarray, c: float, strict: bool
    ) -> tuple[float, np.ndarray | None]:
        """(certified bound, best delta) over all subsets, in the order of their first bounds."""
        own, against = a > 0, np.flatnonzero(a < 0)
        theta = own & (z0 > 0)
        subsets = []
        for chosen in product((False, True), repeat=len(against)):
            on = np.zeros_like(own)
            on[against[list(chosen)]] = True
            weight = np.where(own, a * theta, a * on)
            length = np.linalg.norm(weight @ w)
            # A convex set is missed only where the bound is: rounding may not cut it off.
            ratio = (weight @ z0 + c) / length if length > 1e-12 * np.abs(a).max() else 0.0
            subsets.append((ratio, tuple(on)))
        low, best = np.inf, None
        for ratio, members in sorted(subsets):
            if best is not None and ratio * (1 - self.tol) >= np.linalg.norm(best):
                break
            bound, delta = self._within(w, z0, a, c, np.array(members), own, strict)
            low = min(low, bound)
            if delta is not None and (best is None or np.linalg.norm(delta) < np.linalg.norm(best)):
                best = delta
        return float(low), best

    def _within(
        self,
        w: np.ndarray,
        z0: np.ndarray,
        a: np.ndarray,
        c: float,
        on: np.ndarray,
        own: np.ndarray,
        strict: bool,
    ) -> tuple[float, np.ndarray | None]:
        """Distance to { g <= l_S } by cutting planes: one for every pattern theta that is met."""
        rows: list[np.ndarray] = []
        least: list[float] = []
        delta = np.zeros(w.shape[1])
        scale = np.abs(a).sum() * (1 + np.abs(z0).max())
        for _ in range(CUTS):
            z = z0 + w @ delta
            weight = np.where(own, a * (z > 0), a * on)
            if weight @ z + c <= self.tol * 1e-3 * scale:
                break
            rows.append(-(weight @ w))
            least.append(float(weight @ z0) + c)
            moved = least_distance(np.array(rows), np.array(least))
            if moved is None:
                return np.inf, None
            delta = moved
        else:
            return float(np.linalg.norm(delta)), None
        if strict and not self._interior(w, z0, a, c, on, own):
            return np.inf, None
        return float(np.linalg.norm(delta)) * (1 - self.tol), delta

    def _interior(
        self,
        w: np.ndarray,
        z0: np.ndarray,
        a: np.ndarray,
        c: float,
        on: np.ndarray,
        own: np.ndarray,
    ) -> bool:
        """Is g < l_S anywhere? By duality not iff some theta has weight 0 in w and value >= 0."""
        # max value  s.t.  sum weight w = 0, 0 <= theta <= 1.
        free = np.flatnonzero(own)
        fixed = np.where(on, a, 0.0)
        value = -(a * z0)[free] if len(free) else np.zeros(1)
        matrix = (a[free, None] * w[free]).T if len(free) else np.zeros((w.shape[1], 1))
        answer = linprog(value, A_eq=matrix, b_eq=-(fixed @ w), bounds=(0, 1))
        if answer.status != 0:
            return True
        return bool(-answer.fun + fixed @ z0 + c < -1e-9 * np.abs(a).sum() * (1 + np.abs(z0).max()))
