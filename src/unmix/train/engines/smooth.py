"""Element-wise work of the patch CNN: the smoothed ReLU, its sums over filters and patches.

With t = clamp(z, 0, rho) every formula is a polynomial of t,

    rho^(q-1) s'(z) = t^(q-1),    s(z) = t^q / (q rho^(q-1)) + relu(z - rho),

and all is done in place on z [g N P k m].
"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from unmix.nets.activations import SmoothedRelu
from unmix.train.engines.compiled import compiled, reordered


class Smooth:
    """In plain torch: for any power and device."""

    def __init__(self, activation: SmoothedRelu) -> None:
        self.q, self.rho = activation.q, activation.rho

    def steepen(self, z: Float[Tensor, "*s"]) -> None:
        """z <- rho^(q-1) s'(z)."""
        z.clamp_(0, self.rho).pow_(self.q - 1)

    def total(self, z: Float[Tensor, "g N P k m"]) -> Float[Tensor, "g N k"]:
        """sum over p and r of s(z); z <- rho^(q-1) s'(z)."""
        above = (z - self.rho).relu_()
        t = z.clamp_(0, self.rho).clone()
        z.pow_(self.q - 1)
        value = above.addcmul_(t, z, value=self.rho ** (1 - self.q) / self.q)
        return value.sum((2, 4))

    def scale(self, z: Float[Tensor, "g N P k m"], by: Float[Tensor, "g N k"]) -> None:
        """z <- z times a number for each point and output."""
        z.mul_(by[:, :, None, :, None])


class CubicCpu(Smooth):
    """The same for q = 3, compiled: one pass instead of seven."""

    def steepen(self, z: Float[Tensor, "*s"]) -> None:
        array = z.numpy()
        _steepen(array.reshape(-1), array.dtype.type(self.rho))

    def total(self, z: Float[Tensor, "g N P k m"]) -> Float[Tensor, "g N k"]:
        array, out = z.numpy(), z.new_empty(*z.shape[:2], z.shape[3])
        kind = array.dtype.type
        _total(array, out.numpy(), kind(self.rho), kind(self.rho**-2 / 3))
        return out

    def scale(self, z: Float[Tensor, "g N P k m"], by: Float[Tensor, "g N k"]) -> None:
        _scale(z.numpy(), by.numpy())


def smooth_for(activation: SmoothedRelu, like: Tensor) -> Smooth:
    """The fastest of the two that can."""
    fits = activation.q == 3 and like.device.type == "cpu"
    return (CubicCpu if fits else Smooth)(activation)


@compiled
def _steepen(z, rho):  # type: ignore[no-untyped-def]
    zero = rho - rho
    for i in range(len(z)):
        # In this order a NaN stays one.
        t = zero if z[i] < zero else z[i]
        t = rho if t > rho else t
        z[i] = t * t


@reordered
def _total(z, out, rho, share):  # type: ignore[no-untyped-def]
    replicas, points, patches, k, m = z.shape
    zero = rho - rho
    for g in range(replicas):
        for n in range(points):
            out[g, n] = zero
            for p in range(patches):
                for c in range(k):
                    row, total = z[g, n, p, c], zero
                    for r in range(m):
                        t = zero if row[r] < zero else row[r]
                        t = rho if t > rho else t
                        above = row[r] - rho
                        above = zero if above < zero else above
                        total += share * t * t * t + above
                        row[r] = t * t
                    out[g, n, c] += total


@compiled
def _scale(z, by):  # type: ignore[no-untyped-def]
    replicas, points, patches, k, m = z.shape
    for g in range(replicas):
        for n in range(points):
            for p in range(patches):
                for c in range(k):
                    row, factor = z[g, n, p, c], by[g, n, c]
                    for r in range(m):
                        row[r] *= factor
