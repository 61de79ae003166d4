"""Every experiment of the purification paper's theory half, at quick and at paper size.

The theorems speak of d -> infinity and have no experiment of their own: the ladder in d, with k
close to sqrt(d), stands for the limit. Each rung is one training, Algorithm 1 and then Algorithm 2;
`clean-d*` attacks the weights between the two, `purified-d*` the last ones.

The paper's constants do not work as printed at these sizes, so each has a value here, and the
literal ones are run beside (`literal-*`): lambda = 0.01/d for logloglog(d)/d, b up to
0.5/sqrt(k) for k^-0.5001, sigma_rho = 0.15 b and then 0.1 b, m = 8 d or 12 d for d^(1+c0).
"""

from __future__ import annotations

import math
from dataclasses import replace

from unmix.attacks.coded import CodeSuite
from unmix.attacks.gradient import PGD
from unmix.attacks.suite import AttackPlan
from unmix.data.sparse_code import SparseCode
from unmix.experiment import Experiment, Samples
from unmix.nets.contrast import CodeLinear, CodePolynomial, CodeTangent
from unmix.nets.symmetric import Symmetric
from unmix.papers.base import Setting, Size
from unmix.perturbations.fixed import Noise
from unmix.perturbations.gradient import FGM, ProjectedSteps
from unmix.train.base import Record
from unmix.train.contrast import ContrastDescent
from unmix.train.engines.symmetric import Schedule
from unmix.train.noisy_descent import NoisyDescent
from unmix.train.purification import Purification

SEEDS = tuple(range(5))
LADDER = {"quick": (50, 100, 200), "paper": (100, 200, 400, 800)}
# Where everything but the ladder is run.
SIDE = {"quick": 50, "paper": 100}
WIDTH = {"quick": 8, "paper": 12}
STEPS = {"quick": 350, "paper": 1000}
BATCH = {"quick": 500, "paper": 1000}
OPENING_BATCH = {"quick": 2000, "paper": 4000}
ADVERSARIAL = {"quick": 120, "paper": 300}
POINTS = {"quick": 80, "paper": 400}
# A point costs more to attack the larger d is.
ATTACKED = {400: 200, 800: 100}

TAU, TAU_INF = 0.15, 0.025
RADII = (0.05, 0.1, 0.15, 0.2, 0.3)
RADII_INF = (0.0125, 0.025, 0.0375, 0.05)


def settings(size: Size) -> dict[str, Setting]:
    """Name -> experiment."""
    return (
        _ladder(size)
        | _controls(size)
        | _starts(size)
        | _linf(size)
        | _simple(size)
        | _projected(size)
        | _overlapping(size)
    )


def world(d: int) -> SparseCode:
    """k = sqrt(d), one w* for all seeds, so that nets of different seeds learn the same labels."""
    return SparseCode(d=d, k=float(round(math.sqrt(d))), w_seed=0)


def clean(d: int, size: Size) -> NoisyDescent:
    """Algorithm 1."""
    return NoisyDescent(
        eta=d / 25,
        steps=STEPS[size],
        batch=BATCH[size],
        opening=150,
        opening_eta=d / 50,
        opening_batch=OPENING_BATCH[size],
        schedule=Schedule(b_max=threshold(d), decay=0.01 / d),
        radius=TAU,
        record=Record(points=16),
    )


def purification(d: int, size: Size) -> Purification:
    """Algorithm 1, then 2 against FGM."""
    return Purification(
        clean=clean(d, size),
        tau=TAU,
        steps=ADVERSARIAL[size],
        eta=d / 25,
        batch=BATCH[size],
        record=Record(points=20),
    )


def threshold(d: int) -> float:
    """b at the end of its growth, half of the small entries of z."""
    return 0.5 / math.sqrt(world(d).k)


def _experiment(d: int, size: Size, train: NoisyDescent | Purification) -> Experiment:
    return Experiment(
        data=world(d),
        net=Symmetric(m=WIDTH[size] * d, b=threshold(d) / 2),
        train=train,
        samples=Samples(train=1, test=POINTS[size]),
        seeds=SEEDS,
        dtype="float32",
    )


def _plans(size: Size, norm: str = "l2") -> tuple[AttackPlan, AttackPlan]:
    """Of the weights before and after adversarial training."""
    radii = RADII if norm == "l2" else RADII_INF
    pgd = PGD(steps=10, restarts=1) if size == "quick" else PGD(steps=40, restarts=3)
    suite = CodeSuite(pgd=pgd).override(f"norm={norm}")
    before = suite.override("weights=before")
    clean, last = (AttackPlan(s, radii, POINTS[size], "input") for s in (before, suite))
    return clean, last


def _ladder(size: Size) -> dict[str, Setting]:
    table = {}
    for d in LADDER[size]:
        points = ATTACKED.get(d, POINTS[size])
        before, after = (replace(plan, points=points) for plan in _plans(size))
        trained = _experiment(d, size, purification(d, size))
        table[f"clean-d{d}"] = Setting(trained, attack=before)
        table[f"purified-d{d}"] = Setting(trained, attack=after)
    return table


def _controls(size: Size) -> dict[str, Setting]:
    """What is not adversarial training: noise, more clean steps; and the paper's own lambda."""
    d = SIDE[size]
    _, after = _plans(size)
    base = _experiment(d, size, purification(d, size))
    noise = purification(d, size).override(f"attack={Noise().to_json()}")
    decay = math.log(math.log(math.log(d))) / d
    literal = _experiment(d, size, clean(d, size).override(f"schedule.decay={decay}"))
    return {
        "side-clean": Setting(base, attack=_plans(size)[0]),
        "side": Setting(base, attack=after),
        "noise": Setting(_experiment(d, size, noise), attack=after),
        "longer": Setting(base.with_("train.tau=0.0"), attack=after),
        "literal-lambda": Setting(literal),
        "literal-cubic": Setting(literal.with_("train.schedule.cubic=l3")),
    }


def _starts(size: Size) -> dict[str, Setting]:
    """Other starts: adversarial training from random weights, clean training from pure ones."""
    d = SIDE[size]
    _, after = _plans(size)
    scratch = purification(d, size).override(
        "clean.steps=0", f"steps={STEPS[size]}", "bias=grows", "hold=150", "rise=150"
    )
    still = clean(d, size).override("opening=0", f"steps={2 * STEPS[size]}")
    dictionary = _experiment(d, size, still).with_(
        "net.initial=pure", f"net.m={4 * d}", f"net.b={threshold(d)}"
    )
    return {
        "scratch": Setting(_experiment(d, size, scratch), attack=after),
        "hasty": Setting(_experiment(d, size, scratch.override("hold=0", "rise=0"))),
        "pure": Setting(dictionary, attack=after),
    }


def _linf(size: Size) -> dict[str, Setting]:
    """Thm 5.4, in the basis M = I. Radii above 0.25/k let FGM overfit."""
    d = SIDE[size]
    attack = FGM(norm="linf").to_json()
    train = purification(d, size).override(
        f"attack={attack}", f"tau={TAU_INF}", f"eta={d / 100}", f"steps={2 * ADVERSARIAL[size]}"
    )
    trained, plans = _experiment(d, size, train), _plans(size, "linf")
    return {
        "linf-clean": Setting(trained, attack=plans[0]),
        "linf-purified": Setting(trained, attack=plans[1]),
    }


def _simple(size: Size) -> dict[str, Setting]:
    """Learners of low complexity, each trained cleanly and against FGM in l_inf (Thm 5.6)."""
    d = SIDE[size]
    nets = {
        "linear": CodeLinear(),
        "polynomial": CodePolynomial(q=2 * d),
        "tangent": CodeTangent(m=2 * d),
    }
    clean = ContrastDescent(record=Record(points=4))
    against = clean.override(f"attack={FGM(norm='linf').to_json()}", f"tau={TAU_INF}")
    _, plan = _plans(size, "linf")
    table = {}
    for name, net in nets.items():
        for how, train in (("clean", clean), ("robust", against)):
            base = _experiment(d, size, purification(d, size))
            fields = {part: getattr(base, part) for part in Experiment.model_fields}
            learner = Experiment(**(fields | {"net": net, "train": train}))
            table[f"{name}-{how}"] = Setting(learner, attack=plan)
    printed = table["tangent-clean"].experiment.with_("net.sign=minus")
    return table | {"tangent-printed": Setting(printed)}


def _projected(size: Size) -> dict[str, Setting]:
    """Another perturbation algorithm than FGM, at paper size: seven projected steps."""
    if size == "quick":
        return {}
    d = SIDE[size]
    train = purification(d, size).override(f"attack={ProjectedSteps().to_json()}")
    return {"projected": Setting(_experiment(d, size, train), attack=_plans(size)[1])}


def _overlapping(size: Size) -> dict[str, Setting]:
    """More features than dimensions, a few or half as many again: trained in R^d, at paper size."""
    if size == "quick":
        return {}
    d, table = SIDE[size], {}
    before, after = _plans(size)
    for name, count in (("mild", 11 * d // 10), ("frame", 3 * d // 2)):
        frame = _experiment(d, size, purification(d, size)).with_(
            "data.basis=frame", f"data.D={count}"
        )
        table[f"{name}-clean"] = Setting(frame, attack=before)
        table[name] = Setting(frame, attack=after)
    return table
