"""Runs on disk: exact, and never trusted when they should not be."""

from __future__ import annotations

import json
import math
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from small_runs import STEPS, assert_same, leftovers, small, verdict
from unmix import records, spec
from unmix import store as store_module
from unmix.attacks.gradient import PGD
from unmix.attacks.suite import AttackPlan, SuiteL2
from unmix.certify.bounds import Lipschitz
from unmix.certify.choice import CertifyPlan
from unmix.errors import StoreError
from unmix.experiment import run as train
from unmix.store import Store

SAME = ("experiment.json", "trace.parquet", "stops.json", "params.safetensors")
SUITE = SuiteL2(pgd=PGD(steps=3, restarts=2))
RADII = (4.0, 1.0, 2.5)


def plan(radii=RADII, points: int | None = None) -> AttackPlan:
    return AttackPlan(SUITE, tuple(radii), points, unit="input")


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("net", ["two-layer", "k-class"])
def test_a_run_comes_back_bit_for_bit(store: Store, dtype: str, net: str) -> None:
    experiment = small(f"dtype={dtype}", f"net.kind={net}")
    stored = store.run(experiment)
    assert stored.folder == store.folder(experiment)
    assert stored.params["w"].dtype == experiment.torch_dtype
    assert list(stored.trace.final) == ["label-free", "paper"]
    assert_same(stored, train(experiment))
    assert_same(store.load(experiment.digest()), stored)
    assert leftovers(store.root) == []


def test_numbers_that_are_not_finite_come_back(tmp_path: Path) -> None:
    odd = torch.tensor([math.nan, math.inf, -math.inf, -0.0, 5e-324, 1 / 3], dtype=torch.float64)
    for dtype in ("float32", "float64"):
        run = train(small(f"dtype={dtype}"))
        columns = {name: c.clone() for name, c in run.trace.columns.items()}
        columns["loss"][1, : len(odd)] = odd.to(columns["loss"])
        run = replace(run, trace=replace(run.trace, columns=columns))
        folder = tmp_path / run.experiment.digest()
        folder.mkdir()
        records.write(folder, run, records.environment("cpu", 1, 0.0))
        assert_same(records.read(folder), run)


def test_the_same_experiment_gives_the_same_bytes(tmp_path: Path) -> None:
    one, other = (Store(tmp_path / name).run(small()).folder for name in ("one", "other"))
    for name in SAME:
        assert (one / name).read_bytes() == (other / name).read_bytes()
    assert (one / "params.safetensors").stat().st_size > 2 * 4 * 32 * 8


def test_a_finished_run_is_not_trained_again(store: Store, monkeypatch) -> None:
    run = store.run(small())
    monkeypatch.setattr(store_module, "train", None)
    assert_same(store.run(small()), run)


def test_a_diverging_run_stores_its_stops(store: Store) -> None:
    run = store.run(small("train.eta=1e38", "train.engine=reference", "dtype=float32"))
    stop = store.load(run.folder).trace.stops[0]
    assert (stop.reason, run.trace.diverged) == ("diverged", (0, 1))
    assert "train.eta" in stop.advice
    assert 0 < stop.step < STEPS


@pytest.mark.parametrize("change", ["seeds=[3]", "train.eta=0.051", "samples.test=9", "net.m=3"])
def test_a_changed_spec_never_meets_an_old_run(store: Store, change: str) -> None:
    store.run(small())
    assert store.find(small(change)) is None
    assert_same(store.run(small(change)), train(small(change)))
    assert len(store.digests()) == 2


def test_a_new_format_never_meets_an_old_run(store: Store, monkeypatch) -> None:
    old = store.run(small())
    monkeypatch.setattr(spec, "FORMAT", spec.FORMAT + 1)
    assert store.find(small()) is None
    with pytest.raises(StoreError, match="foreign"):
        store.load(old.folder)


def test_a_run_of_another_version_is_replaced(store: Store, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(records, "MAKER", records.MAKER | {"unmix": "0.0.1"})
        store.annotate(store.run(small()), [verdict("old")])
    with pytest.raises(records.Outdated, match=r"0\.0\.1") as caught:
        store.load(small().digest())
    assert "run its experiment again" in caught.value.hint
    assert_same(store.run(small()), train(small()))
    assert store.verdicts(store.load(small().digest())) == []
    assert leftovers(store.root) == []


@pytest.mark.parametrize("name", [*records.FROZEN, "DONE"])
@pytest.mark.parametrize("damage", ["flip", "truncate", "delete"])
def test_a_damaged_run_is_an_error_that_says_what_to_do(
    store: Store, name: str, damage: str
) -> None:
    path = store.run(small()).folder / name
    content = path.read_bytes()
    middle = len(content) // 2
    if damage == "delete":
        path.unlink()
    elif damage == "truncate":
        path.write_bytes(content[:middle])
    else:
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    for meet in (lambda: store.run(small()), lambda: store.load(path.parent)):
        with pytest.raises(StoreError) as caught:
            meet()
        assert f"rm -r '{path.parent}'" in caught.value.hint
    assert path.exists() == (damage != "delete")


def test_a_foreign_folder_is_refused(store: Store, tmp_path: Path) -> None:
    mine, other = store.run(small()).folder, store.folder(small("net.m=3"))
    shutil.copytree(mine, other)
    for meet in (lambda: store.load(other), lambda: store.run(small("net.m=3"))):
        with pytest.raises(StoreError, match="foreign"):
            meet()
    (tmp_path / "home").mkdir()
    with pytest.raises(StoreError, match="not a finished run") as caught:
        store.load(tmp_path / "home")
    assert "rm" not in caught.value.hint


def test_a_run_is_loaded_by_the_start_of_its_digest(store: Store) -> None:
    with pytest.raises(StoreError, match="no run 'abc'") as caught:
        store.load("abc")
    assert "is empty" in caught.value.hint
    digests = [store.run(small(f"seeds=[{seed}]", "train.steps=1")).folder.name for seed in (1, 2)]
    assert store.load(digests[0][:9]).folder.name == digests[0]
    shutil.copytree(store.root / digests[0], store.root / (digests[0][:15] + "x"))
    assert store.load(digests[0][:15]).folder.name == digests[0]
    shutil.copytree(store.root / digests[0], store.root / (digests[0][:9] + "0000000"))
    with pytest.raises(StoreError, match="several runs"):
        store.load(digests[0][:9])
    with pytest.raises(StoreError, match="no run 'xyz'") as caught:
        store.load("xyz")
    assert digests[1] in caught.value.hint


@pytest.mark.parametrize("obstacle", ["file", "permission"])
def test_an_unwritable_root_is_met_before_training(tmp_path: Path, monkeypatch, obstacle) -> None:
    monkeypatch.setattr(store_module, "train", None)
    root = tmp_path / "runs"
    if obstacle == "file":
        root.write_text("not a folder")
    else:
        monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(StoreError, match="cannot write") as caught:
        Store(root).run(small())
    assert "another store" in caught.value.hint


def test_a_full_disk_is_an_error_and_leaves_nothing_behind(store: Store, monkeypatch) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(records, "put", full)
    with pytest.raises(StoreError, match="No space left"):
        store.run(small())
    assert leftovers(store.root) == []


def test_verdicts_are_merged_by_claim(store: Store) -> None:
    run = store.run(small())
    assert store.verdicts(run) == []
    store.annotate(run, [verdict("a", mean=1 / 3, low=-math.inf, high=math.inf), verdict("b")])
    store.annotate(run, [verdict("c", replicas=5), verdict("b", status="refuted", mean=math.nan)])
    first, second, third = store.verdicts(store.load(run.folder))
    assert first == verdict("a", mean=1 / 3, low=-math.inf, high=math.inf)
    assert (second.claim, second.status, third) == ("b", "refuted", verdict("c", replicas=5))
    assert math.isnan(second.mean)
    json.loads((run.folder / "verdicts.json").read_text(), parse_constant=pytest.fail)


@pytest.mark.parametrize("content", ["{", '[{"claim": 1}]', '{"a": 1}', "3"])
def test_damaged_verdicts_are_an_error_that_says_what_to_do(store: Store, content: str) -> None:
    run = store.run(small())
    (run.folder / "verdicts.json").write_text(content)
    with pytest.raises(StoreError) as caught:
        store.verdicts(run)
    assert "verdicts.json" in caught.value.hint


def test_an_attack_is_kept_beside_its_run(store: Store, monkeypatch) -> None:
    run = store.run(small())
    fresh = store.attacked(run, plan())
    monkeypatch.setattr(SuiteL2, "curve", None)
    kept = Store(store.root).attacked(store.load(run.folder), plan(sorted(RADII), points=8))
    assert (kept.radii, kept.names) == (fresh.radii, fresh.names) == ((1.0, 2.5, 4.0), fresh.names)
    assert (kept.unit, kept.unverified) == (fresh.unit, fresh.unverified)
    assert (kept.threat, kept.flags) == (fresh.threat, fresh.flags)
    for mine, theirs in ((kept.by_attack, fresh.by_attack), (kept.control, fresh.control)):
        assert list(mine) == list(theirs)
        assert all(torch.equal(mine[name], theirs[name]) for name in mine)
    assert len(kept.names) == 6
    assert len(kept.control) == 2
    assert torch.equal(kept.winner, fresh.winner)


def test_a_certificate_is_kept_beside_its_run(store: Store, monkeypatch) -> None:
    run = store.run(small())
    wanted = CertifyPlan(points=3)
    fresh = store.certified(run, wanted)
    other = store.certified(run, CertifyPlan(Lipschitz(), points=3))
    monkeypatch.setattr(CertifyPlan, "certify", None)
    kept = Store(store.root).certified(store.load(run.folder), wanted)
    for name in ("lower", "upper", "status", "witness"):
        assert torch.equal(getattr(kept, name), getattr(fresh, name))
    assert (kept.method, kept.norm, kept.unit) == ("exact-l2", "l2", run.data.unit)
    assert other.method == "lipschitz"
    path = next(run.folder.glob("certified-*"))
    path.write_bytes(b"damaged")
    with pytest.raises(StoreError, match="cannot read"):
        records.read_certificate(path)


def test_an_attack_under_other_conditions_is_another_one(store: Store) -> None:
    run = store.run(small())
    few = store.attacked(run, plan(points=3))
    assert few.smallest.shape == (2, 3)
    stronger = AttackPlan(SUITE.override("pgd.steps=4"), RADII, 3, "input")
    assert store.find_attacked(run, plan()) is None
    assert store.find_attacked(run, plan((1.0, 2.0), points=3)) is None
    assert store.find_attacked(run, stronger) is None
    with pytest.raises(StoreError, match="memory only"):
        store.attacked(train(small()), plan())


@pytest.mark.parametrize("damage", ["flip", "truncate"])
def test_a_damaged_attack_is_done_again(store: Store, damage: str) -> None:
    run = store.run(small())
    fresh = store.attacked(run, plan())
    (path,) = run.folder.glob("attacked-*")
    whole = path.read_bytes()
    path.write_bytes(
        whole[:-20] if damage == "truncate" else whole[:-3] + bytes([whole[-3] ^ 64]) + whole[-2:]
    )
    assert store.find_attacked(run, plan()) is None
    assert torch.equal(store.attacked(run, plan()).smallest, fresh.smallest)
    assert path.read_bytes() == whole
    assert store.load(run.folder).replicas == 2
