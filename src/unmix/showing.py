"""What `unmix run`, `reproduce` and `show` print of runs, papers and queries."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unmix import catalog, terminal
from unmix.claims import Verdict, not_run
from unmix.errors import DataError
from unmix.papers.base import Paper
from unmix.report import latex as tex
from unmix.report import page, tables
from unmix.report.tables import number

if TYPE_CHECKING:
    from unmix.experiment import Run
    from unmix.store import Store


def one_run(run: Run, store: Store, as_json: bool) -> None:
    """Stops, probes and verdicts of a run."""
    probes = measured(run)
    if as_json:
        print(json.dumps(_plain(run, probes, store), indent=1))
        return
    rows = [
        [name, number(float(v.double().mean())), number(_spread(v))] for name, v in probes.items()
    ]
    seeds = f"{run.replicas} seeds"
    terminal.table(f"{run.experiment.digest()}  {seeds}", ("probe", "mean", "sd"), rows)
    verdicts_of = store.verdicts(run)
    if verdicts_of:
        terminal.table("", ("claim", "status"), [[v.claim, v.status] for v in verdicts_of])


def hint(run: Run) -> None:
    """Where the run lies and how to look at it again."""
    terminal.say(f"stored in {run.folder}; see it again: unmix show {run.folder}")


def measured(run: Run) -> dict[str, Any]:
    """Every value of every probe that applies to the run, as probe.value."""
    if run.trace.diverged:
        return {}
    found: dict[str, Any] = {}
    for name in catalog.names("probes"):
        try:
            values = catalog.load("probes", name)(run).values
        except DataError:
            # The probe does not apply: it needs recorded coefficients or another net.
            continue
        found |= {f"{name}.{value}": column for value, column in values.items()}
    return found


def verdicts(paper: Paper, found: Sequence[Verdict], as_json: bool) -> None:
    """The verdict table, or the same as data."""
    if as_json:
        print(json.dumps(tables.records(paper, found), indent=1))
        return
    judged = {v.claim for v in found}
    rows = [r.plain() for r in tables.rows(paper, found) if r.claim in judged]
    terminal.table(paper.title, tables.COLUMNS, rows)
    counts = {s: sum(v.status == s for v in found) for s in tables.STATUSES}
    terminal.say(", ".join(f"{n} {status}" for status, n in counts.items() if n))


def paper(
    source: Paper, store: Store, *, html: bool, latex: bool, as_json: bool, out: Path
) -> None:
    """What the store knows of a paper's claims."""
    known = {v.claim: v for digest in store.digests() for v in store.verdicts(store.load(digest))}
    why = f"not in the store: unmix reproduce {source.name}"
    found = [known.get(c.name) or not_run(c, c.why_not or why) for c in source.claims]
    if latex:
        print(tex.document([tex.verdict_table(source, found)]))
    elif html:
        print(page.write(out, [page.Section(source, found, notes=source.notes)]))
    else:
        verdicts(source, found, as_json)


def query(store: Store, sql: str, as_json: bool) -> None:
    """The answer to an SQL query."""
    columns, rows = store.sql(sql)
    if as_json:
        print(json.dumps([dict(zip(columns, row, strict=True)) for row in rows], default=str))
    else:
        terminal.table("", columns, [[str(cell) for cell in row] for row in rows])


def _plain(run: Run, probes: dict[str, Any], store: Store) -> dict[str, Any]:
    stops = [{"reason": s.reason, "step": s.step, "advice": s.advice} for s in run.trace.stops]
    return {
        "digest": run.experiment.digest(),
        "folder": str(run.folder),
        "experiment": run.experiment.plain(),
        "stops": stops,
        "probes": {name: [_number(v) for v in column] for name, column in probes.items()},
        "verdicts": {v.claim: v.status for v in store.verdicts(run)},
    }


def _number(value: Any) -> float | None:
    """JSON has no NaN."""
    plain = float(value)
    return plain if abs(plain) < float("inf") else None


def _spread(column: Any) -> float:
    return float(column.double().std()) if len(column) > 1 else 0.0
