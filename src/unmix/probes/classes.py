"""What a net learned of images: accuracy by class, its features, and whom its neurons serve.

The stable rank is that of Phi on held-out images, |A|_F^2/|A|_2^2 (pReLU, Figs 3c and 6c); a neuron
is aligned if its cosine to some centred mean of a class exceeds 0.9 (section 5.2.1: none is). A
deep net's features are what stands below its last layer, and its filters see no whole images.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from unmix.data.images.distribution import Images
from unmix.data.images.features import Features
from unmix.experiment import Run
from unmix.probes.base import Measured, on
from unmix.probes.spectrum import stable_rank

POINTS = 1000
ALIGNED = 0.9


@on(Images, Features)
def classes(run: Run) -> Measured:
    """Accuracy on held-out images and on the worst class, stable rank, silent, aligned neurons."""
    net, batch = run.classifier, run.test_batch
    right = net.predict(batch.x) == batch.y
    some = run.fresh(min(POINTS, batch.points)).x
    hidden = net.features(some)  # type: ignore[attr-defined]
    values = {
        "accuracy": right.double().mean(1),
        "worst_class": _worst(right, batch.cluster),
        "hidden": stable_rank(hidden),
        "silent": (hidden <= 0).all(1).double().mean(1),
    }
    if "w" not in run.params:
        return Measured(values)
    cosines = class_cosines(run)
    aligned = (cosines.amax(2) > ALIGNED).double().mean(1)
    return Measured(values | {"aligned": aligned}, {"cosines": cosines})


def class_cosines(run: Run) -> Float[Tensor, "R h classes"]:
    """Cosines of first-layer weights with the centred mean training image of each class."""
    batch, w = run.train_batch, run.params["w"]
    kinds = batch.cluster.unique().tolist()
    rows = []
    for r in range(run.replicas):
        means = torch.stack([batch.x[r, batch.cluster[r] == k].mean(0) for k in kinds])
        centred = normalize(means - run.params["centre"][r], dim=1)
        rows.append(normalize(w[r], dim=1) @ centred.T)
    return torch.stack(rows)


def _worst(right: Tensor, kinds: Int[Tensor, "R n"]) -> Float[Tensor, " R"]:
    """The lowest accuracy over the classes that were met."""
    shares = [
        min(float(row[kind == k].double().mean()) for k in kind.unique())
        for row, kind in zip(right, kinds, strict=True)
    ]
    return torch.tensor(shares, dtype=torch.float64)
