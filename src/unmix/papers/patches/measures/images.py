"""Section 6.2 and appendix A: what nets on images learn, and which features fool them.

A net's G must come from another net than those that are measured. Here the reference of a seed is
the net of the next seed, the last one's that of the first: every measured net has a reference of
its own, and the choice of the reference is within the spread over seeds. X are held-out images.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from unmix.attacks.inversion import Inversion, Inverted
from unmix.attacks.representation import RepresentationPGD
from unmix.attacks.threat import Threat
from unmix.claims import Sample
from unmix.experiment import Run
from unmix.nets.deep import DeepClassifier, encoder
from unmix.papers.base import Evidence
from unmix.papers.patches.measures.snapshots import kept
from unmix.papers.patches.settings_images import BOX, RADIUS
from unmix.probes.base import Measured
from unmix.streams import stream
from unmix.train.deep_epochs import at_epoch

# Images of a seed that are inverted, and numbers of steps after which they are looked at.
INVERTED = 50
BUDGETS = (20, 50, 100, 200)
# Readings of the search. Ilyas et al. take 1000 steps; the text says none of this.
READINGS = {
    "gradient": Inversion(method="gradient", steps=200, size=0.1),
    "adam": Inversion(method="adam", steps=100, size=0.02),
}
# Images of a source class, and steps of the attack that matches a representation.
ATTACKED, STEPS = 50, 50
PAIRS = {
    "cifar10": (("cat", "dog"), ("dog", "cat"), ("automobile", "airplane"),
                ("airplane", "automobile")),
    "mnist": (("4", "9"), ("9", "4"), ("3", "5"), ("5", "3")),
}  # fmt: skip


def clean_gap(evidence: Evidence, std: str, adv: str) -> Sample:
    """Test accuracy of standard minus that of adversarial training."""
    return evidence.sample(std, _clean(evidence.run(std)) - _clean(evidence.run(adv)))


def robust(evidence: Evidence, setting: str) -> Sample:
    """Robust accuracy at the paper's radius, under the setting's attacks."""
    return evidence.sample(setting, evidence.attacked(setting).robust_accuracy()[:, 0])


def robust_gain(evidence: Evidence, std: str, adv: str) -> Sample:
    """Robust accuracy of adversarial minus that of standard training."""
    both = [evidence.attacked(name).robust_accuracy()[:, 0] for name in (std, adv)]
    return evidence.sample(adv, both[1] - both[0])


def ordering(evidence: Evidence, what: str, std: str, adv: str) -> Sample:
    """`what` is "adam:robust": a reading, and which two cells of Table 1 are compared.

    std, adv: what the text says this training learns minus the other kind of features;
    non-robust: FL_NR of standard minus adversarial training; robust: FL_R the other way round.
    """
    reading, _, cells = what.partition(":")
    gap = _gap(cells, learned(evidence, reading, std, adv))
    return evidence.sample(std, gap, _note(evidence, reading, std, adv))


def during(evidence: Evidence, what: str, std: str, adv: str) -> Sample:
    """The same, as a mean over the kept epochs after the start."""
    reading, _, cells = what.partition(":")
    epochs = [e for e in evidence.run(std).experiment.train.snapshots if e > 0]
    found = [_gap(cells, learned(evidence, reading, std, adv, epoch)) for epoch in epochs]
    return evidence.sample(std, torch.stack(found).mean(0))


def risen(evidence: Evidence, what: str, std: str, adv: str) -> Sample:
    """FL_R of adversarial training at the end minus after its first epoch."""
    epochs = evidence.run(adv).experiment.train.snapshots
    first, last = (
        learned(evidence, what, std, adv, e)["adv"]["robust"] for e in (epochs[1], epochs[-1])
    )
    return evidence.sample(adv, last - first)


def lost(evidence: Evidence, what: str, std: str, adv: str) -> Sample:
    """How far D_NR and D_R stay from the images that they stand for, over where they started."""
    found = [inverted(evidence, what, name, READINGS[what].steps) for name in (std, adv)]
    return evidence.sample(std, torch.stack([f["lost"] for f in found]).mean(0))


def targeted(evidence: Evidence, what: str, std: str, adv: str) -> Sample:
    """`what` is "cat-dog:std": success of what the text says fools this victim more often, minus
    the other; "every" in place of a pair is the least over all pairs."""
    pair, _, victim = what.partition(":")
    found = fooled(evidence, std, adv)
    names = _pairs(evidence, std) if pair == "every" else [pair]
    by, other = ("NRF", "RF") if victim == "std" else ("RF", "NRF")
    gaps = [found[f"{n}:{by}:{victim}"] - found[f"{n}:{other}:{victim}"] for n in names]
    return evidence.sample(std, torch.stack(gaps).amin(0))


def lift(evidence: Evidence, what: str, std: str, adv: str) -> Sample:
    """What an attack ("NRF") adds to the share of standard victims that say the target anyway;
    the least over all pairs."""
    found = fooled(evidence, std, adv)
    gaps = [found[f"{n}:{what}:std"] - found[f"{n}:clean:std"] for n in _pairs(evidence, std)]
    return evidence.sample(std, torch.stack(gaps).amin(0))


def learned(
    evidence: Evidence,
    reading: str,
    std: str,
    adv: str,
    epoch: int | None = None,
    steps: int | None = None,
) -> dict[str, dict[str, Float[Tensor, " R"]]]:
    """FL_NR ("non-robust"), FL_R ("robust") and clean accuracy of both trainings' nets.

    At the end or after an epoch, on representatives of the reading's or fewer steps.
    """
    steps, found = steps or READINGS[reading].steps, {}
    for training, setting in (("std", std), ("adv", adv)):
        run = evidence.run(setting)
        params = run.params if epoch is None else at_epoch(run.trace.final, epoch)
        net, batch = run.experiment.net.classifier(run.data, params), run.fresh(INVERTED)
        row = {"clean": net.accuracy(batch)}
        for kind, source in (("non-robust", std), ("robust", adv)):
            labels = net.predict(inverted(evidence, reading, source, steps)["x"])
            row[kind] = (labels == batch.y).double().mean(1)
        found[training] = row
    return found


def inverted(evidence: Evidence, reading: str, setting: str, steps: int) -> Measured:
    """Representatives of each seed's held-out images, from the next seed's net."""

    def take(run: Run) -> Measured:
        every = [_inverted(run, r, READINGS[reading]) for r in range(run.replicas)]
        found, arrays = {}, {}
        for budget in every[0][1]:
            rows = [paths[budget] for _, paths in every]
            starts = [start for start, _ in every]
            clean = [run.fresh(INVERTED).x[r].flatten(1) for r in range(run.replicas)]
            found[f"left.{budget}"] = torch.stack([(i.left / i.began).mean() for i in rows])
            found[f"lost.{budget}"] = torch.stack(
                [
                    ((i.x.flatten(1) - x).norm(dim=1) / (s.flatten(1) - x).norm(dim=1)).mean()
                    for i, x, s in zip(rows, clean, starts, strict=True)
                ]
            )
            arrays[f"x.{budget}"] = torch.stack([i.x for i in rows])
        return Measured(found, arrays)

    every = kept(evidence, setting, f"inverted.{reading}", take)
    values = {"left": every[f"left.{steps}"], "lost": every[f"lost.{steps}"]}
    return Measured(values, {"x": every[f"x.{steps}"]})


def fooled(evidence: Evidence, std: str, adv: str) -> Measured:
    """Share of source images that a victim calls the target: "cat-dog:NRF:std", and so on."""

    def take(run: Run) -> Measured:
        other = evidence.run(adv)
        rows = [_fooled(run, other, r) for r in range(run.replicas)]
        return Measured({n: torch.stack([row[n] for row in rows]) for n in rows[0]})

    return kept(evidence, std, "fooled", take)


def starts_of(run: Run, replica: int, asked: Inversion) -> Tensor:
    """Where the search for a seed's representatives begins."""
    batch, seed = run.fresh(INVERTED), run.experiment.seeds[replica]
    return asked.starts(batch.x[replica], batch.y[replica], seed)


def budgets(reading: str) -> tuple[int, ...]:
    """Numbers of steps at which a search is looked at."""
    last = READINGS[reading].steps
    return tuple(sorted({b for b in BUDGETS if b < last} | {last}))


def _inverted(run: Run, r: int, asked: Inversion) -> tuple[Tensor, dict[int, Inverted]]:
    start, x = starts_of(run, r, asked), run.fresh(INVERTED).x[r]
    (name,) = (n for n, known in READINGS.items() if known == asked)
    return start, asked.path(_reference(run, r), x, start, budgets(name))


def _reference(run: Run, replica: int) -> Callable[[Tensor], Tensor]:
    """G of the net that stands in for a seed's features: the next seed's."""
    return encoder(_net(run), (replica + 1) % run.replicas)


def _net(run: Run) -> DeepClassifier:
    found: DeepClassifier = run.classifier  # type: ignore[assignment]
    return found


def _clean(run: Run) -> Float[Tensor, " R"]:
    return run.classifier.accuracy(run.test_batch)


def _gap(cells: str, mine: dict[str, dict[str, Tensor]]) -> Float[Tensor, " R"]:
    if cells == "std":
        return mine["std"]["non-robust"] - mine["std"]["robust"]
    if cells == "adv":
        return mine["adv"]["robust"] - mine["adv"]["non-robust"]
    sign = 1 if cells == "non-robust" else -1
    return sign * (mine["std"][cells] - mine["adv"][cells])


def _note(evidence: Evidence, reading: str, std: str, adv: str) -> str:
    """How well representations were matched: gaps of unmatched ones mean nothing."""
    steps = READINGS[reading].steps
    left = [float(inverted(evidence, reading, s, steps)["left"].mean()) for s in (std, adv)]
    return f"distance left of the start's: D_NR {left[0]:.2f}, D_R {left[1]:.2f}"


def _pairs(evidence: Evidence, setting: str) -> list[str]:
    return ["-".join(pair) for pair in PAIRS[evidence.run(setting).data.dataset]]


def _fooled(std: Run, adv: Run, r: int) -> dict[str, Tensor]:
    """One seed's row of Table 2; x' is a random image of the target class."""
    batch, classes = std.test_batch, std.data.source.classes
    x, y = batch.x[r], batch.y[r]
    victims = {"std": _net(std).replica(r), "adv": _net(adv).replica(r)}
    rows: dict[str, Tensor] = {}
    radius = RADIUS[std.data.dataset]
    attack = RepresentationPGD(Threat(norm="linf", box=BOX), radius, STEPS)
    for pair in PAIRS[std.data.dataset]:
        source, target = (classes.index(name) for name in pair)
        points = x[y == source][:ATTACKED]
        pool = (y == target).nonzero().flatten()
        drawn = stream(std.experiment.seeds[r], f"targets.{'-'.join(pair)}")
        wanted = x[pool[torch.from_numpy(drawn.integers(0, len(pool), len(points)))]]
        moved = {"clean": points}
        moved |= {
            by: attack(_reference(run, r), points, wanted)
            for by, run in (("NRF", std), ("RF", adv))
        }
        for by, images in moved.items():
            for name, victim in victims.items():
                share = (victim.predict(images.unsqueeze(0))[0] == target).double().mean()
                rows[f"{'-'.join(pair)}:{by}:{name}"] = share
    return rows
