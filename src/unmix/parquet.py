"""Tables as Parquet files, through one DuckDB a process: to start one costs more than a table."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np


def write(path: Path, keys: Mapping[str, np.ndarray], values: Mapping[str, np.ndarray]) -> None:
    """Columns of one length; `values` may hold NaN."""
    # DuckDB takes a NaN from numpy for a missing value; nothing is missing, so it is put back.
    held = [_quoted(name) for name in keys]
    held += [f"coalesce({_quoted(name)}, 'nan') AS {_quoted(name)}" for name in values]
    with _database().cursor() as connection:
        connection.register("long", dict(keys) | dict(values))
        connection.execute(f"COPY (SELECT {', '.join(held)} FROM long) TO {_file(path)}")


def read(path: Path, order: Sequence[str]) -> dict[str, np.ndarray]:
    """Every column, with the rows in the order of some of them."""
    by = ", ".join(map(_quoted, order))
    query = f"SELECT * FROM read_parquet(?) ORDER BY {by}"
    with _database().cursor() as connection:
        return connection.execute(query, [glob.escape(str(path))]).fetchnumpy()


def as_bytes(columns: Mapping[str, Sequence[Any]]) -> bytes:
    """A file of plain Python values; a column of mixed kinds is text."""
    select = ", ".join(
        f"unnest(?::{_type(values)}[]) AS {_quoted(name)}" for name, values in columns.items()
    )
    with TemporaryDirectory() as folder, _database().cursor() as connection:
        path = Path(folder) / "table.parquet"
        connection.execute(f"CREATE TEMP TABLE made AS SELECT {select}", list(columns.values()))
        connection.execute(f"COPY made TO {_file(path)}")
        return path.read_bytes()


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """On one thread, so that the order of rows is the table's; each user has a cursor."""
    return duckdb.connect(config={"threads": 1})


def _file(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "' (FORMAT parquet)"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _type(values: Sequence[Any]) -> str:
    kinds = {type(v) for v in values if v is not None}
    if kinds == {bool}:
        return "BOOLEAN"
    if kinds == {int}:
        return "BIGINT"
    return "DOUBLE" if kinds <= {int, float} else "VARCHAR"
