"""Values of probes and measures at one setting, and their exponents in d over a ladder.

"probe.value" reads a probe of the weights that the setting attacks; "module:function" is a measure
of one setting.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import numpy as np

from unmix import catalog
from unmix.attacks.coded import cleanly_trained
from unmix.claims import Sample
from unmix.papers.base import Evidence
from unmix.papers.purification.measures.robust import attacks_before, gain
from unmix.probes.base import Measured

Table = np.ndarray


def read(evidence: Evidence, what: str, setting: str) -> Sample:
    """One value of one probe."""
    name, _, value = what.partition(".")
    return evidence.sample(setting, probed(evidence, setting, name)[value])


def exponent(evidence: Evidence, what: str, *ladder: str) -> Sample:
    """Least-squares slope of log value against log d, one fit a replica."""
    table, failed, note = _table(evidence, what, ladder)
    return _fitted(evidence, ladder, table, failed, note)


def least(evidence: Evidence, what: str, *ladder: str) -> Sample:
    """The smallest value on the ladder, for each replica."""
    table, failed, note = _table(evidence, what, ladder)
    return Sample(table.min(0).tolist(), failed, note)


def most(evidence: Evidence, what: str, *ladder: str) -> Sample:
    """The largest value on the ladder, for each replica."""
    table, failed, note = _table(evidence, what, ladder)
    return Sample(table.max(0).tolist(), failed, note)


def ratio(evidence: Evidence, what: str, setting: str, other: str) -> Sample:
    """The value at one setting over that at another, seed by seed."""
    table, failed, note = _table(evidence, what, (setting, other))
    return Sample((table[0] / table[1]).tolist(), failed, f"{note} at {setting}, {other}")


def gain_exponent(evidence: Evidence, *ladders: str) -> Sample:
    """Exponent in d of the median radius after adversarial training over that before."""
    half = len(ladders) // 2
    pairs = list(zip(ladders[:half], ladders[half:], strict=True))
    table = np.array([gain(evidence, *pair).values for pair in pairs])
    return _fitted(evidence, ladders[:half], table, (), _means(table))


def probed(evidence: Evidence, setting: str, name: str) -> Measured:
    """A probe of the weights that a setting attacks, applied once."""
    if not attacks_before(evidence, setting):
        return evidence.probe(setting, name)
    key = (setting, name)
    if key not in evidence.probes:
        evidence.probes[key] = catalog.load("probes", name)(cleanly_trained(evidence.run(setting)))
    return evidence.probes[key]


def _fitted(
    evidence: Evidence, ladder: Sequence[str], table: Table, failed: tuple[str, ...], note: str
) -> Sample:
    sizes = [evidence.run(s).data.d for s in ladder]
    if not (np.isfinite(table) & (table > 0)).all():
        return Sample([], (*failed, "a value on the ladder is not positive and finite"))
    slopes = np.polyfit(np.log(sizes), np.log(table), 1)[0]
    where = f"{note} at d = {', '.join(map(str, sizes))}"
    return Sample([float(v) for v in slopes], failed, where)


def _table(
    evidence: Evidence, what: str, ladder: Sequence[str]
) -> tuple[Table, tuple[str, ...], str]:
    """Values [rungs R], premises that failed, and the means in words."""
    samples = [_value(evidence, what, s) for s in ladder]
    failed = tuple(f for s in samples for f in s.failed_premises)
    table = np.array([list(s.values) for s in samples])
    return table, failed, _means(table)


def _means(table: Table) -> str:
    return ", ".join(f"{v:.3g}" for v in table.mean(1))


def _value(evidence: Evidence, what: str, setting: str) -> Sample:
    module, colon, name = what.partition(":")
    if not colon:
        return read(evidence, what, setting)
    found = import_module(f"unmix.papers.purification.measures.{module}")
    sample: Sample = getattr(found, name)(evidence, setting)
    return sample
