"""Products with few active entries, in plain torch: for any device.

An activation with a threshold is off almost everywhere. These functions find the entries that are
on and work on them alone; `active_cpu` does the same compiled, to rounding.

Entries are triples of flat tensors: point [A], neuron [A], and what belongs to the pair.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import embedding_bag

from unmix.data.sparse_rows import SparseRows

Entries = tuple[Int[Tensor, " A"], Int[Tensor, " A"], Float[Tensor, " A"]]


class Active:
    """Finding active entries, and sums over them."""

    def sparse_select(self, x: SparseRows, w: Float[Tensor, "m d"], edge: float) -> Entries:
        """Pairs with |<w_i, x>| >= edge (or NaN) and their products; `x` has one replica.

        What comes back may be written over by the next selection.
        """
        bags = (x.index, w.T.contiguous(), x.offsets)
        s = embedding_bag(*bags, mode="sum", per_sample_weights=x.value, include_last_offset=True)
        return self.dense_select(s, edge)

    def dense_select(self, s: Float[Tensor, "n m"], edge: float) -> Entries:
        """Pairs with |s| >= edge (or NaN) and their s."""
        flat = (~(s.abs() < edge)).flatten().nonzero()[:, 0]
        point = flat.div(s.shape[1], rounding_mode="floor")
        return point, flat - point * s.shape[1], s.flatten()[flat]

    def sums(
        self, count: int, point: Int[Tensor, " A"], value: Float[Tensor, " A"]
    ) -> Float[Tensor, " n"]:
        """Sum of the values of each of `count` points."""
        return value.new_zeros(count).index_add_(0, point, value)

    def weigh(
        self, value: Float[Tensor, " A"], by: Float[Tensor, " n"], point: Int[Tensor, " A"]
    ) -> Float[Tensor, " A"]:
        """value times the weight of its point, in place."""
        return value.mul_(by[point])

    def sparse_scatter(
        self,
        out: Float[Tensor, "m d"],
        x: SparseRows,
        point: Int[Tensor, " A"],
        neuron: Int[Tensor, " A"],
        value: Float[Tensor, " A"],
    ) -> None:
        """out_i += value x over the entries (point, i, value), in place."""
        self.dense_scatter(out, x.dense()[0], neuron, point, value)

    def dense_scatter(
        self,
        out: Float[Tensor, "p d"],
        rows: Float[Tensor, "q d"],
        to: Int[Tensor, " A"],
        of: Int[Tensor, " A"],
        value: Float[Tensor, " A"],
    ) -> None:
        """out_to += value rows_of over the entries, in place."""
        places, size = torch.stack([to, of]), (out.shape[0], rows.shape[0])
        matrix = torch.sparse_coo_tensor(places, value, size, check_invariants=False)
        out += torch.sparse.mm(matrix, rows)
