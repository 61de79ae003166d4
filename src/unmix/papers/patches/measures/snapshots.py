"""What a training had learned, and how robust it was, at the steps whose weights it kept."""

from __future__ import annotations

from collections.abc import Callable

from unmix.attacks.patch_suite import THREATS, PatchSuite
from unmix.attacks.patch_view import PatchView
from unmix.claims import Sample
from unmix.experiment import Run
from unmix.nets.patch_cnn import PatchModel
from unmix.papers.base import Evidence
from unmix.papers.patches.settings import EPS
from unmix.probes.base import Measured
from unmix.probes.patch_features import learned

# On held-out points, as the plans of attack.
POINTS = 60
# What looks at every snapshot, and the name of their union.
LOOKS = PatchSuite(attacks=(*THREATS, "ce-pgd", "fy-pgd"))
UNION = "union"


def learned_at(evidence: Evidence, setting: str, step: int) -> Measured:
    """Accuracies, feature-learning accuracies and shares after a step."""

    def take(run: Run) -> Measured:
        return Measured(learned(weights(run, step), run.fresh(POINTS)))  # type: ignore[arg-type]

    return kept(evidence, setting, f"learned.{step}", take)


def robust_at(evidence: Evidence, setting: str, step: int) -> Measured:
    """Robust accuracy after a step, under the closed forms and two gradient attacks."""

    def take(run: Run) -> Measured:
        batch = run.fresh(POINTS)
        view = PatchView(weights(run, step), batch, run.experiment.seeds)  # type: ignore[arg-type]
        found = LOOKS.on(view, (EPS,))
        accuracy = {name: found.robust_accuracy(name)[:, 0] for name in found.names}
        return Measured(accuracy | {UNION: found.robust_accuracy()[:, 0]})

    return kept(evidence, setting, f"robust.{step}", take)


def weights(run: Run, step: int) -> PatchModel:
    """The net after a step of which a snapshot was kept."""
    net = run.experiment.net
    model: PatchModel = net.classifier(run.data, {"w": run.trace.final[f"w.{step}"]})
    return model


def kept(evidence: Evidence, setting: str, name: str, take: Callable[[Run], Measured]) -> Measured:
    """Taken once for each setting."""
    run, key = evidence.run(setting), (setting, name)
    if key not in evidence.probes:
        evidence.probes[key] = take(run)
    return evidence.probes[key]


def learned_value(evidence: Evidence, what: str, setting: str) -> Sample:
    """`what` is "test@100": a value of `learned_at`, and the step."""
    name, _, step = what.partition("@")
    return evidence.sample(setting, learned_at(evidence, setting, int(step))[name])


def robust_value(evidence: Evidence, what: str, setting: str) -> Sample:
    """`what` is "ce-pgd@100": accuracy under an attack, and the step."""
    name, _, step = what.partition("@")
    return evidence.sample(setting, robust_at(evidence, setting, int(step))[name])


def risen(evidence: Evidence, what: str, setting: str) -> Sample:
    """`what` is "ce-pgd@100-1000": accuracy under an attack at the later step minus the earlier."""
    name, _, steps = what.partition("@")
    first, last = (robust_at(evidence, setting, int(s))[name] for s in steps.split("-"))
    return evidence.sample(setting, last - first)
