"""Every experiment of the patches paper, at quick and at paper size.

The simulations of section 6.1 have the paper's own hyper-parameters at both sizes and differ only
in the number of seeds. Where the text leaves a choice, each reading is a setting of its own:

    adv             literal: eta~ = 1000, the gradient of one point's margin loss
    adv-mean        the margin loss as a mean over the batch, so that a point sees eta~/N = 10
    adv-one         eta~ = 1 for each point
    adv-margin*     -(F_y - max F_j) in place of -F_y;    adv-patch*   patch-wise clip
    adv-xavier      sigma_0 = 1/sqrt(d), as section 2.4 and Assumption B.3 have it
    adv-pgd         the form of Remark 2.5, by ten sign steps
"""

from __future__ import annotations

from typing import Any

from unmix.attacks.patch_suite import PatchPlan, PatchSuite
from unmix.data.patches import Patches
from unmix.experiment import Experiment, Samples
from unmix.nets.patch_cnn import NonRobustMinimum, PatchCnn, RobustMinimum
from unmix.papers.base import Setting, Size
from unmix.papers.patches import settings_images
from unmix.train.base import Record
from unmix.train.engines.patch_ascent import Ascent
from unmix.train.patch_recursion import PatchRecursion
from unmix.train.patches import PatchAdversarial, PatchDescent

SEEDS = {"quick": 5, "paper": 10}
EPS = 1.2
# Steps at which what was learned and how robust it is are looked at (Fig 3, right).
TIMES = (0, 50, 100, 150, 200, 300, 500, 750, 1000)
BATTERY = PatchPlan(PatchSuite(step=10.0), (EPS,), points=60)
STRONG = PatchSuite(attacks=("all-features", "patch-strong"))
CURVE = PatchPlan(STRONG, (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5), points=40)
# Per-mille and per-cent of the hyper-parameter that a ladder of noiseless trainings varies.
ETAS = {"quick": (25, 50, 100, 200), "paper": (12, 25, 50, 100, 200)}
STEPS = {"quick": (1, 3, 10, 30), "paper": (1, 3, 10, 30, 100)}
RADII = {"quick": (40, 60, 80, 100, 120, 150), "paper": (40, 50, 60, 70, 80, 90, 100, 120, 150)}
ALPHAS = {"quick": (175, 200, 225), "paper": (175, 200, 225, 250)}
# alpha of Prop 3.2, per cent, around the threshold eps (1 + P/n_R) = 20.4.
THRESHOLD = (1800, 1900, 2000, 2040, 2080, 2200)


def settings(size: Size) -> dict[str, Setting]:
    """Name -> experiment."""
    base = simulation(size)
    table = _main(base) | _quiet(base, size) | _constructed(base)
    if size == "paper":
        table |= _other_readings(base) | settings_images.settings()
    return table


def simulation(size: Size) -> Experiment:
    """Section 6.1: k=2, d=100, P=16, q=3, rho=1, N=m=100, sigma_0=.01, sigma_n=.1, eta=.1."""
    return Experiment(
        data=Patches(),
        net=PatchCnn(m=100, sigma_0=0.01),
        train=PatchDescent(eta=0.1, steps=1000, snapshots=TIMES),
        samples=Samples(train=100, test=200),
        seeds=tuple(range(SEEDS[size])),
        dtype="float32",
    )


def _with(experiment: Experiment, **parts: object) -> Experiment:
    """A copy with whole parts replaced, validated again."""
    fields = {name: getattr(experiment, name) for name in Experiment.model_fields}
    return Experiment(**(fields | parts))


def attacked(base: Experiment, **attack: Any) -> Experiment:
    """The same training on attacked points."""
    train = base.train
    kept = {name: getattr(train, name) for name in PatchDescent.model_fields if name != "kind"}
    return _with(base, train=PatchAdversarial(attack=Ascent(**attack), **kept))


def _main(base: Experiment) -> dict[str, Setting]:
    """The simulations of section 6.1, and the readings that are judged."""
    mean = attacked(base, reduction="mean")
    margin = attacked(base, reduction="mean", objective="margin")
    return {
        "std": Setting(base, BATTERY),
        "std-curve": Setting(base, CURVE),
        "adv": Setting(attacked(base), BATTERY),
        "adv-curve": Setting(attacked(base), CURVE),
        "adv-mean": Setting(mean, BATTERY),
        "adv-mean-curve": Setting(mean, CURVE),
        "adv-margin": Setting(margin, BATTERY),
        "adv-margin-curve": Setting(margin, CURVE),
        "adv-xavier": Setting(mean.with_("net.sigma_0=0.1", "train.steps=500"), BATTERY),
    }


def _other_readings(base: Experiment) -> dict[str, Setting]:
    """What is run at paper size only: every other reading of the attack, and a longer training."""
    pgd: dict[str, Any] = {"steps": 10, "direction": "sign", "step": 0.3, "objective": "margin"}
    table = {
        "adv-margin-literal": attacked(base, objective="margin"),
        "adv-patch": attacked(base, clip="patch"),
        "adv-patch-mean": attacked(base, clip="patch", reduction="mean"),
        "adv-pgd": attacked(base, **pgd),
        "adv-one": attacked(base, step=1.0),
        "adv-long": attacked(base).with_("train.steps=6000"),
    }
    return {name: Setting(experiment, BATTERY) for name, experiment in table.items()}


def _quiet(base: Experiment, size: Size) -> dict[str, Setting]:
    """The simplified setting of the proofs: no noise, and a point of each class for all of them."""
    quiet = _with(
        base,
        data=Patches(sigma_n=0.0, classes="balanced"),
        samples=Samples(train=2, test=20),
        train=PatchDescent(eta=0.1, steps=1000, record=Record(schedule="linear", points=201)),
    )
    small = _with(quiet, net=PatchCnn(m=5, sigma_0=0.01), dtype="float64")
    many = _with(quiet, seeds=tuple(range(20)))
    small_adv = attacked(small.with_("train.snapshots=[599, 600]"), step=10.0)
    recursion = PatchRecursion(step=10.0, eps=EPS, record=quiet.train.record)
    table = {
        "quiet-std": Setting(quiet, BATTERY),
        "quiet-adv": Setting(attacked(quiet, step=10.0), BATTERY),
        "exact-std": Setting(small),
        "exact-adv": Setting(small_adv.with_("train.steps=600")),
        "races": Setting(many.with_("train.steps=300")),
        "recursion-adv": Setting(_with(quiet, train=recursion)),
    }
    return table | _ladders(quiet, size)


def _ladders(quiet: Experiment, size: Size) -> dict[str, Setting]:
    """Noiseless trainings in eta, eta~, eps and alpha, around adv-mean."""
    table = {}
    adv = attacked(quiet, step=10.0)
    for eta in ETAS[size]:
        steps = round(40_000 / eta)
        table[f"quiet-eta{eta}"] = adv.with_(f"train.eta={eta / 1000}", f"train.steps={steps}")
    for step in STEPS[size]:
        table[f"quiet-step{step}"] = attacked(quiet, step=float(step))
    for eps in RADII[size]:
        table[f"quiet-eps{eps}"] = adv.with_(f"train.attack.eps={eps / 100}")
    for alpha in ALPHAS[size]:
        table[f"quiet-alpha{alpha}"] = _with(adv, data=_sized(quiet, alpha))
    return {name: Setting(experiment) for name, experiment in table.items()}


def _sized(quiet: Experiment, alpha: int) -> Patches:
    data: Patches = quiet.data.override(f"alpha=[{alpha / 100}, {alpha / 100}]")
    return data


def _constructed(base: Experiment) -> dict[str, Setting]:
    """The nets of Props 3.1 and 3.2; at gamma = 50 their filters are in the linear part."""
    still = _with(base, train=PatchDescent(steps=0))
    plan = PatchPlan(PatchSuite(attacks=("model-free", "all-features", "ce-pgd")), (EPS,), 60)
    table = {
        "minimum-non-robust": Setting(_with(still, net=NonRobustMinimum()), plan),
        "minimum-robust": Setting(_with(still, net=RobustMinimum()), plan),
        "minimum-robust-curve": Setting(_with(still, net=RobustMinimum()), CURVE),
        "minimum-non-robust-curve": Setting(_with(still, net=NonRobustMinimum()), CURVE),
    }
    for alpha in (1200, *THRESHOLD, 3000):
        data = base.data.override(f"alpha=[{alpha / 100}, {alpha / 100}]")
        robust = _with(still, data=data, net=RobustMinimum())
        table[f"minimum-alpha{alpha}"] = Setting(robust, plan)
    return table
