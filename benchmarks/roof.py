"""What this machine can do at best: products of the benchmarks' shapes, and reading memory."""

from __future__ import annotations

import statistics
from typing import Any

import torch
from measure import interleaved
from torch import Tensor

from unmix.train.engines.product import product

# Rows and columns of the large factor, and of how many neurons.
SHAPES = (
    (1000, 1000, 10, torch.float64, "C K of the baseline"),
    (1000, 1000, 10, torch.float32, "C K of the baseline"),
    (5000, 1000, 10, torch.float64, "W X^T of many points"),
    (5000, 1000, 10, torch.float32, "W X^T of many points"),
    (1000, 1000, 2000, torch.float64, "wide"),
    (1000, 1000, 2000, torch.float32, "wide"),
    (100, 1000, 2000, torch.float64, "pReLU, a mini-batch"),
    (100, 1000, 2000, torch.float32, "pReLU, a mini-batch"),
    (1600, 100, 200, torch.float32, "patch CNN"),
    (1000, 400, 4800, torch.float32, "symmetric net"),
)


def roofs(repeats: int) -> list[dict[str, Any]]:
    """Speeds of w x^T by torch.bmm and by `product`, beside reading x alone."""
    return [_roof(*shape, repeats) for shape in SHAPES]


def _roof(
    n: int, d: int, neurons: int, dtype: torch.dtype, name: str, repeats: int
) -> dict[str, Any]:
    made = torch.Generator().manual_seed(0)
    x, w = (torch.randn(1, rows, d, generator=made, dtype=dtype) for rows in (n, neurons))
    out = x.new_empty(1, neurons, n)
    works = {
        "torch": lambda: torch.bmm(w, x.mT, out=out),
        "ours": lambda: product(w, x.mT, out),
        "read": lambda: x.sum(),
    }
    seconds = {k: statistics.median(v) for k, v in interleaved(works, repeats).items()}
    work, memory = 2e-9 * n * d * neurons, 1e-9 * _bytes(x)
    speeds = {"torch": work / seconds["torch"], "ours": work / seconds["ours"]}
    streams = {"bound": memory / seconds["ours"], "read": memory / seconds["read"]}
    label = f"{name}: n={n}, d={d}, {neurons} neurons, {str(dtype).removeprefix('torch.')}"
    return {"case": label} | speeds | streams


def _bytes(x: Tensor) -> int:
    return x.numel() * x.element_size()
