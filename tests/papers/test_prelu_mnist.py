"""The image half of the pReLU paper: its settings, its measures beside plain ones, its figures."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import torch

from pictures import install
from unmix import catalog
from unmix.attacks.suite import AttackPlan
from unmix.data.images.loader import fetch
from unmix.experiment import Samples
from unmix.experiment import run as train
from unmix.papers.base import Evidence, Setting, Source, verdict
from unmix.papers.prelu import PAPER, settings_mnist
from unmix.papers.prelu.claims.mnist import CLAIMS, MARGIN, POWERS, TABLE
from unmix.papers.prelu.measures import mnist as measures
from unmix.reproduction import Task
from unmix.store import Store

NAMES = [f"digits-p={p}" for p in POWERS]
# Claims whose settings are not in the quick size.
ONLY_FULL = ("reading-", "fashion-", "fig-4", "papers-attack-l2-", "table-1-apgd-l2-")


@pytest.fixture
def evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Evidence:
    """The quick settings on 150 made-up images, tiny nets and few points to attack."""
    install(monkeypatch, tmp_path / "data", 180, 60)
    fetch("mnist")
    table = {}
    for name, setting in settings_mnist.settings("quick").items():
        plan = setting.attack
        assert plan is not None
        grid = plan.grid if len(plan.grid) < 4 else (*plan.grid[::5], 0.1)
        few = AttackPlan(plan.suite, tuple(sorted(set(grid))), 6, unit="input")
        made = setting.experiment.with_(
            *("data.held=60", "net.h=12", "train.epochs=6", "train.batch=30", "train.watch=60"),
            *("train.eta=0.01", "seeds=[0, 1]"),
        )
        fields = {n: getattr(made, n) for n in type(made).model_fields}
        made = type(made)(**fields | {"samples": Samples(train=120, test=60)})
        table[name] = Setting(made, few, setting.why_not)
    runs: dict[str, object] = {}

    def once(e):
        return runs.setdefault(e.digest(), train(e, device="cpu"))

    return Evidence(table, table, Source(once, lambda run, plan: plan.curve(run)))


def double(values) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_measures_are_what_they_say(evidence: Evidence) -> None:
    run = evidence.run("digits-p=3")
    clean = measures.clean(evidence, "digits-p=3").values
    torch.testing.assert_close(double(clean), run.classifier.accuracy(run.test_batch))
    found = evidence.attacked("digits-p=3")
    robust = measures.robust(evidence, "0.1", "digits-p=3").values
    torch.testing.assert_close(double(robust), found.robust_accuracy()[:, found.radii.index(0.1)])
    ranks = [evidence.run(n).trace.columns["stable_rank"][:, -1] for n in NAMES]
    steps = torch.stack([ranks[i + 1] / ranks[i] for i in range(3)])
    mine = measures.stable_rank_step(evidence, *NAMES).values
    torch.testing.assert_close(double(mine), steps.amin(0))
    ladder = [double(measures.robust(evidence, "0.1", n).values) for n in NAMES]
    least = torch.stack([b - a for a, b in pairwise(ladder)]).amin(0)
    mine = measures.smallest_step(evidence, "0.1", *NAMES).values
    torch.testing.assert_close(double(mine), least)
    gain = measures.gain(evidence, "0.1", "digits-p=1", "digits-p=4").values
    torch.testing.assert_close(double(gain), ladder[3] - ladder[0])
    more = measures.left_more(evidence, "0.1", "digits-p=1", "digits-p=1,apgd").values
    less = measures.left_less(evidence, "0.1", "digits-p=1", "digits-p=1,apgd").values
    assert [-v for v in more] == less
    under = double(measures.under_other(evidence, "0.1", "digits-p=1", "digits-p=1,apgd").values)
    # Here both attacks see the same images.
    torch.testing.assert_close(under, measures.left(evidence, "digits-p=1,apgd", 0.1))


def test_cosines_are_those_of_centred_images(evidence: Evidence) -> None:
    run = evidence.run("digits-p=1")
    x, y = run.train_batch.x[0].double(), run.train_batch.y[0]
    x = x - x.mean(0)
    x = x / x.norm(dim=1, keepdim=True)
    same, other = [], []
    for i in range(120):
        for j in range(i):
            (same if y[i] == y[j] else other).append(float(x[i] @ x[j]))
    assert measures.other_cosine(evidence, "digits-p=1").values == pytest.approx(
        [sum(other) / len(other)] * 2, abs=1e-5
    )
    share = sum(v > 0 for v in same) / len(same)
    assert measures.same_positive(evidence, "digits-p=1").values == pytest.approx([share] * 2)


def test_claims_are_judged_and_figures_drawn(evidence: Evidence) -> None:
    for claim in CLAIMS:
        found = verdict(PAPER, claim, evidence)
        only_full = claim.name.startswith(ONLY_FULL)
        assert (found.status == "not-run") == only_full, claim.name
        assert found.status != "failed"
    for name in ("3", "6", "table-1"):
        drawing = PAPER.draw(PAPER.figure(name), evidence)
        assert drawing.caption.endswith(".")
        lengths = {len(column) for column in drawing.table.values()}
        assert len(lengths) == 1
    cells = PAPER.draw(PAPER.figure("table-1"), evidence).table
    assert len(cells["mean"]) == 28
    assert cells["paper"][:4] == list(TABLE["clean"][0])


def test_without_the_images_every_setting_says_so(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("UNMIX_DATA", str(tmp_path))
    for size in ("quick", "paper"):
        found = settings_mnist.settings(size).values()
        assert all("unmix fetch" in setting.why_not for setting in found)


def test_a_figure_asks_for_its_own_images(tmp_path: Path) -> None:
    def asked(only: str | None) -> tuple[str, ...]:
        return Task.of(PAPER, only, "paper", Store(tmp_path)).datasets

    assert asked(None) == PAPER.datasets
    assert (asked("6"), asked("fashion"), asked("1")) == (("mnist",), ("fashion-mnist",), ())


def test_the_settings_are_the_papers() -> None:
    full = settings_mnist.settings("paper")
    e = full["digits-p=4"].experiment
    assert (e.net.h, e.net.p, e.net.inputs, e.train.batch, e.train.epochs) == (
        *(500, 4, "cosine", 1000, 51),
    )
    assert (e.samples.train, e.samples.test, e.dtype, len(e.seeds)) == (
        50_000,
        10_000,
        "float32",
        5,
    )
    assert {0.05, 0.1} <= set(full["parity-p=1"].attack.grid)
    assert full["digits-p=1"].experiment == full["digits-p=1,l1"].experiment
    assert catalog.load("papers", "prelu").settings("paper").keys() >= full.keys()


def test_cells_are_wide_enough_for_rounding_and_no_wider_than_three_deviations() -> None:
    cells = {c.name: c.interval for c in CLAIMS if "(sd " in c.statement}
    assert len(cells) == 28
    for row, (means, spreads) in TABLE.items():
        for p, mean, sd in zip(POWERS, means, spreads, strict=True):
            wanted = cells[f"table-1-{row.replace(' ', '-')}-p={p}"]
            assert wanted.low <= mean <= wanted.high
            assert wanted.high - wanted.low <= 2 * max(3 * sd, MARGIN) + 1e-12
