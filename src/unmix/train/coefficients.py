"""The coefficient recursion of Lemma 5.2 / Cor. B.3, run beside the training and not read off it.

    lambda_{r,j} += -(s_r eta / n m) |mu_j|^2 sum_{i in I_j} l'_i 1[z_ir >= 0]
    sigma_{r,i}  += -(s_r eta / n m) |xi_i|^2 l'_i 1[z_ir >= 0]
    b_r          += -(s_r eta / n m) sum_i l'_i 1[z_ir >= 0]

(k-class nets: Cor. C.8, with l'_{i,s} and h in place of s l'_i and m). All three follow from the
running sum over t of eta/n s_r/m l'_i 1[z_ir >= 0], kept here for each reading of the texts.
"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import one_hot

from unmix.train.base import Reading

# The slides differ from the paper only in how the sum is unfolded, so they share its sum.
_SUM = {"paper": "paper", "slides-divide": "paper", "label-free": "label-free"}


class Coefficients:
    """Running sums [R n M], one for each meaning of l' that the readings need."""

    def __init__(self, readings: tuple[Reading, ...], y: Float[Tensor, "R n"]) -> None:
        self.y = y
        self.sums: dict[str, Tensor] = {}
        self.needed = sorted({_SUM[name] for name in readings})

    def observe(
        self,
        on: Float[Tensor, "R n M"],
        slopes: Float[Tensor, "R n C"],
        readout: Float[Tensor, "M C"],
    ) -> None:
        """Add one step: which neurons are active, and (eta / n) l' of the replicas alive."""
        for name in self.needed:
            labelled = slopes if name == "paper" else slopes * self.y.unsqueeze(-1)
            step = (labelled @ readout.T) * on
            self.sums[name] = self.sums[name] + step if name in self.sums else step


def unfold(
    reading: Reading,
    sums: dict[str, Tensor],
    cluster: Tensor,
    mu2: Float[Tensor, "R k"],
    xi2: Float[Tensor, "R n"],
) -> tuple[Float[Tensor, "R M k"], Float[Tensor, "R M n"]]:
    """lambda and sigma under one reading, from squared norms |mu_j|^2 and |xi_i|^2."""
    move = -sums[_SUM[reading]].transpose(1, 2)
    on_clusters = move @ one_hot(cluster, mu2.shape[1]).to(move)
    mu2, xi2 = mu2.unsqueeze(1), xi2.unsqueeze(1)
    if reading == "slides-divide":
        return on_clusters / mu2, move / xi2
    return on_clusters * mu2, move * xi2


def bias_move(sums: dict[str, Tensor]) -> Float[Tensor, "R M"]:
    """b(T) - b(0) by the same recursion."""
    return -sums["paper"].sum(1)
