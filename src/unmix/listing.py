"""What `unmix list` shows: names and one line each, without importing torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unmix import catalog
from unmix.errors import UnknownName, nearest

if TYPE_CHECKING:
    from unmix.experiment import Experiment

EXTRA = ("claims", "figures")


def listing(family: str = "") -> dict[str, dict[str, str]]:
    """Family -> name -> one line; all families that need no torch when none is asked for."""
    families = (*catalog.CATALOG, *EXTRA)
    if family in ASKED:
        return {family: ASKED[family]()}
    if family and family not in families:
        known = (*families, *ASKED, "specs")
        raise UnknownName(f"there is nothing called {family!r} to list", nearest(family, known))
    return {name: _members(name) for name in ([family] if family else families)}


def settings(paper: str) -> dict[str, Experiment]:
    """Name -> experiment of a paper, at quick size where it exists at both."""
    source = catalog.load("papers", paper)
    both = source.settings("paper") | source.settings("quick")
    return {name: setting.experiment for name, setting in both.items()}


def schemas() -> dict[str, Any]:
    """JSON Schema of an experiment, with every kind of data, net and training."""
    from unmix.experiment import Experiment
    from unmix.spec import schema

    return schema(Experiment)


def _members(family: str) -> dict[str, str]:
    if family not in EXTRA:
        return {name: catalog.find(family, name).summary for name in catalog.names(family)}
    papers = [catalog.load("papers", name) for name in catalog.names("papers")]
    if family == "claims":
        return {f"{p.name} {c.name}": c.statement for p in papers for c in p.claims}
    return {
        f"{p.name} {f.name}": f"{f.title} (not run: {f.why_not})" if f.why_not else f.title
        for p in papers
        for f in p.figures
    }


def _settings() -> dict[str, str]:
    """What a user may type for SPEC, and its main numbers."""
    return {
        f"{paper}:{name}": _told(experiment)
        for paper in catalog.names("papers")
        for name, experiment in settings(paper).items()
    }


def _engines() -> dict[str, str]:
    """What this machine was measured to need, from which train.engine=auto chooses."""
    from unmix.train.engines.costs import measured, path

    costs = measured()
    lines = {"machine": costs.machine, "kept in": str(path())}
    for dtype, table in costs.rates.items():
        for threads, rates in table.items():
            lines[f"{dtype} {threads} thread{'s' * (threads > 1)}"] = str(rates)
    return lines


# Families that need torch; listed only when asked for.
ASKED = {"settings": _settings, "engines": _engines}


def _told(e: Experiment) -> str:
    size = f"{e.data.told} n={e.samples.train}"
    return f"{e.net.kind}, {size}, {e.train.length()} steps, {len(e.seeds)} seeds"
