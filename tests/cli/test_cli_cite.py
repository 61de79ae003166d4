"""`unmix cite`: BibTeX of what a run used, or of a paper."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from unmix import catalog
from unmix.citing import DATASETS
from unmix.papers.averaging import PAPER


def keys(text: str) -> list[str]:
    return re.findall(r"^@\w+\{([^,]+),$", text, re.MULTILINE)


@pytest.mark.parametrize("name", catalog.names("papers"))
def test_a_paper_is_cited_with_its_software_and_images(unmix, name: str) -> None:
    answer = unmix("cite", name)
    assert (answer.code, answer.err) == (0, "")
    paper = catalog.load("papers", name)
    assert paper.bibtex in answer.out
    assert len(keys(answer.out)) == 3 + len(paper.datasets)
    assert answer.out.count("{") == answer.out.count("}")


def test_a_run_is_cited_with_the_papers_that_it_decides_and_its_attacks(unmix, runs: Path) -> None:
    digest = PAPER.settings("quick")["FA-k10"].experiment.digest()
    found = keys(unmix("cite", digest, "--runs", runs).out)
    assert found[0] == "unmix"
    assert "li2024featureaveraging" in found
    assert found[-1] == "madry2018towards"
    assert len(found) == len(set(found))


def test_a_run_of_no_paper_cites_the_software_alone(unmix, spec: Path) -> None:
    unmix("run", spec)
    (folder,) = (path for path in Path("runs").iterdir() if path.name[0] != ".")
    assert keys(unmix("cite", folder.name).out) == ["unmix", "paszke2019pytorch"]


@pytest.mark.usefixtures("runs")
def test_what_is_not_there_is_told(unmix) -> None:
    answer = unmix("cite", "averging")
    assert answer.code == 2
    assert "did you mean the paper 'averaging'?" in answer.err


def test_every_dataset_has_an_entry() -> None:
    from unmix.data.images.datasets import DATASETS as KNOWN

    assert set(DATASETS) == set(KNOWN)
