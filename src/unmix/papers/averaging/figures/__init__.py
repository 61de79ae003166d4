"""The figures of this paper, drawn from runs."""

from unmix.papers.averaging.figures.laws import law, predictors
from unmix.papers.averaging.figures.matrices import (
    centre_cosines,
    cosines_binary,
    cosines_fine,
    initial_scales,
    noise_ratios,
    overview,
    rates,
    samples,
)
from unmix.papers.averaging.figures.pictures import boundaries, remark
from unmix.papers.averaging.figures.radii import curves, granularity, scaling

__all__ = [
    "boundaries",
    "centre_cosines",
    "cosines_binary",
    "cosines_fine",
    "curves",
    "granularity",
    "initial_scales",
    "law",
    "noise_ratios",
    "overview",
    "predictors",
    "rates",
    "remark",
    "samples",
    "scaling",
]
