"""Numbers of a net on images, against plain loops."""

from __future__ import annotations

import pytest
import torch

from lab import pictured, put
from pictures import install
from unmix.data.images.distribution import Images
from unmix.experiment import Experiment, Samples
from unmix.experiment import run as train
from unmix.nets.deep import ResNet
from unmix.probes.classes import class_cosines, classes
from unmix.train.deep import DeepDescent


@pytest.fixture(autouse=True)
def _tiny(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, tmp_path, 400, 300)


def test_accuracies_are_those_of_the_predictions() -> None:
    run = pictured()
    batch, found = run.test_batch, classes(run)
    labels = run.classifier.outputs(batch.x).argmax(-1)
    for r in range(2):
        right = [int(labels[r, i]) == int(batch.y[r, i]) for i in range(50)]
        assert float(found["accuracy"][r]) == pytest.approx(sum(right) / 50)
        by_class: dict[int, list[bool]] = {}
        for i in range(50):
            by_class.setdefault(int(batch.cluster[r, i]), []).append(right[i])
        worst = min(sum(hits) / len(hits) for hits in by_class.values())
        assert float(found["worst_class"][r]) == pytest.approx(worst)


def test_a_neuron_on_a_class_mean_is_aligned_and_a_dead_one_silent() -> None:
    run = pictured()
    batch = run.train_batch
    mean = batch.x[0, batch.cluster[0] == 3].mean(0) - run.params["centre"][0]
    w = run.params["w"].clone()
    w[:, 0] = 7 * mean
    w[:, 1] = 0
    found = classes(put(run, **run.params | {"w": w}))
    cosines = class_cosines(put(run, **run.params | {"w": w}))
    torch.testing.assert_close(cosines[:, 0, 3], torch.ones(2, dtype=torch.float64))
    others = float((class_cosines(run)[:, 2:].amax(2) > 0.9).sum())
    assert float(found["aligned"].sum()) == pytest.approx((2 + others) / 20)
    assert (found["silent"] >= 1 / 20).all()


def test_a_deep_net_is_read_without_asking_for_neurons_on_pixels() -> None:
    made = Experiment(
        data=Images(),
        net=ResNet(width=2, blocks=(1, 1)),
        train=DeepDescent(epochs=0, watch=20),
        samples=Samples(train=40, test=50),
        seeds=(0, 1),
    )
    run = train(made)
    found = classes(run)
    assert list(found.values) == ["accuracy", "worst_class", "hidden", "silent"]
    below = run.classifier.features(run.fresh(50).x)
    torch.testing.assert_close(found["silent"], (below <= 0).all(1).double().mean(1))
    torch.testing.assert_close(found["accuracy"], run.classifier.accuracy(run.test_batch))
