"""The page: complete, self-contained, well-formed, escaped, and the same bytes twice."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from base64 import b64decode
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markupsafe import escape

from unmix.claims import Interval
from unmix.errors import UnknownName
from unmix.papers.base import Drawing, Paper
from unmix.papers.standing import Standing
from unmix.report import tables
from unmix.report.export import printed
from unmix.report.page import Section, render, write

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Balance(HTMLParser):
    """Checks that every tag is closed in order, and keeps what was met."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.met: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.met.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.met.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def parse(text: str) -> Balance:
    parser = Balance()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    return parser


def test_two_writes_give_the_same_bytes(section: Section, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        assert write(tmp_path / folder, [section]) == tmp_path / folder / "index.html"
    names = sorted(p.relative_to(tmp_path / "a") for p in (tmp_path / "a").rglob("*.*"))
    assert len(names) == 6 + 2 * 5
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name


def test_every_verdict_and_every_figure_appears(section: Section) -> None:
    text = render([section])
    for claim, verdict in zip(section.paper.claims, section.verdicts, strict=True):
        assert f"<code>{claim.name}</code>" in text
        assert str(escape(claim.statement)) in text
        row = f'<tr role="row" id="fake-claim-{claim.name}" data-status="{verdict.status}">'
        assert row in text
        assert str(escape(verdict.why)) in text
    for entry in section.paper.figures:
        assert str(escape(entry.title)) in text
    for status, meaning in tables.MEANINGS.items():
        assert f"{status} <b>1</b>" in text
        assert meaning in text
    for words in ("the images are not public", section.command, "0123abcd", "A. Üthor"):
        assert words in text


def test_the_page_is_well_formed_and_fetches_nothing(section: Section) -> None:
    text = render([section])
    parser = parse(text)
    for tag, attributes in parser.met:
        for name in ("src", "href", "xlink:href"):
            value = attributes.get(name) or ""
            assert not value.startswith(("http:", "https:", "//")), (tag, value)
        assert tag not in ("iframe", "img")
        if tag == "link":
            assert str(attributes["href"]).startswith("data:")
    assert "@import" not in text
    assert set(re.findall(r"url\((.)", text)) <= {"#"}
    assert "default-src 'none'" in text


def test_ids_are_unique_and_references_find_them(section: Section) -> None:
    met = parse(render([section])).met
    ids = [attributes["id"] for _, attributes in met if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in met:
        for name in (attributes.get("aria-labelledby") or "").split():
            assert name in ids
        if (attributes.get("href") or "").startswith("#"):
            assert str(attributes["href"])[1:] in ids


def test_links_of_a_written_page_lead_to_files(section: Section, tmp_path: Path) -> None:
    met = parse(write(tmp_path, [section]).read_text(encoding="utf-8")).met
    links = [a["href"] for tag, a in met if tag == "a" and str(a["href"])[:5] not in ("data:",)]
    links = [link for link in links if not str(link).startswith("#")]
    assert len(links) == 3 + 2 * 5
    assert all((tmp_path / str(link)).is_file() for link in links)


def test_foreign_text_is_escaped(section: Section) -> None:
    text = render([section])
    assert "<script>alert" not in text
    assert "loss by mean &amp; &lt;i&gt;sum&lt;/i&gt;" in text


def test_a_finding_leads_to_its_verdicts_and_names_their_runs(section: Section) -> None:
    text = render([section])
    shown = text[text.index("Readings") : text.index("Coverage")]
    assert 'href="#fake-claim-confirmed"' in shown
    assert 'href="#fake-claim-refuted"' in shown
    assert "<code>digest-a digest-b</code>" in shown


def test_figures_have_words_and_theme_colours(section: Section) -> None:
    text = render([section])
    assert text.count('role="img"') == 2
    assert ">Two rising curves.</title>" in text
    assert "prefers-color-scheme:dark" in text
    declared = set(re.findall(r"--([\w-]+):", text.replace(": ", ":")))
    assert set(re.findall(r"var\(--([\w-]+)\)", text)) <= declared


def test_short_tables_are_on_the_page_itself_and_long_ones_beside_it(
    section: Section, curve: Drawing
) -> None:
    numbers = [a["href"] for tag, a in parse(render([section])).met if "download" in a]
    texts = [b64decode(str(link).partition(",")[2]).decode() for link in numbers]
    assert texts[0].splitlines()[0] == "radius,value,name"
    long = printed(replace(curve, table={"x": list(range(5000))}), "curve", "fake")
    heavy = replace(section, drawings={"curve": long})
    assert "data:text/csv" not in render([heavy])


def test_a_claim_without_a_verdict_is_listed_as_not_run(paper: Paper) -> None:
    text = render([Section(paper, [])])
    assert text.count('data-status="not-run">') == len(paper.claims)
    assert "it was not asked for in this report" in text


def test_a_drawing_of_an_unknown_figure_is_refused(section: Section, paper: Paper) -> None:
    with pytest.raises(UnknownName, match="curvy"):
        Section(paper, [], drawings={"curvy": section.drawings["curve"]})


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_the_latex_beside_the_page_compiles(section: Section, tmp_path: Path) -> None:
    write(tmp_path, [section])
    for part in ("tables.tex", "figures.tex"):
        assert "documentclass" not in (tmp_path / part).read_text(encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "verdicts.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    log = (tmp_path / "verdicts.log").read_text(errors="replace")
    assert log.count("Graphic file (type pdf)") == 2


def test_verdicts_as_data(section: Section, tmp_path: Path) -> None:
    write(tmp_path, [section])
    records = json.loads((tmp_path / "verdicts.json").read_text(encoding="utf-8"))
    with (tmp_path / "verdicts.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [r["status"] for r in records] == [v.status for v in section.verdicts]
    assert [r["status"] for r in rows] == [v.status for v in section.verdicts]
    assert records[0]["runs"] == ["digest-a", "digest-b"]
    assert rows[0]["runs"] == "digest-a digest-b"
    assert float(rows[0]["mean"]) == records[0]["mean"] == section.verdicts[0].mean


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "—"),
        (float("nan"), "—"),
        (float("inf"), "∞"),
        (0.0, "0"),
        (0.123456, "0.1235"),
        (-12.5, "−12.5"),
        (1e-16, "1e−16"),
        (-2.22044e-16, "−2.22e−16"),
        (123456.0, "1.235e5"),
    ],
)
def test_numbers(value: float | None, text: str) -> None:
    assert tables.number(value) == text


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (Interval(), "—"),
        (Interval(high=0.1), "≤ 0.1"),
        (Interval(low=2), "≥ 2"),
        (Interval(1, 1), "= 1"),
        (Interval(-1, 1), "[−1, 1]"),
    ],
)
def test_wanted_intervals(interval: Interval, text: str) -> None:
    assert tables.wanted(interval) == text


def test_plain_rows_for_a_terminal(section: Section) -> None:
    first = tables.rows(section.paper, section.verdicts)[0].plain()
    assert len(first) == len(tables.COLUMNS)
    assert first[0] == "confirmed"
    assert first[3].startswith("1 [")
    assert first[6] == "✓ confirmed"


def test_nets_stand_side_by_side(section: Section, standings: list[Standing]) -> None:
    text = render([replace(section, standings=standings)])
    table = text.partition('id="across"')[2].partition("</section>")[0]
    known, unknown = table.split('<th role="rowheader"')[1:]
    assert "25.0 %" in known
    assert "[20.0, 30.0]" in known
    assert "half-way to √2" in known
    assert "red flag, it is odd" in known
    # Dark up to the certificate, pale up to the attack; pale all over where nothing is known.
    widths = [
        re.findall(r'class="(?:open|sure)" width="([0-9.]+)"', row) for row in (known, unknown)
    ]
    assert widths == [["50.0", "25.0"], ["100", "0"]]
    assert unknown.count("none is known") == 3
    assert "half-way" not in unknown
