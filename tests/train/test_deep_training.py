"""Deep training: its steps beside torch's own, its attack, its resumption, the paper's sizes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn.functional import cross_entropy

from pictures import install
from unmix.data.images import datasets
from unmix.data.images.distribution import Images
from unmix.errors import SpecError
from unmix.experiment import Experiment, Samples, run
from unmix.nets import deep
from unmix.nets.deep import ResNet, passed, planes
from unmix.papers.patches import settings_images
from unmix.store import Store
from unmix.train.deep import Ascent, DeepAdversarial, DeepDescent
from unmix.train.deep_epochs import PAD, at_epoch, cropped
from unmix.train.descent import Order

ATTACK = Ascent(eps=0.1, steps=2)
NET = ResNet(width=2, blocks=(1, 1))


@pytest.fixture(autouse=True)
def _tiny(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, tmp_path / "data", 60, 20)


def experiment(train: DeepDescent | None = None, seeds: tuple = (0, 4), n: int = 60) -> Experiment:
    train = train or DeepDescent(epochs=3, batch=25, watch=20, snapshots=(1, 3))
    samples = Samples(train=n, test=20)
    return Experiment(data=Images(), net=NET, train=train, samples=samples, seeds=seeds)


def adversarial(**fields: object) -> DeepAdversarial:
    return DeepAdversarial(
        **{"epochs": 3, "batch": 25, "watch": 20, "attack": ATTACK, "snapshots": (1, 3)} | fields
    )


def test_the_steps_are_torchs_sgd() -> None:
    made = experiment(DeepDescent(epochs=2, batch=25, watch=20, schedule="drops", drops=(0.5,)))
    found = run(made)
    batch = made.data.sample((0, 4), 60, "train")
    params = {n: t[1].clone() for n, t in made.net.start(made.data, (0, 4), batch).items()}
    module, moved = made.net.module(made.data).train(), made.net.names(made.data)
    for name in moved:
        params[name].requires_grad_()
    leaves = [params[name] for name in moved]
    steps = torch.optim.SGD(leaves, lr=0.1, momentum=0.9, weight_decay=5e-4)
    for epoch in range(2):
        steps.param_groups[0]["lr"] = 0.1 * 0.1**epoch
        for rows in Order((4,), 60, 25).permutation(4, epoch).split(25):
            steps.zero_grad()
            x = planes(batch.x[1, rows], made.data)
            cross_entropy(passed(module, params, x)[1], batch.y[1, rows]).backward()
            steps.step()
    for name, value in params.items():
        torch.testing.assert_close(found.params[name][1], value.detach(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("train", [None, adversarial()], ids=["standard", "adversarial"])
def test_a_lone_replica_agrees_and_learns(train: DeepDescent | None) -> None:
    both, lone = run(experiment(train)), run(experiment(train, seeds=(4,)))
    for name, value in lone.params.items():
        assert torch.equal(both.params[name][1:], value)
    assert torch.equal(both.trace.columns["loss"][1:], lone.trace.columns["loss"])
    assert (both.trace.columns["loss"][:, -1] < both.trace.columns["loss"][:, 0]).all()
    judged = both.classifier.accuracy(both.fresh(20))
    torch.testing.assert_close(both.trace.columns["test_accuracy"][:, -1], judged)
    end = at_epoch(both.trace.final, 3)
    assert all(torch.equal(end[n], both.params[n]) for n in both.params)
    assert not torch.equal(at_epoch(both.trace.final, 1)["top.weight"], end["top.weight"])


@pytest.mark.parametrize("train", [None, adversarial(augment="crop-flip")], ids=["std", "adv"])
def test_a_stopped_training_goes_on_bit_for_bit(tmp_path, train: DeepDescent | None) -> None:
    made = experiment(train)
    calm = Store(tmp_path / "calm").run(made)

    def stop(done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    store = Store(tmp_path / "stopped", every=0)
    with pytest.raises(KeyboardInterrupt):
        store.run(made, progress=stop)
    heard: list[int] = []
    found = store.run(made, progress=lambda done, total: heard.append(done))
    assert heard[0] == 2
    assert all(torch.equal(found.params[n], calm.params[n]) for n in calm.params)
    assert found.trace.final.keys() == calm.trace.final.keys()
    assert all(torch.equal(found.trace.final[n], t) for n, t in calm.trace.final.items())
    assert all(torch.equal(found.trace.columns[n], c) for n, c in calm.trace.columns.items())


def test_a_training_that_blows_up_is_put_back_and_says_so() -> None:
    found = run(experiment(DeepDescent(epochs=3, batch=25, watch=20, eta=1e200)))
    assert found.trace.diverged == (0, 1)
    assert "lower train.eta" in found.trace.stops[0].advice
    assert all(t.isfinite().all() for t in found.params.values())


@pytest.mark.parametrize("moments", ["running", "batch"])
@pytest.mark.parametrize("start", ["random", "point"])
def test_the_inner_attack_stays_where_it_may_and_hurts(start: str, moments: str) -> None:
    made = experiment()
    found, batch = run(made), made.data.sample((0,), 20, "test")
    params = {n: t[0] for n, t in found.params.items()}
    kept = {n: t.clone() for n, t in params.items()}
    module, x, y = made.net.module(made.data), planes(batch.x[0], made.data), batch.y[0]
    draws = torch.rand(x.shape, generator=torch.Generator().manual_seed(0)).double() * 2 - 1
    attack = Ascent(eps=0.1, steps=5, start=start, moments=moments)
    moved = attack.moved(module, params, x, y, draws, 0.1)
    assert float((moved - x).abs().max()) <= 0.1 + 1e-12
    assert float(moved.min()) >= 0
    assert float(moved.max()) <= 1
    assert all(torch.equal(params[n], t) for n, t in kept.items())
    module.eval()
    losses = [cross_entropy(passed(module, params, at)[1], y) for at in (x, moved)]
    assert losses[1] > losses[0]


def test_one_step_from_the_point_is_the_sign_of_the_gradient() -> None:
    made = experiment()
    batch = made.data.sample((0,), 10, "test")
    params = {n: t[0] for n, t in made.net.start(made.data, (0,), batch).items()}
    module, x = made.net.module(made.data).eval(), planes(batch.x[0], made.data)
    leaf = x.clone().requires_grad_()
    cross_entropy(passed(module, params, leaf)[1], batch.y[0]).backward()
    attack = Ascent(eps=0.1, steps=1, size=1.0, start="point")
    moved = attack.moved(module, params, x, batch.y[0], x, 0.1)
    torch.testing.assert_close(moved, (x + 0.1 * leaf.grad.sign()).clamp(0, 1))


def test_radii_and_step_sizes_follow_their_schedules() -> None:
    assert [Ascent(eps=0.3, warmup=2).radius(e) for e in range(4)] == pytest.approx(
        [0.1, 0.2, 0.3, 0.3]
    )
    assert [DeepDescent(schedule="drops").rate(s) for s in (0, 0.49, 0.5, 0.75)] == pytest.approx(
        [0.1, 0.1, 0.01, 0.001]
    )
    assert DeepDescent(schedule="cosine").rate(0.5) == pytest.approx(0.05)
    assert DeepDescent(schedule="constant").rate(0.9) == 0.1


def test_crops_and_flips_are_what_they_say() -> None:
    images = torch.rand(5, 2, 6, 6, generator=torch.Generator().manual_seed(0))
    corner = torch.tensor([[0, 0], [4, 4], [8, 2], [1, 7], [4, 4]])
    flip = torch.tensor([False, False, True, False, True])
    found = cropped(images, corner, flip)
    for i, (top, left) in enumerate(corner.tolist()):
        padded = torch.zeros(2, 6 + 2 * PAD, 6 + 2 * PAD)
        padded[:, PAD:-PAD, PAD:-PAD] = images[i]
        wanted = padded[:, top : top + 6, left : left + 6]
        assert torch.equal(found[i], wanted.flip(-1) if flip[i] else wanted)
    assert torch.equal(found[1], images[1])


def test_augmented_and_mixed_trainings_run_everywhere() -> None:
    """On a CPU there is no autocast: mixed is full."""
    plain = run(experiment(DeepDescent(epochs=1, batch=25, watch=20)))
    mixed = run(experiment(DeepDescent(epochs=1, batch=25, watch=20, precision="mixed")))
    moved = run(experiment(DeepDescent(epochs=1, batch=25, watch=20, augment="crop")))
    assert torch.equal(plain.params["top.weight"], mixed.params["top.weight"])
    assert not torch.equal(plain.params["top.weight"], moved.params["top.weight"])
    with torch.autocast("cpu", torch.bfloat16):
        low = experiment(DeepDescent(epochs=1, batch=25, watch=20))
        assert all(t.dtype == torch.float64 for t in run(low).params.values())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"snapshots": (4,)}, "expected epochs from 0 to 3, got \\[4\\]"),
        ({"drops": (1.0,)}, "expected shares between 0 and 1"),
        ({"batch": 1}, "batch"),
        ({"attack": {"eps": 0.0}}, "eps"),
    ],
)
def test_what_makes_no_sense_is_refused(fields: dict, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        DeepAdversarial.parse({"epochs": 3} | fields)


@pytest.mark.parametrize("name", ["mnist-adv-full", "cifar10-adv-full"])
def test_the_papers_own_size_takes_a_step(
    name: str, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole net on a handful of tiny images: one batch, one ascent."""
    install(monkeypatch, tmp_path / "data", 60, 20, "cifar10")
    # 46 million normals of a stream of their own take longer than the step.
    monkeypatch.setattr(deep, "normals", lambda seeds, what, shape, dtype: torch.randn(1, *shape))
    made = settings_images.settings()[name].experiment
    shape = (8, 8, 3) if made.data.dataset == "cifar10" else (8, 8)
    changes = ["seeds=[3]", "train.epochs=1", "train.snapshots=[]", "train.watch=2"]
    changes += ["train.record.points=2", "train.attack.steps=1", "train.eta=0.001"]
    small = Samples(train=2, test=2)
    made = made.with_(*changes)
    made = Experiment(**{n: getattr(made, n) for n in Experiment.model_fields} | {"samples": small})
    cut_images(monkeypatch, made.data.dataset, shape)
    assert made.train.cost(made.net, made.data, 2) > 1e6
    found = run(made)
    assert found.trace.diverged == ()
    assert all(t.isfinite().all() for t in found.params.values())
    (losses,) = found.trace.columns["loss"].tolist()
    assert losses[0] != losses[1]


def cut_images(patch: pytest.MonkeyPatch, name: str, shape: tuple[int, ...]) -> None:
    """Let images be their upper left corners."""
    from unmix.data.images import distribution
    from unmix.data.images.loader import Part

    whole, load = datasets.DATASETS[name].shape, distribution.load
    parts = {part: load(name, part) for part in ("train", "test")}

    def cut(name: str, part: str) -> Part:
        found = parts[part]
        images = found.images.unflatten(1, whole)[:, : shape[0], : shape[1]]
        return Part(images.flatten(1), found.labels)

    patch.setattr(distribution, "load", cut)
    patch.setitem(datasets.DATASETS, name, replace(datasets.DATASETS[name], shape=shape))
