"""Every experiment of the feature-averaging paper, at quick and at paper size.

The baseline B0 and its variations have the paper's own hyper-parameters at both sizes and differ
only in the number of seeds. Trends over k, n and d have no size in the paper; they grow with it.
"""

from __future__ import annotations

import math

from unmix.attacks.suite import STANDARD
from unmix.certify.choice import CertifyPlan
from unmix.data.clusters import Clusters
from unmix.experiment import Experiment, Samples
from unmix.nets.constructed import FeatureAveraging, FeatureDecoupling, NonRobustMultiClass
from unmix.nets.k_class import KClass
from unmix.nets.two_layer import TwoLayer
from unmix.papers.averaging import predict
from unmix.papers.base import Setting, Size
from unmix.train.base import Record
from unmix.train.descent import GradientDescent, NoTraining

SEEDS = {"quick": 5, "paper": 10}
POINTS = {"quick": 50, "paper": 200}
KS = {"quick": (2, 4, 10, 20, 40), "paper": (2, 4, 10, 20, 40, 80)}
FINE_KS = {"quick": (4, 10, 20), "paper": (4, 10, 20, 40)}
SIZES = {"quick": (250, 500, 1000), "paper": (250, 500, 1000, 2000, 4000)}
DIMENSIONS = (384, 768, 1536, 3072)
BETAS = {"half": 0.5, "best": 1 - 1 / math.sqrt(2), "zero": 0.0}
GRANULAR_K = 12
GRANULARITIES = (2, 4, 6, 12)
# lambda = 5.4 >= 2 ln k for every k <= 10 and enough for k = 40: decoupling is then complete.
DECOUPLED = 5.4
AVERAGED = 1.7

READINGS = Record(coefficients=("paper", "slides-divide", "label-free"))
COEFFICIENTS = Record(coefficients=("paper",))


def settings(size: Size) -> dict[str, Setting]:
    """Name -> experiment."""
    base = _baseline(size)
    table = _main(base) | _ablations(base, size) | _constructed(base)
    table |= _granularity(base) | _trends(base, size) | _dead(base)
    return table


def _baseline(size: Size) -> Experiment:
    """B0: k=10, d=3072, m=5, n=1000, alpha=sigma=1, eta=1e-3, sigma_w=sigma_b=1e-5, T=100."""
    return Experiment(
        data=Clusters(k=10, d=3072),
        net=TwoLayer(m=5, sigma_w=1e-5, sigma_b=1e-5),
        train=GradientDescent(eta=1e-3, steps=100, record=COEFFICIENTS),
        samples=Samples(train=1000, test=POINTS[size]),
        seeds=tuple(range(SEEDS[size])),
    )


def _with(experiment: Experiment, **parts: object) -> Experiment:
    """A copy with whole parts replaced, validated again."""
    fields = {name: getattr(experiment, name) for name in Experiment.model_fields}
    return Experiment(**(fields | parts))


def _main(base: Experiment) -> dict[str, Setting]:
    """The two learners at B0. The coefficients are tracked beside plain autograd, so that the
    recursion and the weights come from different code."""
    plain = _with(
        base, train=GradientDescent(eta=1e-3, steps=100, engine="reference", record=READINGS)
    )
    table = {
        "binary": Setting(plain, attack=STANDARD, certify=CertifyPlan()),
        "binary-next": Setting(base.with_("train.steps=101")),
        "binary-balanced": Setting(base.with_("data.sizes=balanced")),
        "binary-long": Setting(base.with_("train.steps=1000"), attack=STANDARD),
        "binary-tiny-init": Setting(base.with_("net.sigma_w=1e-10", "net.sigma_b=1e-10")),
    }
    light = _with(base, train=GradientDescent(eta=1e-3, steps=100))
    for steps in (10, 30, 300):
        table[f"binary-t{steps}"] = Setting(light.with_(f"train.steps={steps}"), attack=STANDARD)
    early = _with(light, net=KClass()).with_("train.steps=3")
    table["k-class-t3"] = Setting(early, attack=STANDARD)
    for h in (1, 3, 5):
        name = "k-class" if h == 1 else f"k-class-h{h}"
        # A search takes some 20 ms a point here: half of the points.
        half = CertifyPlan(points=base.samples.test // 2)
        table[name] = Setting(_with(base, net=KClass(h=h)), STANDARD, certify=half)
    return table


def _ablations(base: Experiment, size: Size) -> dict[str, Setting]:
    """Appendix E.1, Figs 5 to 9. Fig 8 does not say which of alpha, sigma is varied: both are."""
    changes = {
        "eta=0.1": ("train.eta=0.1",),
        "eta=0.01": ("train.eta=0.01",),
        "eta=0.0001": ("train.eta=0.0001",),
        "eta=0.01,T=10": ("train.eta=0.01", "train.steps=10"),
        "eta=0.0001,T=1000": ("train.eta=0.0001", "train.steps=1000"),
        "init=0.0001": ("net.sigma_w=0.0001", "net.sigma_b=0.0001"),
        "init=0.001": ("net.sigma_w=0.001", "net.sigma_b=0.001"),
        "init=0.01": ("net.sigma_w=0.01", "net.sigma_b=0.01"),
        "snr=0.5,alpha": ("data.alpha=0.5",),
        "snr=2,alpha": ("data.alpha=2.0",),
        "snr=0.5,sigma": ("data.sigma=2.0",),
        "snr=2,sigma": ("data.sigma=0.5",),
        "cos=1e-05": ("data.cosine=0.00001",),
        "cos=0.001": ("data.cosine=0.001",),
        "cos=0.09": ("data.cosine=0.09",),
        "cos=0.3": ("data.cosine=0.3",),
    }
    light = _with(base, train=GradientDescent(eta=1e-3, steps=100))
    table = {
        name: Setting(light.with_(*change), STANDARD, certify=CertifyPlan())
        for name, change in changes.items()
    }
    counts = (10_000, 50_000) if size == "paper" else (3000,)
    for n in counts:
        table[f"n={n}"] = Setting(light.with_(f"samples.train={n}"), attack=STANDARD)
    return table


def _constructed(base: Experiment) -> dict[str, Setting]:
    """Classifiers that are built, not trained, over several k and d."""
    still = _with(base, train=NoTraining(), samples=Samples(train=1, test=base.samples.test))
    table = {}
    for k in (4, 10, 20, 40):
        data = Clusters(k=k, d=3072)
        for name, net in (("FA", FeatureAveraging()), ("NRMC", NonRobustMultiClass())):
            made = _with(still, data=data, net=net)
            table[f"{name}-k{k}"] = Setting(made, STANDARD, certify=CertifyPlan())
    for name, beta in BETAS.items():
        decoupled = _with(still, net=FeatureDecoupling(beta=beta))
        table[f"FD-{name}"] = Setting(decoupled, STANDARD, certify=CertifyPlan())
    biased = FeatureAveraging(bias_plus=0.3, bias_minus=-0.3)
    table["FA-biased"] = Setting(_with(still, net=biased), STANDARD)
    for d in DIMENSIONS:
        data = Clusters(k=10, d=d)
        table[f"NRMC-d{d}"] = Setting(_with(still, data=data, net=NonRobustMultiClass()))
    return table


def _granularity(base: Experiment) -> dict[str, Setting]:
    """The same clusters trained with G labels, 2 <= G <= k, all to the same lambda."""
    table = {}
    for labels in GRANULARITIES:
        start = _with(
            base,
            data=Clusters(k=GRANULAR_K, d=3072, sizes="balanced"),
            net=KClass(labels=labels),
            samples=Samples(train=100 * GRANULAR_K, test=base.samples.test),
            train=GradientDescent(eta=1e-3, steps=300),
        )
        table[f"labels={labels}"] = Setting(start, attack=STANDARD)
    return table


def _trends(base: Experiment, size: Size) -> dict[str, Setting]:
    """Ladders in k (both learners, trained to a fixed lambda), and in (n, d) at k = 4.

    A fixed T would let lambda shrink with k and bias the exponents, so T follows the margin law.
    """
    table = {}
    light = _with(base, train=GradientDescent(eta=1e-3, steps=100))
    for k in KS[size]:
        table[f"binary-k{k}"] = _trained_to(
            light, Clusters(k=k, d=3072), TwoLayer(), 1000, AVERAGED
        )
    for k in FINE_KS[size]:
        data = Clusters(k=k, d=3072)
        table[f"k-class-k{k}"] = _trained_to(light, data, KClass(), 100 * k, DECOUPLED)
    for n in SIZES[size]:
        d = 3 * n
        data, train = (
            Clusters(k=4, d=d),
            GradientDescent(eta=3.0 / d, steps=100, record=COEFFICIENTS),
        )
        small = _with(
            base, data=data, train=train, samples=Samples(train=n, test=base.samples.test)
        )
        table[f"binary-n{n}"] = Setting(small, attack=STANDARD)
        table[f"k-class-n{n}"] = Setting(_with(small, net=KClass()), attack=STANDARD)
    return table


def _trained_to(
    base: Experiment, data: Clusters, net: TwoLayer | KClass, n: int, level: float
) -> Setting:
    """Train until the margin law says lambda = level."""
    start = _with(base, data=data, net=net, samples=Samples(train=n, test=base.samples.test))
    return Setting(start.with_(f"train.steps={predict.steps_for(start, level)}"), attack=STANDARD)


def _dead(base: Experiment) -> dict[str, Setting]:
    """Few points a class (n/k = 25): classes die. Many seeds, since dying is rare; the start alone
    needs no training and can have more."""
    few = _with(
        base,
        data=Clusters(k=40, d=1024),
        net=KClass(),
        train=GradientDescent(eta=3e-3, steps=60),
        samples=Samples(train=1000, test=base.samples.test),
        seeds=tuple(range(20)),
    )
    start = _with(few, data=Clusters(k=40, d=64), train=NoTraining(), seeds=tuple(range(300)))
    redrawn = few.with_("net.silent=redraw")
    return {"dead": Setting(few), "dead-redrawn": Setting(redrawn), "few-points": Setting(start)}
