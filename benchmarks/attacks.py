"""Attacks against those of other libraries: CPU time of a whole curve, and what each leaves.

    python -m pip install 'unmix[bench]'
    python -m pip install --no-deps torchattacks adv-lib tqdm
    python benchmarks/attacks.py [--repeats 3] [--points 1000] [--out docs/attacks-performance.md]

Every competitor is timed in turn in one process, on one thread; ratios are medians over repeats,
with the range in brackets. A curve has 10 radii; slow peers run on fewer radii or points, and their
time is multiplied. What a peer returns is judged by us in float64, so its robust accuracy counts
only what holds within ball and box. A peer that is not installed, or that cannot do a case, is left
out with the reason. The MNIST rows need the images: `unmix fetch`. Two peers go without their
dependencies: one pins an old `requests`, the other wants a torchvision.

Some libraries take images in [0, 1] only. Without a box they get inputs rescaled to a box as wide
as the points and the largest ball around each: no perturbation within a radius is lost.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import torch
from measure import cell, interleaved, machine, ratios, shown, table
from torch import Tensor, nn

from unmix.attacks.base import carried_out
from unmix.attacks.minimum import CURVE
from unmix.attacks.outside import judge
from unmix.attacks.problem import module_problem
from unmix.attacks.threat import Threat
from unmix.data.clusters import Clusters
from unmix.data.images.loader import is_here, load
from unmix.experiment import Experiment, Samples, run
from unmix.nets.two_layer import TwoLayer
from unmix.train.descent import GradientDescent

STEPS = 40
Attack = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Case:
    """A classifier with points, a threat, radii, and how many times faster we want to be."""

    name: str
    model: nn.Module
    x: Tensor
    y: Tensor
    threat: Threat
    radii: tuple[float, ...]
    goals: Mapping[str, str]
    image: tuple[int, ...] = (1, 1, 1)

    @property
    def box(self) -> tuple[float, float]:
        """Of the threat, or one that no ball of the largest radius leaves."""
        reach = self.radii[-1]
        wide = float(self.x.min()) - reach, float(self.x.max()) + reach
        return self.threat.box or wide

    def unit(self, x: Tensor) -> Tensor:
        """Points as images in [0, 1]."""
        low, high = self.box
        return ((x - low) / (high - low)).reshape(-1, *self.image)

    def back(self, u: Tensor) -> Tensor:
        """Images as points."""
        low, high = self.box
        return (low + (high - low) * u).flatten(1)

    @property
    def rescaled(self) -> nn.Module:
        """The model of such images."""
        return nn.Sequential(nn.Flatten(), Rescaled(self.model, self.box)).eval()

    def share(self, radius: float) -> float:
        """A radius among such images."""
        return radius / (self.box[1] - self.box[0])


class Rescaled(nn.Module):
    """The model of inputs in [0, 1], for libraries that clamp to it: u -> low + (high - low) u."""

    def __init__(self, model: nn.Module, box: tuple[float, float]) -> None:
        super().__init__()
        self.model, self.low, self.width = model, box[0], box[1] - box[0]

    def forward(self, u: Tensor) -> Tensor:
        return self.model(self.low + self.width * u)


def averaging(points: int) -> Case:
    """The feature-averaging net after 100 steps: d=3072, 10 neurons, 10 clusters."""
    experiment = Experiment(
        data=Clusters(k=10, d=3072),
        net=TwoLayer(m=5, sigma_w=1e-5, sigma_b=1e-5),
        train=GradientDescent(eta=1e-3, steps=100),
        samples=Samples(train=1000, test=points),
    )
    trained = run(experiment)
    form, batch = trained.model.form, trained.test_batch
    first, last = nn.Linear(3072, 10), nn.Linear(10, 2, bias=False)
    with torch.no_grad():
        first.weight.copy_(form.w[0])
        first.bias.copy_(form.b[0])
        last.weight.copy_(torch.cat([-form.readout[0], form.readout[0]], 1).T / 2)
    model = nn.Sequential(first, nn.ReLU(), last)
    x, y = batch.x[0].float(), (batch.y[0] > 0).long()
    radii = tuple(3.0 * i for i in range(1, 11))
    return Case("averaging net, d=3072, 10 neurons, l2", model, x, y, Threat(), radii, AVERAGING,
                (1, 1, 3072))  # fmt: skip


@cache
def trained() -> nn.Module:
    """784-500-10, Adam, 3 epochs of 60,000 images."""
    torch.manual_seed(0)
    train = load("mnist", "train")
    model = nn.Sequential(nn.Linear(784, 500), nn.ReLU(), nn.Linear(500, 10))
    flat = torch.as_tensor(train.images).flatten(1).float() / 255
    labels = torch.as_tensor(train.labels).long()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(3):
        for rows in torch.randperm(len(flat)).split(128):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(flat[rows]), labels[rows]).backward()
            optimiser.step()
    return model.eval()


def mnist(points: int, box: bool) -> Case:
    """Test images of MNIST."""
    test = load("mnist", "test")
    x = torch.as_tensor(test.images)[:points].flatten(1).float() / 255
    y = torch.as_tensor(test.labels)[:points].long()
    radii = tuple(round(0.2 * i, 1) for i in range(1, 11))
    threat = Threat(box=(0.0, 1.0)) if box else Threat()
    where = "in the [0, 1] box" if box else "no box"
    return Case(f"MNIST 784-500-10, l2, {where}", trained(), x, y, threat, radii,
                BOXED if box else OPEN, (1, 28, 28))  # fmt: skip


def torchattacks_pgd(case: Case, radius: float) -> Attack:
    library, eps = importlib.import_module("torchattacks"), case.share(radius)
    attack = library.PGDL2(
        case.rescaled, eps=eps, alpha=2.5 * eps / STEPS, steps=STEPS, random_start=False
    )
    return lambda x, y: case.back(attack(case.unit(x), y))


def foolbox_pgd(case: Case, radius: float) -> Attack:
    library = importlib.import_module("foolbox")
    model = library.PyTorchModel(case.model, bounds=case.box)
    attack = library.attacks.L2PGD(steps=STEPS, rel_stepsize=2.5 / STEPS, random_start=False)
    return lambda x, y: attack(model, x, y, epsilons=radius)[1]


def art_pgd(case: Case, radius: float) -> Attack:
    estimators = importlib.import_module("art.estimators.classification")
    evasion = importlib.import_module("art.attacks.evasion")
    classes = case.model(case.x[:1]).shape[1]
    wrapped = estimators.PyTorchClassifier(
        case.model,
        nn.CrossEntropyLoss(),
        case.x.shape[1:],
        classes,
        clip_values=case.threat.box,
    )
    attack = evasion.ProjectedGradientDescent(
        wrapped, norm=2, eps=radius, eps_step=2.5 * radius / STEPS, max_iter=STEPS,
        batch_size=1000, verbose=False,
    )  # fmt: skip
    return lambda x, y: torch.from_numpy(attack.generate(x.numpy(), y.numpy()))


def auto_attack(case: Case, radius: float, *, members: tuple[str, ...] = ()) -> Attack:
    library = importlib.import_module("pyautoattack")
    chosen = {"version": "custom", "attacks": list(members)} if members else {"version": "standard"}
    attack = library.AutoAttack(case.rescaled, norm="L2", eps=case.share(radius), seed=0, **chosen)

    def carried(x: Tensor, y: Tensor) -> Tensor:
        found = attack.run_standard_evaluation(case.unit(x), y, batch_size=1000)
        return case.back(found[0] if isinstance(found, tuple) else found)

    return carried


def super_deep_fool(case: Case) -> Attack:
    # Only its data sets and plots need these, which come without wheels for this torch.
    for name in UNUSED:
        sys.modules.setdefault(name, MagicMock())
    library: Any = importlib.import_module("adv_lib.attacks.superdeepfool")
    return lambda x, y: case.back(library.sdf(case.rescaled, case.unit(x), y, steps=50))


PARTS = ("models", "datasets", "utils", "transforms", "transforms.functional")
UNUSED = ("visdom", "torchvision", *(f"torchvision.{part}" for part in PARTS))
WHOLE = "adv-lib SuperDeepFool"
AVERAGING = {"torchattacks PGD": ">= 300", "foolbox PGD": ">= 300", "ART PGD": ">= 300"}
OPEN = {"torchattacks PGD": ">= 15", "apgd-t of AutoAttack": ">= 50", WHOLE: ">= 1"}
BOXED = {"torchattacks PGD": ">= 2", "AutoAttack standard": ">= 200", WHOLE: ">= 1"}
# A peer that attacks one radius at a time.
PEERS: dict[str, Callable[[Case, float], Attack]] = {
    "torchattacks PGD": torchattacks_pgd,
    "foolbox PGD": foolbox_pgd,
    "ART PGD": art_pgd,
    "apgd-t of AutoAttack": partial(auto_attack, members=("apgd-t",)),
    "AutoAttack standard": auto_attack,
}
# Radii, by their place, on which slow peers run, and on how many points.
SOME = {
    "torchattacks PGD": (slice(4, 7), 1000),
    "foolbox PGD": (slice(4, 7), 1000),
    "ART PGD": (slice(5, 6), 1000),
    "apgd-t of AutoAttack": (slice(3, 4), 500),
    "AutoAttack standard": (slice(3, 4), 50),
}


def alone(case: Case, points: int) -> Tensor:
    """What a peer does: perturbations, here for the whole curve; nobody has judged them."""
    x, y = case.x[:points], case.y[:points]
    problem = module_problem(case.model, x, y, case.threat, case.radii[-1])
    return CURVE.search(problem, case.radii).delta


def ours(case: Case, points: int) -> Tensor:
    """Robust accuracy over the radii: the same, and everything judged in float64."""
    x, y = case.x[:points], case.y[:points]
    problem = module_problem(case.model, x, y, case.threat, case.radii[-1])
    return carried_out([problem], [CURVE], case.radii).robust_accuracy()[0]


@dataclass
class Peer:
    """One library on one case; what it returned last is kept."""

    case: Case
    name: str
    points: int
    radii: tuple[float, ...]
    returned: list[Tensor]

    @classmethod
    def of(cls, case: Case, name: str) -> Peer:
        some, points = SOME.get(name, (slice(None), len(case.x)))
        radii = (1e6,) if name == WHOLE else case.radii[some]
        return cls(case, name, min(points, len(case.x)), radii, [])

    def __call__(self) -> None:
        """The attack alone, without our judging."""
        x, y = self.case.x[: self.points], self.case.y[: self.points]
        self.returned = [self._attack(radius)(x, y).detach() for radius in self.radii]

    def _attack(self, radius: float) -> Attack:
        whole = self.name == WHOLE
        return super_deep_fool(self.case) if whole else PEERS[self.name](self.case, radius)

    @property
    def share(self) -> float:
        """Of a whole curve."""
        return 1.0 if self.name == WHOLE else len(self.radii) / len(self.case.radii)

    def left(self) -> Tensor:
        """Robust accuracy as we judge it; of a minimum-norm peer at all radii, in one run."""
        case, best = self.case, []
        x, y = case.x[: self.points], case.y[: self.points]
        for radius, came in zip(self.radii, self.returned, strict=True):
            there = came.reshape(x.shape)
            best.append(
                judge(
                    lambda x, y, there=there: there,
                    case.model,
                    x,
                    y,
                    radius,
                    case.threat,
                )
            )
        smallest = torch.stack([held.radius for held in best]).amin(0)
        radii = case.radii if self.name == WHOLE else self.radii
        return torch.stack([(smallest > r).double().mean() for r in radii])

    def mine(self) -> Tensor:
        """Ours at the same radii, on the same points."""
        found = ours(self.case, self.points)
        at = self.case.radii.index(self.radii[0]) if self.name != WHOLE else 0
        return found if self.name == WHOLE else found[at : at + len(self.radii)]


def row(case: Case, name: str, repeats: int) -> list[str]:
    """One line of the page."""
    peer, goal = Peer.of(case, name), case.goals.get(name, "")
    works: dict[str, Callable[[], Any]] = {
        "they": peer,
        "alone": partial(alone, case, peer.points),
        "judged": partial(ours, case, peer.points),
    }
    try:
        seconds = interleaved(works, 1 if name == SLOWEST else repeats)
        difference = 100 * (peer.mine() - peer.left())
    except (ImportError, RuntimeError, ValueError, IndexError, TypeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return [case.name, name, *[""] * 5, goal, f"not run: {reason[:80]}"]
    times = [s / peer.share for s in seconds["they"]]
    gap = f"{float(difference.max()):+.1f} to {float(difference.min()):+.1f}"
    return [
        case.name, f"{name}{_note(peer)}", shown(min(times)), shown(min(seconds["alone"])),
        shown(min(seconds["judged"])), cell(ratios(times, seconds["alone"])),
        cell(ratios(times, seconds["judged"])), goal, gap,
    ]  # fmt: skip


def _note(peer: Peer) -> str:
    """What of the case a slow peer has run on."""
    if peer.share == 1 and peer.points == len(peer.case.x):
        return ""
    count = len(peer.radii)
    return f" ({peer.points} points, {count} of {len(peer.case.radii)} radii)"


SLOWEST = "AutoAttack standard"


def cases(points: int) -> list[tuple[Case, tuple[str, ...]]]:
    pgd = ("torchattacks PGD", "foolbox PGD", "ART PGD")
    found = [(averaging(points), pgd)]
    if is_here("mnist"):
        found += [
            (
                mnist(points, box=False),
                ("torchattacks PGD", "apgd-t of AutoAttack", WHOLE),
            ),
            (
                mnist(points, box=True),
                ("torchattacks PGD", "AutoAttack standard", WHOLE),
            ),
        ]
    return found


def page(rows: list[list[str]], points: int, repeats: int, seconds: float) -> str:
    head = (
        "case",
        "against",
        "they, s",
        "we alone, s",
        "we with judging, s",
        "times faster, alone",
        "with judging",
        "goal",
        "ours minus theirs, points",
    )
    lines = [
        "# Attacks against those of other libraries",
        "",
        f"CPU seconds of a whole l2 curve, 10 radii, {points} points, {STEPS} steps; the best of"
        f" {repeats} interleaved repeats in one process, and the median ratio [range]."
        f" {date.today().isoformat()}, {machine()}; {seconds:.0f} s in all."
        " `python benchmarks/attacks.py` writes this page.",
        "",
        *table(head, rows),
        "",
        NOTE,
    ]
    return "\n".join(lines) + "\n"


NOTE = """*They* and *we alone* is the attack alone, from the module and the points to
perturbed inputs; *with judging* adds all that stands behind a robust accuracy of ours: every
success replayed in float64 on the untouched model and cut to its edge, and the flags. We run the
search for curves, `unmix.attacks.minimum.CURVE`, once for all radii; slow peers run on some radii
and points, as said, and their time is multiplied; full AutoAttack runs once. The goals are read
as those of the attack alone.

*Ours minus theirs* is robust accuracy in points, at the worst and the best of their radii for us:
below 0 we are stronger. Their successes are judged in float64 within ball and box, cut to their
edges, and count at every radius above. Libraries that take inputs in [0, 1] alone get them rescaled
to a box that no ball of the largest radius leaves; SuperDeepFool clips to it. It attacks at no
radius, so its whole curve is one run. Full AutoAttack and its apgd-t need more labels than two, so
they have no row on the averaging net."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=Path("docs/attacks-performance.md"))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    rows, start = [], time.process_time()
    for case, peers in cases(asked.points):
        for name in peers:
            rows.append(row(case, name, asked.repeats))
            print(" | ".join(rows[-1]), flush=True)
    asked.out.write_text(
        page(rows, asked.points, asked.repeats, time.process_time() - start),
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
