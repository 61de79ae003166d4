"""DuckDB as a view over run folders: one SELECT, nothing is written."""

from __future__ import annotations

import glob
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import duckdb

from unmix.errors import StoreError
from unmix.records import KEYS, TIME, read_json, read_verdicts
from unmix.train.descent import COLUMNS

TEXT, WHOLE, REAL = "VARCHAR", "BIGINT", "DOUBLE"
RUNS = {
    "digest": TEXT,
    "data_kind": TEXT,
    "net_kind": TEXT,
    "train_kind": TEXT,
    "seeds": WHOLE,
    "dtype": TEXT,
    "unmix": TEXT,
    "seconds": REAL,
    "folder": TEXT,
}
VERDICTS = {
    "digest": TEXT,
    "claim": TEXT,
    "status": TEXT,
    "why": TEXT,
    "scale": TEXT,
    "mean": REAL,
    "low": REAL,
    "high": REAL,
    "replicas": WHOLE,
    "runs": f"{TEXT}[]",
}


def select(query: str, folders: Sequence[Path]) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Column names and rows of a query over the tables `runs`, `trace` and `verdicts`."""
    statements = duckdb.extract_statements(query)
    if [s.type for s in statements] != [duckdb.StatementType.SELECT]:
        came = f"expected one SELECT, got {query.strip()!r}"
        raise StoreError(came, "for example: SELECT digest, net_kind FROM runs")
    with duckdb.connect() as connection:
        _fill(connection, "runs", RUNS, [_facts(folder) for folder in folders])
        rows = [{"digest": f.name} | asdict(v) for f in folders for v in read_verdicts(f)]
        _fill(connection, "verdicts", VERDICTS, rows)
        _view_traces(connection, folders)
        answer = connection.execute(query)
        return [column[0] for column in answer.description], answer.fetchall()


def _facts(folder: Path) -> dict[str, Any]:
    """A run as a row: the experiment's field `a.b` is the column `a_b`; seeds are counted."""
    plain, env = read_json(folder / "experiment.json"), read_json(folder / "env.json")
    facts: dict[str, Any] = {"digest": folder.name, "folder": str(folder)}
    try:
        facts |= {"seeds": len(plain["seeds"]), "unmix": env["unmix"], "seconds": env["seconds"]}
    except (KeyError, TypeError):
        hint = f"delete it and run again: rm -r '{folder}'"
        raise StoreError(f"{folder} is damaged: its JSON files lack fields", hint) from None
    return dict(_flat(plain)) | facts


def _flat(plain: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in plain.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}_")
        else:
            yield prefix + name, json.dumps(value) if isinstance(value, list) else value


def _fill(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    columns: Mapping[str, str],
    rows: Sequence[Mapping[str, Any]],
) -> None:
    """A table with the given columns and all others that the rows have."""
    found = dict.fromkeys(key for row in rows for key in row)
    types = {**{key: _type([row.get(key) for row in rows]) for key in found}, **columns}
    listed = ", ".join(f'"{key}" {kind}' for key, kind in types.items())
    connection.execute(f"CREATE TABLE {name} ({listed})")
    if rows:
        marks = ", ".join("?" * len(types))
        values = [[row.get(key) for key in types] for row in rows]
        connection.executemany(f"INSERT INTO {name} VALUES ({marks})", values)


def _type(values: Sequence[Any]) -> str:
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int}:
        return WHOLE
    return REAL if kinds <= {int, float} else TEXT


def _view_traces(connection: duckdb.DuckDBPyConnection, folders: Sequence[Path]) -> None:
    if not folders:
        reals = dict.fromkeys((TIME, *COLUMNS), REAL)
        columns = {"digest": TEXT} | dict.fromkeys(KEYS, WHOLE) | reals
        return _fill(connection, "trace", columns, [])
    for folder in folders:
        _check_trace(folder)
    paths = [glob.escape(str(folder / "trace.parquet")).replace("'", "''") for folder in folders]
    files = ", ".join(f"'{path}'" for path in paths)
    connection.execute(
        "CREATE VIEW trace AS SELECT parse_path(filename)[-2] AS digest, * EXCLUDE (filename) "
        f"FROM read_parquet([{files}], union_by_name = true, filename = true)"
    )
    return None


def _check_trace(folder: Path) -> None:
    """Name a broken trace here: DuckDB would blame the query."""
    try:
        whole = (folder / "trace.parquet").read_bytes()[-4:] == b"PAR1"
    except OSError:
        whole = False
    if not whole:
        hint = f"delete it and run again: rm -r '{folder}'"
        raise StoreError(f"{folder} is damaged: trace.parquet is not as it was written", hint)
