"""M_p(z) = E relu(z + s g)^p: against quadrature, its limits and its derivative."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.integrate import quad

from unmix.errors import SpecError
from unmix.nets.activations import GaussianPower, GaussianRelu, Power

Z = [-1.5, -0.2, 0.0, 0.3, 2.0]


@pytest.mark.parametrize("p", [1, 2, 3, 4, 6])
def test_it_is_the_mean_over_the_noise(p: int) -> None:
    sigma = 0.4
    found = GaussianPower(p, sigma).value(torch.tensor(Z, dtype=torch.float64))
    for z, value in zip(Z, found.tolist(), strict=True):

        def weighted(g: float, z: float = z) -> float:
            return (z + sigma * g) ** p * np.exp(-g * g / 2) / np.sqrt(2 * np.pi)

        assert value == pytest.approx(quad(weighted, -z / sigma, 12)[0], rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("p", [1, 2, 3, 5])
def test_its_slope_is_its_derivative(p: int) -> None:
    z = torch.tensor(Z, dtype=torch.float64, requires_grad=True)
    phi = GaussianPower(p, 0.3)
    (slope,) = torch.autograd.grad(phi.value(z).sum(), z)
    torch.testing.assert_close(phi.slope(z.detach()), slope, rtol=1e-10, atol=1e-14)


def test_without_noise_it_is_the_power_and_its_first_power_is_the_noisy_relu() -> None:
    z = torch.tensor(Z, dtype=torch.float64)
    for p in (1, 3):
        assert torch.equal(GaussianPower(p, 0.0).value(z), Power(p).value(z))
        assert torch.equal(GaussianPower(p, 0.0).slope(z), Power(p).slope(z))
    torch.testing.assert_close(GaussianPower(1, 0.3).value(z), GaussianRelu(0.3).value(z))
    assert GaussianPower(1).steepest == 1
    assert GaussianPower(2).steepest == float("inf")


@pytest.mark.parametrize(("p", "sigma"), [(0, 0.1), (1.5, 0.1), (2, -0.1)])
def test_what_cannot_be_is_refused(p: float, sigma: float) -> None:
    with pytest.raises(SpecError):
        GaussianPower(p, sigma)
