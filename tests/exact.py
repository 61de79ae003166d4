"""Robust radii of binary nets in the plane, by brute force: the oracle for attacks."""

from __future__ import annotations

import numpy as np

from unmix.nets.base import Model


def rays(model: Model, x: np.ndarray, y: float, angles: np.ndarray, reach: float) -> np.ndarray:
    """Exact distance to the first misclassified point along each angle; infinity beyond `reach`.

    Along a ray f is linear between the zeros of the pre-activations.
    """
    w, b = model.w[0].numpy(), model.b[0].numpy()
    a = model.readout[:, 0].numpy()
    z0 = w @ x + b
    dz = np.stack([np.cos(angles), np.sin(angles)], 1) @ w.T
    with np.errstate(divide="ignore", invalid="ignore"):
        zeros = np.nan_to_num(-z0 / dz, nan=reach, posinf=reach, neginf=reach)
    ends = np.full((len(angles), 1), reach)
    knots = np.sort(np.concatenate([0 * ends, np.clip(zeros, 0, reach), ends], 1), 1)
    f = np.maximum(z0 + knots[..., None] * dz[:, None], 0) @ a
    f[np.abs(f) < 1e-12] = 0.0
    left, right, t0, t1 = f[:, :-1], f[:, 1:], knots[:, :-1], knots[:, 1:]
    # sgn(0) = -1: for y = 1 reaching 0 is enough, for y = -1 it must be exceeded.
    wrong = (left > 0) & (right <= 0) if y > 0 else (left <= 0) & (right > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        cross = t0 + (t1 - t0) * left / (left - right)
    return np.where(wrong, cross, np.inf).min(1)


def radius(model: Model, x: np.ndarray, y: float, reach: float) -> float:
    """Smallest ray over all directions: a grid of 720, then three zooms into its best eight."""
    angles, gap = np.linspace(0, 2 * np.pi, 720, endpoint=False), 2 * np.pi / 720
    best = rays(model, x, y, angles, reach)
    for _ in range(3):
        near = angles[np.argsort(best)[:8]]
        angles = (near[:, None] + np.linspace(-gap, gap, 81)).ravel()
        best, gap = rays(model, x, y, angles, reach), gap / 40
    return float(best.min())
