"""One thread a worker, and the shapes that src annotates, checked at run time in tests only."""

import os
from collections.abc import Iterator

from jaxtyping import install_import_hook

# No test sees the images of the machine it runs on; those that need some make their own.
os.environ["UNMIX_DATA"] = "/nowhere/unmix-data"

# Before anything of unmix is imported. `spec` is left out: beartype cannot read its `Self`.
SHAPED = (
    "streams",
    "data",
    "nets",
    "train",
    "experiment",
    "probes",
    "attacks",
    "certify",
    "papers",
)
# An int will do where a float is asked for.
BEARTYPE = "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))"
install_import_hook([f"unmix.{name}" for name in SHAPED], BEARTYPE)

import pytest  # noqa: E402
import torch  # noqa: E402

from lab import unchecked_shapes  # noqa: E402

torch.set_num_threads(1)


@pytest.fixture
def unchecked() -> Iterator[None]:
    """For tests that call small functions a million times; others check the same shapes."""
    with unchecked_shapes():
        yield
