"""Every claim belongs to an item of its paper, and every item has something that stands for it."""

from __future__ import annotations

import pytest

from unmix import catalog
from unmix.errors import SpecError
from unmix.papers.base import Paper
from unmix.papers.contents import Item, mentions

PAPERS = [catalog.load("papers", name) for name in catalog.names("papers")]
paper_ = pytest.mark.parametrize("paper", PAPERS, ids=[p.name for p in PAPERS])


@pytest.mark.parametrize(
    ("place", "found"),
    [
        ("Thm 4.5 (3), section 5.3 step 5", {"thm 4.5", "section 5.3"}),
        ("Lemmas 5.1, 5.2, B.2, Cor B.3", {"lemma 5.1", "lemma 5.2", "lemma B.2", "cor B.3"}),
        ("Lemma 5.3, B.7 (2)-(4)", {"lemma 5.3", "B.7"}),
        ("unifies Thms 4.5 and 4.7", {"thm 4.5", "thm 4.7"}),
        ("Theorem 6.1", {"thm 6.1"}),
        ("eq (17)", {"eq 17"}),
        ("Fig 3 left", {"fig 3"}),
        ("E.1, Fig 5b", {"E.1", "fig 5"}),
        ("slides, Lemma 2", {"slides lemma 2"}),
        ("Figure 12, Table 1", {"fig 12", "table 1"}),
        ("Assumption 4.3", {"assumption 4.3"}),
        ("appendix C", {"section C"}),
        ("control", set()),
        ("a remark on 3 things", set()),
    ],
)
def test_mentions(place: str, found: set[str]) -> None:
    assert mentions(place) == found


@pytest.mark.parametrize(
    ("item", "place", "named"),
    [
        ("Thm 4.5", "Thm 4.5 (2)", True),
        ("Thm 4.5", "Thm 4.50", False),
        ("Thm 4", "Thm 4.5", False),
        ("Lemma B.7", "B.7 (8)", True),
        ("Lemma 2", "slides, Lemma 2", False),
        ("slides, Lemma 2", "Lemma 2", False),
        ("Fig 1", "Fig 10", False),
        ("Fig 2", "Fig 2a", True),
        ("Lemma 4.5", "Thm 4.5", False),
    ],
)
def test_an_item_is_named_by_its_own_number_only(item: str, place: str, named: bool) -> None:
    assert Item(item, "lemma", "").named_in(place) is named


@pytest.mark.parametrize("place", ["", "control", "Thms 4.5 and 4.7"])
def test_an_item_has_one_place(place: str) -> None:
    with pytest.raises(SpecError, match="place of one item"):
        Item(place, "lemma", "")


@paper_
def test_every_claim_belongs_to_an_item(paper: Paper) -> None:
    lost = [
        (claim.name, claim.source.place)
        for claim in paper.claims
        if not any(item.named_in(claim.source.place) for item in paper.contents)
    ]
    assert lost == []


@paper_
def test_every_item_has_a_claim_a_figure_or_a_reason(paper: Paper) -> None:
    places = [claim.source.place for claim in paper.claims]
    places += [figure.shows for figure in paper.figures]
    bare = [
        item.place
        for item in paper.contents
        if not any(item.named_in(place) for place in places)
        and not item.why_not
        and not item.restates
    ]
    assert bare == []


@paper_
def test_items_are_distinct_and_restate_others_that_are_measured(paper: Paper) -> None:
    places = [item.place for item in paper.contents]
    assert len(places) == len(set(places))
    for item in paper.contents:
        if item.restates:
            same = paper.contents[places.index(item.restates)]
            assert any(same.named_in(claim.source.place) for claim in paper.claims) or same.restates


# How far the texts count: statements by section, and by kind where a number has no section.
LAST = {
    "averaging": "3 3, 4 8, 5 6, A 15, B 27, C 26, D 4, fig 10, slides 1 1, slides 2 6, "
    "slides assumption 3, slides thm 5, slides lemma 12",
    "prelu": "prop 1, thm 3, remark 2, conj 1, lemma 6, fig 7, table 1, alg 1",
    "patches": "2 5, 3 2, 4 4, 5 2, A 2, B 3, C 2, D 28, E 11, fig 5, table 2",
    "purification": "2 2, 4 3, 5 7, 8 2, A 2, B 3, C 22, D 8, E 3, F 17, G 8, H 4, fig 13, "
    "table 1, alg 2",
}
# Equations and sections are listed where a claim speaks of them; the slides keep the paper's
# numbers of figures.
UNCOUNTED = ("eq", "section", "slides fig")


def counted(paper: Paper) -> dict[str, set[int]]:
    """The numbers that the contents list of each counter."""
    found: dict[str, set[int]] = {}
    for item in paper.contents:
        (place,) = mentions(item.place)
        named, _, number = place.rpartition(" ")
        section, _, last = number.rpartition(".")
        source = "slides " if named.startswith("slides ") else ""
        if named not in UNCOUNTED:
            found.setdefault(source + section if section else named, set()).add(int(last))
    return found


@paper_
def test_every_number_of_a_text_is_listed(paper: Paper) -> None:
    ends = dict(end.rsplit(" ", 1) for end in LAST[paper.name].split(", "))
    every = {counter: set(range(1, int(last) + 1)) for counter, last in ends.items()}
    found = counted(paper)
    assert found.keys() == every.keys()
    for counter, numbers in every.items():
        assert found[counter] == numbers, counter


@paper_
def test_a_finding_names_claims_that_are_there(paper: Paper) -> None:
    for finding in paper.findings:
        assert finding.title
        assert finding.text.endswith(".")
        for name in finding.claims:
            assert paper.claim(name).measure, f"{finding.title}: {name} is not measured"


@paper_
def test_scenes_and_rows_name_what_is_there(paper: Paper) -> None:
    settings = paper.settings("quick") | paper.settings("paper")
    for scene in paper.story:
        assert paper.figure(scene.figure).draw
        assert scene.text.endswith(".")
    for part in (*paper.predictions, *paper.contenders):
        assert {part.setting, *getattr(part, "also", ())} <= settings.keys()
    assert set(paper.explored) <= set(settings)
    assert paper.story, f"{paper.name} has no part in the story"
    assert paper.contenders, f"{paper.name} has no row in the table across papers"


@paper_
def test_the_contents_are_listed(paper: Paper) -> None:
    kinds = {item.kind for item in paper.contents}
    assert "figure" in kinds
    assert kinds & {"theorem", "proposition"}
