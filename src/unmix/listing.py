"""What `unmix list` shows: names and one line each, without importing torch."""

from __future__ import annotations

from typing import Any

from unmix import catalog
from unmix.errors import UnknownName, nearest

EXTRA = ("claims", "figures")


def listing(family: str = "") -> dict[str, dict[str, str]]:
    """Family -> name -> one line; all families when none is asked for."""
    families = (*catalog.CATALOG, *EXTRA)
    if family and family not in families:
        raise UnknownName(
            f"there is nothing called {family!r} to list", nearest(family, (*families, "specs"))
        )
    return {name: _members(name) for name in ([family] if family else families)}


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
