"""The coverage table: an item has the weakest status of its claims, or a reason."""

from __future__ import annotations

from dataclasses import replace

from unmix.report import tables
from unmix.report.coverage import Line, counts, coverage
from unmix.report.page import Section

STATUSES = ("confirmed", "supported", "inconclusive", "refuted", "failed", "not-run")


def lines(section: Section, drawn: tuple[str, ...] = ("curve",)) -> dict[str, Line]:
    table = tables.rows(section.paper, section.verdicts)
    return {line.item.place: line for line in coverage(section.paper, table, drawn)}


def test_an_item_has_the_status_of_its_claim(section: Section) -> None:
    found = lines(section)
    assert list(found) == [item.place for item in section.paper.contents]
    for place, status in zip(found, STATUSES, strict=False):
        if status != "refuted":
            assert found[place].status == status
            assert [row.claim for row in found[place].claims] == [status]


def test_what_goes_beyond_the_paper_does_not_count_for_it(section: Section) -> None:
    # The claim that is refuted sharpens Thm 1, and is none of the paper's.
    assert lines(section)["Thm 1"].status == "confirmed"
    assert lines(section)["Thm 4"].status == "not-run"


def test_an_item_without_claims_has_those_of_what_it_restates(section: Section) -> None:
    assert lines(section)["Lemma 7"].status == "failed"


def test_a_figure_is_drawn_or_not_run_with_a_reason(section: Section) -> None:
    assert lines(section)["Fig 1"].status == "drawn"
    assert lines(section)["Fig 1"].figures == ("curve",)
    assert lines(section, ())["Fig 1"].status == "not-run"
    assert lines(section)["Table 1"].why == "the images are not public"
    assert lines(section)["Lemma 8"].why == "a <definition>"
    assert lines(section)["Thm 6"].why == "only at paper size"


def test_the_weakest_claim_decides(section: Section) -> None:
    table = tables.rows(section.paper, section.verdicts)
    both = [r for r in table if r.claim in ("confirmed", "failed")]
    moved = [replace(row, place="Thm 1") for row in both]
    first, *_ = coverage(section.paper, moved, ())
    assert first.status == "failed"
    assert len(first.claims) == 2


def test_counts_leave_out_what_is_not_there(section: Section) -> None:
    found = counts(list(lines(section).values()))
    assert found == {
        "confirmed": 1,
        "supported": 1,
        "inconclusive": 1,
        "failed": 2,
        "drawn": 1,
        "not-run": 4,
    }
