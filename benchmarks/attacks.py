"""Attacks against those of other libraries: CPU time of a whole curve, and what each leaves.

    python -m pip install 'unmix[bench]'
    python -m pip install --no-deps torchattacks adv-lib tqdm
    python benchmarks/attacks.py [--repeats 3] [--points 1000] [--out docs/attacks-performance.md]

Every competitor is timed in turn in one process, on one thread; ratios are medians over repeats,
with the range in brackets. A curve has 10 radii. What a peer returns is judged by us in float64, so
its robust accuracy counts only what holds within ball and box. A peer that is not installed, or
that cannot do a case, is left out with the reason. The MNIST rows need the images: `unmix fetch`.
Two peers go without their dependencies: one pins an old `requests`, the other wants a torchvision.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import torch
from measure import cell, interleaved, machine, ratios, shown, table
from torch import Tensor, nn

from unmix.attacks.base import carried_out
from unmix.attacks.minimum import MinimumNorm
from unmix.attacks.outside import outside_curve
from unmix.attacks.problem import module_problem
from unmix.attacks.threat import Threat
from unmix.data.clusters import Clusters
from unmix.data.images.loader import is_here, load
from unmix.experiment import Experiment, Samples, run
from unmix.nets.two_layer import TwoLayer
from unmix.train.descent import GradientDescent

STEPS, WIDE = 40, 100.0
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
    few: int = 100


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
    return Case("averaging net, d=3072, 10 neurons, l2", model, x, y, Threat(), radii, AVERAGING)


def mnist(points: int, box: bool) -> Case:
    """784-500-10, Adam, 3 epochs of 60,000 images."""
    torch.manual_seed(0)
    train, test = (load("mnist", part) for part in ("train", "test"))
    model = nn.Sequential(nn.Linear(784, 500), nn.ReLU(), nn.Linear(500, 10))
    flat = torch.as_tensor(train.images).flatten(1).float() / 255
    labels = torch.as_tensor(train.labels).long()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(3):
        for rows in torch.randperm(len(flat)).split(128):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(flat[rows]), labels[rows]).backward()
            optimiser.step()
    x = torch.as_tensor(test.images)[:points].flatten(1).float() / 255
    y = torch.as_tensor(test.labels)[:points].long()
    radii = tuple(round(0.2 * i, 1) for i in range(1, 11))
    threat = Threat(box=(0.0, 1.0)) if box else Threat()
    where = "in the [0, 1] box" if box else "no box"
    return Case(f"MNIST 784-500-10, l2, {where}", model.eval(), x, y, threat, radii,
                BOXED if box else OPEN)  # fmt: skip


def torchattacks_pgd(case: Case, radius: float) -> Attack:
    library = importlib.import_module("torchattacks")
    low, width = _box(case)
    model = Rescaled(case.model, (low, low + width))
    eps = radius / width
    # It takes images only: [n, 1, 1, d].
    flat = nn.Sequential(nn.Flatten(), model).eval()
    attack = library.PGDL2(flat, eps=eps, alpha=2.5 * eps / STEPS, steps=STEPS, random_start=False)
    return lambda x, y: low + width * attack(((x - low) / width)[:, None, None], y)[:, 0, 0]


def foolbox_pgd(case: Case, radius: float) -> Attack:
    library = importlib.import_module("foolbox")
    low, width = _box(case)
    model = library.PyTorchModel(case.model, bounds=(low, low + width))
    attack = library.attacks.L2PGD(steps=STEPS, rel_stepsize=2.5 / STEPS, random_start=False)
    return lambda x, y: attack(model, x, y, epsilons=radius)[1]


def art_pgd(case: Case, radius: float) -> Attack:
    estimators = importlib.import_module("art.estimators.classification")
    evasion = importlib.import_module("art.attacks.evasion")
    classes = case.model(case.x[:1]).shape[1]
    wrapped = estimators.PyTorchClassifier(
        case.model, nn.CrossEntropyLoss(), case.x.shape[1:], classes, clip_values=case.threat.box
    )
    attack = evasion.ProjectedGradientDescent(
        wrapped, norm=2, eps=radius, eps_step=2.5 * radius / STEPS, max_iter=STEPS,
        batch_size=1000, verbose=False,
    )  # fmt: skip
    return lambda x, y: torch.from_numpy(attack.generate(x.numpy(), y.numpy()))


def auto_attack(case: Case, radius: float, *, members: tuple[str, ...]) -> Attack:
    library = importlib.import_module("pyautoattack")
    low, width = _box(case)
    model = Rescaled(case.model, (low, low + width))
    members_of = {"version": "standard"}
    if members != STANDARD:
        members_of = {"version": "custom", "attacks": list(members)}
    attack = library.AutoAttack(model, norm="L2", eps=radius / width, seed=0, **members_of)

    def carried(x: Tensor, y: Tensor) -> Tensor:
        found = attack.run_standard_evaluation((x - low) / width, y, batch_size=1000)
        return low + width * (found[0] if isinstance(found, tuple) else found)

    return carried


def super_deep_fool(case: Case) -> Attack:
    # Only its data sets and plots need these, which come without wheels for this torch.
    for name in UNUSED:
        sys.modules.setdefault(name, MagicMock())
    library: Any = importlib.import_module("adv_lib.attacks.superdeepfool")
    return lambda x, y: library.sdf(case.model, x, y, steps=50)


PARTS = ("models", "datasets", "utils", "transforms", "transforms.functional")
UNUSED = ("visdom", "torchvision", *(f"torchvision.{part}" for part in PARTS))
STANDARD = ("apgd-ce", "apgd-t", "fab-t", "square")
AVERAGING = {"torchattacks PGD": ">= 300", "foolbox PGD": ">= 300", "ART PGD": ">= 300"}
OPEN = {
    "torchattacks PGD": ">= 15",
    "apgd-t of AutoAttack": ">= 50",
    "adv-lib SuperDeepFool": ">= 1",
}
BOXED = {"torchattacks PGD": ">= 2", "AutoAttack standard": ">= 200"}
# A peer that attacks one radius at a time; those of `SLOW` are timed on a few points at one radius.
PEERS: dict[str, Callable[[Case, float], Attack]] = {
    "torchattacks PGD": torchattacks_pgd,
    "foolbox PGD": foolbox_pgd,
    "ART PGD": art_pgd,
    "apgd-t of AutoAttack": partial(auto_attack, members=("apgd-t",)),
    "AutoAttack standard": partial(auto_attack, members=STANDARD),
}
SLOW = ("apgd-t of AutoAttack", "AutoAttack standard")
WHOLE = "adv-lib SuperDeepFool"


def _box(case: Case) -> tuple[float, float]:
    """Of a library that wants one; without a box one so wide that it never matters."""
    low, high = case.threat.box or (-WIDE, WIDE)
    return low, high - low


def ours(case: Case, points: int) -> Tensor:
    """Robust accuracy over the radii, by one minimum-norm run with everything that judges it."""
    x, y = case.x[:points], case.y[:points]
    problem = module_problem(case.model, x, y, case.threat, case.radii[-1])
    return carried_out([problem], [MinimumNorm()], case.radii).robust_accuracy()[0]


def theirs(case: Case, name: str, points: int, radii: tuple[float, ...]) -> Tensor:
    x, y = case.x[:points], case.y[:points]
    curve = {name: partial(PEERS[name], case)}
    return outside_curve(curve, case.model, x, y, radii, case.threat).robust_accuracy()[0]


def whole(case: Case) -> Tensor:
    """A minimum-norm peer: one run, at a radius that no length exceeds."""
    far = {WHOLE: lambda radius: super_deep_fool(case)}
    held = outside_curve(far, case.model, case.x, case.y, (1e6,), case.threat)
    radius = held.smallest[0]
    return torch.stack([(radius > r).double().mean() for r in case.radii])


def row(case: Case, name: str, repeats: int) -> list[str]:
    """One line of the page."""
    slow = name in SLOW
    points, radii = (case.few, case.radii[3:4]) if slow else (len(case.x), case.radii)
    if name == WHOLE:
        they: Callable[[], Any] = partial(whole, case)
    else:
        they = partial(_raw, case, name, points, radii)
    try:
        left = whole(case) if name == WHOLE else theirs(case, name, points, radii)
        works = {"they": they, "we": partial(ours, case, points)}
        seconds = interleaved(works, 1 if slow else repeats)
    except (ImportError, RuntimeError, ValueError, IndexError, TypeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return [case.name, name, "", "", "", case.goals.get(name, ""), f"not run: {reason[:80]}"]
    share = len(case.radii) / len(radii)
    times = [share * s for s in seconds["they"]]
    mine = ours(case, points)[3:4] if slow else ours(case, points)
    gap = 100 * (mine - left)
    note = f"{points} points, one radius, times {share:g}" if slow else ""
    weaker = f"{float(gap.max()):+.1f} to {float(gap.min()):+.1f}"
    return [
        case.name, name, shown(min(times)), shown(min(seconds["we"])),
        cell(ratios(times, seconds["we"])), case.goals.get(name, ""), f"{weaker} {note}".strip(),
    ]  # fmt: skip


def _raw(case: Case, name: str, points: int, radii: tuple[float, ...]) -> None:
    """The peer alone, without our judging."""
    for radius in radii:
        PEERS[name](case, radius)(case.x[:points], case.y[:points])


def cases(points: int) -> list[tuple[Case, tuple[str, ...]]]:
    pgd = ("torchattacks PGD", "foolbox PGD", "ART PGD")
    found = [(averaging(points), (*pgd, WHOLE))]
    if is_here("mnist"):
        found += [
            (mnist(points, box=False), ("torchattacks PGD", "apgd-t of AutoAttack", WHOLE)),
            (mnist(points, box=True), ("torchattacks PGD", "AutoAttack standard")),
        ]
    return found


def page(rows: list[list[str]], points: int, repeats: int) -> str:
    head = (
        "case",
        "against",
        "they, s",
        "we, s",
        "times faster",
        "goal",
        "ours minus theirs, points",
    )
    load = ", ".join(f"{v:.1f}" for v in os.getloadavg())
    lines = [
        "# Attacks against those of other libraries",
        "",
        f"CPU seconds of a whole l2 curve, 10 radii, {points} points, {STEPS} steps; the best of"
        f" {repeats} interleaved repeats, and the median ratio [range]. {machine()}. Load of the"
        f" machine meanwhile: {load}. `python benchmarks/attacks.py` writes this page.",
        "",
        *table(head, rows),
        "",
        "*We* is the minimum-norm attack at its defaults, with the reading of the module, the "
        "clean scores and every judgement in float64; *they* is the attack alone. The last column "
        "is our robust accuracy minus theirs, in points, at the worst and the best radius for us: "
        "below 0 we are stronger. Their successes are judged in float64 within ball and box.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=Path("docs/attacks-performance.md"))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for case, peers in cases(asked.points):
        for name in peers:
            rows.append(row(case, name, asked.repeats))
            print(" | ".join(rows[-1]), flush=True)
    asked.out.write_text(page(rows, asked.points, asked.repeats), encoding="utf-8")


if __name__ == "__main__":
    main()
