"""What holds of every paper: claims and drawings are complete; and an attack for its toys."""

from __future__ import annotations

import dataclasses
import inspect
import math
from importlib import import_module

import pytest

from lab import unchecked_shapes
from unmix import catalog
from unmix.attacks import line
from unmix.attacks.base import Attacked
from unmix.attacks.gradient import PGD
from unmix.attacks.minimum import MinimumNorm
from unmix.attacks.suite import AttackPlan, SuiteL2
from unmix.claims import Claim
from unmix.experiment import Run
from unmix.papers.base import Drawing, Evidence, Paper
from unmix.probes.base import Measured


def assert_complete(paper: Paper, claim: Claim) -> None:
    """It says what, where and how, or why not; its measure is a probe's value or a function."""
    assert claim.statement
    assert claim.source.paper
    assert claim.source.place
    if not claim.measure:
        assert claim.why_not
        return
    assert claim.settings
    assert not (math.isinf(claim.interval.low) and math.isinf(claim.interval.high))
    module, colon, name = claim.measure.partition(":")
    if not colon:
        assert module.partition(".")[0] in catalog.names("probes")
        assert len(claim.settings) == 1
        return
    measures = import_module(f"{paper.package}.measures.{module}")
    function = getattr(measures, name.partition(" of ")[0])
    assert next(iter(inspect.signature(function).parameters)) == "evidence"
    assert function.__doc__


def assert_drawn(drawing: Drawing) -> None:
    """Axes, words around them, and numbers in columns of one length."""
    assert drawing.canvas.axes
    assert drawing.caption.strip()
    assert drawing.alt.strip()
    lengths = {len(column) for column in drawing.table.values()}
    assert len(lengths) == 1
    assert lengths.pop() > 0


def watched(evidence: Evidence, asked: set[str], under_attack: set[str] | None = None) -> Evidence:
    """The same evidence, with nothing kept, that notes which settings are asked for."""

    class Watched(Evidence):
        def run(self, setting: str) -> Run:
            asked.add(setting)
            return evidence.run(setting)

        def probe(self, setting: str, probe: str) -> Measured:
            asked.add(setting)
            return evidence.probe(setting, probe)

        def attacked(self, setting: str) -> Attacked:
            asked.add(setting)
            if under_attack is not None:
                under_attack.add(setting)
            return evidence.attacked(setting)

    return Watched(**{f.name: getattr(evidence, f.name) for f in dataclasses.fields(Evidence)})


def coarse(run: Run, plan: AttackPlan) -> Attacked:
    """The l2 suite with few steps: two of its constants are lowered for the time."""
    suite = SuiteL2(minimum=MinimumNorm(steps=4, hops=0), pgd=PGD(steps=3, restarts=2))
    with unchecked_shapes(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(line, "GRID", 20)
        patch.setattr(line, "PROBES", 6)
        return suite.curve(run, plan.radii(run.experiment))
