"""A small invented paper with one claim for each status, and two figures that were drawn."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unmix.claims import Claim, Interval, Sample, Source, Verdict, judge, not_run
from unmix.papers.base import Drawing, FigureEntry, Paper
from unmix.papers.contents import Finding, Item
from unmix.papers.standing import Estimate, Standing
from unmix.report.export import printed
from unmix.report.page import Section
from unmix.style import canvas, cosine_matrix, cosine_scale, label_ends

NASTY = r"<script>alert('x')</script> |mu|^2 <= sqrt(d) ~ 50% & #1 \in {a_b} $ -- “μ ≤ ∞”"

PLACES = ("confirmed", "supported", "inconclusive", "refuted", "failed", "not-run")
CONTENTS = (
    *(Item(f"Thm {i + 1}", "theorem", f"It is {name}") for i, name in enumerate(PLACES)),
    Item("Lemma 7", "lemma", "The same", restates="Thm 5"),
    Item("Fig 1", "figure", "A curve"),
    Item("Lemma 8", "lemma", "Not measured", why_not="a <definition>"),
    Item("Table 1", "table", "Images"),
)


def _claim(name: str, kind: str = "identity", **words: str) -> Claim:
    statement = words.pop("statement", f"the statement of {name}")
    place = f"Thm {list(PLACES).index(name) + 1}" if kind != "beyond" else "sharpens Thm 1"
    return Claim(name, statement, Source("fake", place), kind, Interval(0.5, 1.5), name, **words)


@pytest.fixture
def claims() -> dict[str, Claim]:
    return {
        "confirmed": _claim("confirmed", statement=NASTY),
        "supported": _claim("supported", "law"),
        "inconclusive": _claim("inconclusive", "experiment"),
        "refuted": _claim("refuted", "beyond"),
        "failed": _claim("failed"),
        "not-run": _claim("not-run", "experiment"),
    }


@pytest.fixture
def verdicts(claims: dict[str, Claim]) -> list[Verdict]:
    near, far = [0.9, 1.0, 1.1, 1.0, 1.0], [3.0, 3.1, 2.9, 3.0, 3.0]
    return [
        judge(claims["confirmed"], Sample(near), "paper", ("digest-a", "digest-b")),
        judge(claims["supported"], Sample(near), "paper"),
        judge(claims["inconclusive"], Sample(far), "reduced"),
        judge(claims["refuted"], Sample(far), "paper"),
        judge(claims["failed"], Sample(near, ("loss <= 0.1 & finite",)), "paper"),
        not_run(claims["not-run"], "only at paper size"),
    ]


@pytest.fixture
def curve() -> Drawing:
    with canvas(4, 2.5) as figure:
        axes = figure.subplots()
        for name, slope in {"gradient": 1.0, "decoupled": 1.1}.items():
            axes.plot([1, 2, 3], [slope, 2 * slope, 4 * slope], label=name)
        axes.set(xlabel="radius", ylabel="$\\alpha$", yscale="log")
        label_ends(axes)
    table = {"radius": [1, 2, 3], "value": [1.0, None, 4.0], "name": ["a", "b", "c'"]}
    return Drawing(figure, table, f"Caption of {NASTY}", "Two rising curves. They end apart.")


@pytest.fixture
def matrix() -> Drawing:
    with canvas(3, 2.5) as figure:
        axes = figure.subplots()
        mesh = cosine_matrix(axes, [[1.0, 0.3], [-0.9, 1.0]])
        cosine_scale(figure, mesh, axes)
    table = {"cosine": [1.0, 0.3, -0.9, 1.0], "same": [True, False, False, True]}
    return Drawing(figure, table, "Cosines.", "A two by two matrix of cosines")


@pytest.fixture
def paper(claims: dict[str, Claim]) -> Paper:
    figures = (
        FigureEntry("curve", "A curve <b>", "curve", place="Fig 1"),
        FigureEntry("matrix", "A matrix", "matrix"),
        FigureEntry(
            "absent", "A figure of images", why_not="the images are not public", place="Table 1"
        ),
    )
    return Paper(
        "fake",
        "A fake & nasty_paper",
        "A. Üthor",
        "",
        tuple(claims.values()),
        figures,
        "",
        contents=CONTENTS,
        findings=(Finding("Readings", "loss by mean & <i>sum</i>.", ("confirmed", "refuted")),),
    )


@pytest.fixture
def standings() -> list[Standing]:
    """A net between certificate and attack, and one of which little is known."""
    one, none = Estimate(1.0, 1.0, 1.0), Estimate(why_not="none is known")
    low, high = Estimate(0.25, 0.2, 0.3), Estimate(0.5, 0.4, 0.6, flagged="red flag, it is odd")
    words = "half-way to sqrt(2)"
    known = Standing("fake", "a net", "base", "0123abcd", 5, one, one, words, low, high, one, one)
    unknown = replace(known, title="another", best=none, certified=none, attacked=none)
    return [known, unknown]


@pytest.fixture
def section(paper: Paper, verdicts: list[Verdict], curve: Drawing, matrix: Drawing) -> Section:
    return Section(
        paper=paper,
        verdicts=verdicts,
        drawings={
            "curve": printed(curve, "curve", "fake"),
            "matrix": printed(matrix, "matrix", "fake"),
        },
        command="unmix reproduce fake",
        flags="--quick",
        digests={"base": "0123abcd"},
    )
