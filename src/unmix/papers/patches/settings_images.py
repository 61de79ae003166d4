"""Section 6.2 and appendix A: deep nets on images, at a size that two cores carry and the paper's.

"mnist-std" and "mnist-adv" are small ResNets on a few thousand images, "mnist-std-full" and
"mnist-adv-full" the paper's ResNet18 on all of them; so for "cifar10" and "svhn", whose full nets
are WideResNet-34-10. The text gives the nets, the radii (0.3; 8/255) and the epochs (30; 200); all
else about the training is read as usual there (Madry et al. 2018, Rice et al. 2020): SGD with
momentum 0.9, weight decay 5e-4, batches of 128, the step size 0.1 cut to a tenth at half and three
quarters of the time, PGD of 40 steps (MNIST) or 10, crops and flips on CIFAR-10, crops on SVHN.

Standard and adversarial training differ in the attack alone, at either size.
"""

from __future__ import annotations

from typing import Any

from unmix.attacks.one import SuiteOfOne
from unmix.attacks.suite import AttackPlan, Suite, SuiteLinf
from unmix.data.images.distribution import Images
from unmix.data.images.loader import is_here
from unmix.experiment import Experiment, Samples
from unmix.nets.deep import DeepNet, ResNet, WideResNet
from unmix.papers.base import Setting
from unmix.train.deep import Ascent, DeepAdversarial, DeepDescent

DATASETS = ("mnist", "cifar10", "svhn")
SEEDS = tuple(range(5))
RADIUS = {"mnist": 0.3, "cifar10": 8 / 255, "svhn": 8 / 255}
BOX = (0.0, 1.0)
# Images of a seed that are attacked: by APGD alone, or at the paper's size by the whole suite.
ATTACKED = 50
# Epochs whose nets are kept: the curves of Figs 4 and 5.
KEPT = {"mnist": (0, 1, 2, 3, 4, 6, 8, 10), "other": (0, 1, 2, 3, 4, 6, 8, 10, 12)}
KEPT_FULL = {"mnist": (0, 1, 2, 5, 10, 20, 30), "other": (0, 1, 10, 50, 110, 200)}


def settings() -> dict[str, Setting]:
    """Name -> experiment."""
    table = {}
    for name in DATASETS:
        absent = "" if is_here(name) else f"the images of {name} are not here: unmix fetch {name}"
        lean, whole = SuiteOfOne(box=BOX, only="apgd"), SuiteLinf(box=BOX)
        for training in ("std", "adv"):
            full = f"{name}-{training}-full"
            small = _small(name, training)
            table[f"{name}-{training}"] = Setting(small, _plan(lean, name), absent, shrinks=full)
            table[full] = Setting(_full(name, training), _plan(whole, name), absent)
    return table


def _plan(suite: Suite, name: str) -> AttackPlan:
    return AttackPlan(suite, (RADIUS[name],), ATTACKED, unit="input")


def _small(name: str, training: str) -> Experiment:
    """A ResNet of three blocks; 2000 digits, 8000 photographs."""
    mnist = name == "mnist"
    fields: dict[str, Any] = {
        "eta": 0.05,
        "batch": 64,
        "epochs": 10 if mnist else 12,
        "snapshots": KEPT["mnist" if mnist else "other"],
    }
    attack = Ascent(eps=RADIUS[name], steps=5 if mnist else 3, warmup=3 if mnist else 0)
    samples = Samples(train=2000 if mnist else 8000, test=2000)
    return _experiment(name, ResNet(width=16), samples, training, attack, fields)


def _full(name: str, training: str) -> Experiment:
    """The paper's nets and epochs, on all images."""
    mnist, data = name == "mnist", Images(dataset=name)  # type: ignore[arg-type]
    net: DeepNet = WideResNet(depth=34, widen=10)
    if mnist:
        net = ResNet(width=64, blocks=(2, 2, 2, 2), stride=1)
    fields: dict[str, Any] = {
        "schedule": "drops",
        "epochs": 30 if mnist else 200,
        "augment": {"mnist": "none", "cifar10": "crop-flip", "svhn": "crop"}[name],
        "precision": "mixed",
        "watch": 2000,
        "snapshots": KEPT_FULL["mnist" if mnist else "other"],
    }
    attack = Ascent(eps=RADIUS[name], steps=40, size=1 / 30, warmup=5)
    if not mnist:
        attack = Ascent(eps=RADIUS[name], steps=10, size=0.25)
    samples = Samples(train=data.source.train, test=data.source.test)
    return _experiment(name, net, samples, training, attack, fields)


def _experiment(
    name: str,
    net: DeepNet,
    samples: Samples,
    training: str,
    attack: Ascent,
    fields: dict[str, Any],
) -> Experiment:
    train: DeepDescent = DeepDescent(**fields)
    if training == "adv":
        train = DeepAdversarial(attack=attack, **fields)
    return Experiment(
        data=Images(dataset=name),  # type: ignore[arg-type]
        net=net,
        train=train,
        samples=samples,
        seeds=SEEDS,
        dtype="float32",
    )
