"""The image half of the patches paper: settings, figures, and measures beside plain ones."""

from __future__ import annotations

import pytest
import torch

from pictures import install
from unmix.attacks import one
from unmix.attacks.gradient import APGD
from unmix.attacks.suite import AttackPlan
from unmix.data.images.loader import fetch
from unmix.experiment import Experiment, Samples
from unmix.experiment import run as train
from unmix.papers.base import Evidence, Setting, Source, _on, verdict
from unmix.papers.patches import PAPER, settings_images
from unmix.papers.patches.claims.images import CLAIMS
from unmix.papers.patches.measures import images as measures

FIGURES = [f for f in PAPER.figures if any(s.startswith("mnist-") for s in f.settings)]
MEASURED = [c for c in CLAIMS if not any(s.startswith("svhn") for s in c.settings)]


def shrunken(made: Experiment) -> Experiment:
    """Two narrow blocks, two epochs, 60 images, two seeds."""
    kept = [0, 1, 2]
    made = made.with_(
        *("net.width=2", "net.blocks=[1, 1]", "train.epochs=2", f"train.snapshots={kept}"),
        *("train.batch=20", "train.watch=20", "seeds=[0, 1]"),
    )
    parts = {n: getattr(made, n) for n in Experiment.model_fields}
    return Experiment(**parts | {"samples": Samples(train=60, test=40)})


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory):
    """The reduced settings on made-up images."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("mnist", "cifar10"):
            install(patch, tmp_path_factory.getbasetemp() / "pictures", 60, 40, name)
            fetch(name)
        patch.setattr(measures, "INVERTED", 20)
        patch.setattr(measures, "STEPS", 3)
        patch.setattr(one, "PUBLISHED", APGD(loss="ce", steps=3, restarts=0))
        patch.setattr(measures, "BUDGETS", (2, 4))
        for reading, asked in measures.READINGS.items():
            patch.setitem(measures.READINGS, reading, asked.override("steps=6"))
        table = {}
        for name, setting in settings_images.settings().items():
            if setting.shrinks and not setting.why_not:
                plan = setting.attack
                few = AttackPlan(plan.suite, plan.grid, 3, unit="input")
                table[name] = Setting(shrunken(setting.experiment), few, shrinks=setting.shrinks)
        full = settings_images.settings()
        yield Evidence(table, full, Source(train, lambda run, plan: plan.curve(run)))


@pytest.mark.parametrize("claim", MEASURED, ids=[c.name for c in MEASURED])
def test_a_claim_is_measured_on_toys_and_never_refuted(evidence: Evidence, claim) -> None:
    assert evidence.scale(claim, claim.settings) == "reduced"
    found = verdict(PAPER, claim, evidence)
    assert found.status == "inconclusive", found.why
    assert found.mean is not None


@pytest.mark.parametrize("figure", FIGURES, ids=[f.name for f in FIGURES])
def test_a_figure_is_drawn(evidence: Evidence, figure) -> None:
    if why := evidence.why_not(figure.settings):
        assert "svhn" in why
        return
    drawing = PAPER.draw(figure, evidence)
    assert drawing.caption.strip()
    assert len({len(column) for column in drawing.table.values()}) == 1
    assert len(next(iter(drawing.table.values()))) > 0


def test_references_are_other_nets_and_accuracies_are_counted_plainly(evidence: Evidence) -> None:
    std, adv = evidence.run("mnist-std"), evidence.run("mnist-adv")
    found = measures.learned(evidence, "gradient", "mnist-std", "mnist-adv")
    asked, batch = measures.READINGS["gradient"], std.fresh(20)
    for r in range(2):
        start = asked.starts(batch.x[r], batch.y[r], std.experiment.seeds[r])
        for kind, run in (("non-robust", std), ("robust", adv)):
            other = run.classifier.replica(1 - r)
            image = asked(lambda x, net=other: net.features(x[None])[0], batch.x[r], start)
            for training, victim in (("std", std), ("adv", adv)):
                labels = victim.classifier.replica(r).predict(image.x[None])[0]
                share = (labels == batch.y[r]).double().mean()
                assert found[training][kind][r] == pytest.approx(float(share))


def test_orderings_are_differences_of_the_same_four_cells(evidence: Evidence) -> None:
    both = ("mnist-std", "mnist-adv")
    found = measures.learned(evidence, "adam", *both)
    sample = {c: measures.ordering(evidence, f"adam:{c}", *both).values for c in
              ("std", "adv", "non-robust", "robust")}  # fmt: skip
    std, adv = found["std"], found["adv"]
    wanted = {
        "std": std["non-robust"] - std["robust"],
        "adv": adv["robust"] - adv["non-robust"],
        "non-robust": std["non-robust"] - adv["non-robust"],
        "robust": adv["robust"] - std["robust"],
    }
    for cells, values in sample.items():
        torch.testing.assert_close(torch.tensor(values).double(), wanted[cells])
    last = measures.learned(evidence, "adam", *both, epoch=2)
    assert all(torch.equal(last[t][k], found[t][k]) for t in found for k in found[t])


def test_success_of_an_attack_is_counted_plainly(evidence: Evidence) -> None:
    found = measures.fooled(evidence, "mnist-std", "mnist-adv")
    run = evidence.run("mnist-adv")
    for r in range(2):
        x, y = run.test_batch.x[r], run.test_batch.y[r]
        said = run.classifier.replica(r).predict(x[y == 4][None])[0]
        assert found["4-9:clean:adv"][r] == pytest.approx(float((said == 9).double().mean()))
    gap = measures.targeted(evidence, "every:adv", "mnist-std", "mnist-adv").values
    gaps = [found[f"{p}:RF:adv"] - found[f"{p}:NRF:adv"] for p in ("4-9", "9-4", "3-5", "5-3")]
    torch.testing.assert_close(torch.tensor(gap).double(), torch.stack(gaps).amin(0))


def test_the_papers_own_settings_are_the_texts() -> None:
    table = settings_images.settings()
    digits, photos = (table[f"{n}-adv-full"].experiment for n in ("mnist", "cifar10"))
    assert (digits.net.width, digits.net.blocks, digits.train.epochs) == (64, (2, 2, 2, 2), 30)
    assert (photos.net.depth, photos.net.widen, photos.train.epochs) == (34, 10, 200)
    assert (digits.train.attack.eps, photos.train.attack.eps) == (0.3, 8 / 255)
    for made in (digits, photos):
        assert made.samples == Samples(train=made.data.source.train, test=made.data.source.test)
    for name, setting in table.items():
        assert len(setting.experiment.seeds) == 5
        assert (name in {s.shrinks for s in table.values()}) != bool(setting.shrinks)
        if name.endswith("-adv"):
            std = table[name.replace("adv", "std")].experiment.train
            mine = setting.experiment.train
            assert all(getattr(mine, f) == getattr(std, f) for f in type(std).model_fields
                       if f != "kind")  # fmt: skip


def test_a_lone_run_of_reduced_size_is_not_the_papers(evidence: Evidence) -> None:
    run = evidence.run("mnist-std")
    claim = PAPER.claim("table-1-robust-accuracy-std-mnist")
    mine = Evidence({"mnist-std": _on(run, evidence.settings["mnist-std"])}, evidence.full, None)
    assert mine.scale(claim, claim.settings) == "reduced"
    assert mine.settings["mnist-std"].attack == evidence.settings["mnist-std"].attack


def test_claims_wait_for_images_and_for_paper_size() -> None:
    """No images lie where the tests look for them."""
    found = Evidence(PAPER.settings("paper"), PAPER.settings("paper"), None)
    assert "unmix fetch svhn" in found.why_not(("svhn-std",))
    quick = Evidence(PAPER.settings("quick"), PAPER.settings("paper"), None)
    for claim in CLAIMS:
        assert verdict(PAPER, claim, quick).why.startswith("only at paper size: ")
