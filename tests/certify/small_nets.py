"""Random two-layer nets for certificates, with every degeneracy that a net may have."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from unmix.certify.base import Question
from unmix.nets.activations import Activation, Relu
from unmix.nets.form import Form


def question(
    seed: int,
    activation: Activation | None = None,
    outputs: int = 1,
    most: int = 7,
    points: int = 3,
    d: int | None = None,
) -> Question:
    """One net of a few neurons; the labels of the points are the net's own, one is wrong."""
    made = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=made, dtype=torch.float64)

    rng = np.random.default_rng(seed)
    neurons = int(rng.integers(1, most + 1))
    d = int(rng.integers(1, 5)) if d is None else d
    w, b, a = normal(neurons, d), normal(neurons) * 0.5, normal(neurons, outputs)
    spoil(rng, w, b, a)
    form = Form(w[None], b[None], a[None], activation or Relu())
    x = normal(1, points, d)
    if rng.random() < 0.2:
        x[0, 0] = 0
    y = labels(form, x)
    if points > 2:
        y[0, 2] = -y[0, 2] if outputs == 1 else (y[0, 2] + 1) % outputs
    return Question(form, x, y)


def spoil(rng: np.random.Generator, w: Tensor, b: Tensor, a: Tensor) -> None:
    """Duplicate, parallel, opposite, cancelling, dead, zero and silent neurons, and no biases."""
    if rng.random() < 0.3:
        b.zero_()
    if len(w) < 2:
        return
    how, t = int(rng.integers(0, 8)), float(rng.uniform(0.3, 3))
    if how == 0:
        w[1], b[1] = w[0], b[0]
    elif how == 1:
        w[1], b[1] = t * w[0], t * b[0]
    elif how == 2:
        w[1], b[1] = -w[0], -b[0]
    elif how == 3:
        w[1], b[1], a[1] = w[0], b[0], -a[0]
    elif how == 4:
        b[1] = -50.0
    elif how == 5:
        w[1] = 0
    elif how == 6:
        a[1] = 0


def labels(form: Form, x: Tensor) -> Tensor:
    if form.readout.shape[-1] > 1:
        return form.outputs(form.preactivations(x)).argmax(-1)
    return torch.where(form.decision(x) > 0, 1.0, -1.0).double()
