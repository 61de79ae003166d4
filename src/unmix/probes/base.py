"""What a probe returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps

import torch
from jaxtyping import Float
from torch import Tensor

from unmix import catalog
from unmix.data.base import Distribution
from unmix.errors import DataError, nearest
from unmix.experiment import Run


@dataclass(frozen=True)
class Measured:
    """`values`: one number a replica [R]; `arrays`: anything with a leading replica axis."""

    values: dict[str, Float[Tensor, " R"]]
    arrays: dict[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if both := self.values.keys() & self.arrays.keys():
            raise DataError(f"a probe's values and arrays share the names {sorted(both)}")
        sizes = {v.shape[0] for v in (*self.values.values(), *self.arrays.values())}
        if len(sizes) > 1 or any(v.ndim != 1 for v in self.values.values()):
            raise DataError("a probe returns one number per replica, and arrays that lead with it")

    def __getitem__(self, name: str) -> Tensor:
        every = self.values | self.arrays
        if name not in every:
            raise DataError(f"the probe gave no {name!r} for this run", nearest(name, every))
        return every[name]

    def __str__(self) -> str:
        lines = []
        for name, value in self.values.items():
            spread = value.std() if len(value) > 1 else torch.zeros(())
            lines.append(f"{name:<28} {value.mean():>12.5g}  (sd {spread:.2g}, R={len(value)})")
        return "\n".join(lines)


Probe = Callable[[Run], Measured]


def probe(run: Run, name: str) -> Measured:
    """Apply a probe of the catalog by its name."""
    measured: Measured = catalog.load("probes", name)(run)
    return measured


def on(*kinds: type[Distribution]) -> Callable[[Probe], Probe]:
    """A probe that reads runs on these distributions only, and says so of others."""

    def refuse_others(read: Probe) -> Probe:
        @wraps(read)
        def checked(run: Run) -> Measured:
            if not isinstance(run.data, kinds):
                wanted = " or ".join(k.model_fields["kind"].default for k in kinds)
                came = f"the probe {read.__name__!r} reads runs on {wanted}, not on {run.data.kind}"
                raise DataError(came, "see: unmix list probes")
            return read(run)

        return checked

    return refuse_others


def masked_mean(x: Tensor, mask: Tensor) -> Float[Tensor, " R"]:
    """Mean over all but the first axis, where the mask (without replica axis) holds."""
    return x[:, mask].mean(1)
