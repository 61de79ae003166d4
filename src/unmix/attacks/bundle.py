"""Cuts of the boundary that are used together, for two-layer nets in l2 without a box.

The nearest point of the boundary mostly lies on kinks, where one linearisation sends a search to
and fro. A cut is a linearisation m_i + <g_i, delta - delta_i> <= 0, that is -<g_i, delta> >= tau_i;
the shortest perturbation that meets several is delta = -sum_i a_i g_i with

    a = argmax_{a >= 0}  a . tau - 1/2 a^T K a,    K_ij = <g_i, g_j> = s_i . G s_j,

found by coordinate ascent. Only where the fooled set is locally convex are all cuts true; those
that the best point itself violates are dropped, and a trial counts only if it fools.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from unmix.attacks.frame import Moves, NeuronFrame

# Cuts of a point that are remembered, and sweeps of coordinate ascent over them.
CUTS, SWEEPS = 6, 8
# A cut is true of the best point if it is met to this share of its size.
MET = 1e-6


@dataclass
class Bundle:
    """The cuts of P rows; filled in turn, the oldest goes first."""

    frame: NeuronFrame
    slopes: Float[Tensor, "P K M"]
    effects: Float[Tensor, "P K M"]
    gap: Float[Tensor, "P K"]
    gram: Float[Tensor, "P K K"]
    weight: Float[Tensor, "P K"]
    count: int = 0

    @classmethod
    def of(cls, frame: NeuronFrame, rows: int) -> Bundle:
        neurons = frame.z0.shape[1]
        vectors = frame.z0.new_zeros(rows, CUTS, neurons)
        numbers = frame.z0.new_zeros(rows, CUTS)
        gram = frame.z0.new_zeros(rows, CUTS, CUTS)
        return cls(frame, vectors, vectors.clone(), numbers, gram, numbers.clone())

    def add(self, moves: Moves, slopes: Float[Tensor, "P M"], value: Float[Tensor, " P"]) -> None:
        """The linearisation of the margin at some perturbation."""
        k = self.count % CUTS
        self.count += 1
        effect = slopes @ self.frame.gram
        self.slopes[:, k], self.effects[:, k] = slopes, effect
        self.gap[:, k] = value - (slopes * moves.dz).sum(1)
        row = (self.slopes @ effect.unsqueeze(2)).squeeze(2)
        self.gram[:, k], self.gram[:, :, k] = row, row
        self.weight[:, k] = 0

    def take(self, rows: Bool[Tensor, " P"]) -> Bundle:
        """Some rows."""
        slopes, effects, gap = self.slopes[rows], self.effects[rows], self.gap[rows]
        gram, weight = self.gram[rows], self.weight[rows]
        return Bundle(self.frame, slopes, effects, gap, gram, weight, self.count)

    def closest(self, best: Moves) -> Moves:
        """The shortest perturbation that meets every cut that is true of the best one."""
        at_best = (self.slopes @ best.dz.unsqueeze(2)).squeeze(2) + self.gap
        true = at_best <= MET * self.gap.abs()
        curvature = self.gram.diagonal(dim1=1, dim2=2)
        true &= curvature > 0
        weight = torch.where(true, self.weight, 0.0)
        rate = torch.where(true, 1 / curvature.clamp_min(torch.finfo(weight.dtype).tiny), 0.0)
        for _ in range(SWEEPS):
            for k in range(min(self.count, CUTS)):
                missing = self.gap[:, k] - (self.gram[:, k] * weight).sum(1)
                weight[:, k] = (weight[:, k] + missing * rate[:, k]).clamp_min(0)
        self.weight = weight
        dz = -(weight.unsqueeze(1) @ self.effects).squeeze(1)
        square = ((self.gram @ weight.unsqueeze(2)).squeeze(2) * weight).sum(1)
        return Moves(best.point, dz, square)
