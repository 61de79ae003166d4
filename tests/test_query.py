"""SQL over a store: what it shows, and that it only reads."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from small_runs import small, verdict
from unmix.errors import StoreError
from unmix.nets.k_class import KClass
from unmix.store import Store


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs")


def test_sql_sees_runs_traces_and_verdicts(tmp_path: Path) -> None:
    store = Store(tmp_path / "it's [mine]*")
    two, k_class = (
        store.run(small(*changes))
        for changes in (["seeds=[5]"], ["net.kind=k-class", "dtype=float32", "train.eta=1"])
    )
    store.annotate(two, [verdict("a", mean=math.inf)])
    columns, rows = store.sql(
        "SELECT digest, net_kind, data_k, train_eta, samples_train, seeds, dtype, folder, net_h "
        "FROM runs ORDER BY net_kind"
    )
    assert columns[:2] == ["digest", "net_kind"]
    assert [row[1:7] for row in rows] == [
        ("k-class", 4, 1.0, 64, 2, "float32"),
        ("two-layer", 4, 0.05, 64, 1, "float64"),
    ]
    assert [row[7:] for row in rows] == [
        (str(k_class.folder), KClass().h),
        (str(two.folder), None),
    ]
    query = "SELECT digest, seed, loss FROM trace JOIN runs USING (digest) WHERE step = 30"
    losses = {(digest, seed): loss for digest, seed, loss in store.sql(query)[1]}
    assert losses == {
        (run.folder.name, seed): float(run.trace.columns["loss"][row, -1])
        for run in (two, k_class)
        for row, seed in enumerate(run.experiment.seeds)
    }
    answer = store.sql("SELECT digest, claim, status, mean, runs FROM verdicts")[1]
    assert answer == [(two.folder.name, "a", "inconclusive", math.inf, ["a", "b"])]


@pytest.mark.parametrize("table", ["runs", "trace", "verdicts"])
def test_sql_on_an_empty_store_gives_empty_tables(store: Store, table: str) -> None:
    columns, rows = store.sql(f"SELECT * FROM {table}")
    assert "digest" in columns
    assert rows == []
    with pytest.raises(StoreError) as caught:
        store.sql(f"SELECT nothing FROM {table}")
    assert "is empty" in caught.value.hint


@pytest.mark.parametrize(
    "query",
    [
        "SELEC 1",
        "SELECT nothing FROM runs",
        "DROP TABLE runs",
        "",
        "SELECT 1; SELECT 2",
        "COPY runs TO 'out.csv'",
        "EXPLAIN ANALYZE COPY runs TO 'out.csv'",
    ],
)
def test_sql_only_reads_and_its_errors_say_what_to_type(
    store: Store, query: str, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store.run(small("train.steps=1"))
    with pytest.raises(StoreError) as caught:
        store.sql(query)
    assert "runs" in caught.value.hint
    assert not Path("out.csv").exists()


@pytest.mark.parametrize("damage", ["torn", "gone"])
def test_a_damaged_trace_is_named(store: Store, damage: str) -> None:
    run = store.run(small("train.steps=1"))
    trace = run.folder / "trace.parquet"
    if damage == "torn":
        trace.write_bytes(trace.read_bytes()[:-10])
    else:
        trace.unlink()
    with pytest.raises(StoreError, match=r"is damaged: trace\.parquet") as caught:
        store.sql("SELECT count(*) FROM runs")
    assert f"rm -r '{run.folder}'" in caught.value.hint
