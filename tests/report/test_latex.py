"""LaTeX: any text is escaped, every claim is in the table, and the document compiles."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from unmix.claims import Verdict
from unmix.papers.base import Paper
from unmix.report.latex import PACKAGES, Plate, document, escape, figures_tex, verdict_table
from unmix.report.signs import glyphs

PRINTABLE = "".join(map(chr, range(32, 127)))
FOREIGN = "".join(map(chr, [*range(160, 0x180), *range(0x391, 0x3CA)])) + "≤≥≠√‖⟨⟩ℓ∞→⁻¹ₙ☃字\u0301"


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("|mu|^2", r"\textbar{}mu\textbar{}\textasciicircum{}2"),
        ("a_b", r"a\_\allowbreak{}b"),
        ("50 % & #1 $", r"50 \% \& \#1 \$"),
        (r"\in {a}~", r"\textbackslash{}in \{a\}\textasciitilde{}"),
        ("a <= b", r"a \textless{}= b"),
        ("--seed", "-{}-seed"),
        ("μ ≤ ∞", r"\ensuremath{\mu} \ensuremath{\leq} \ensuremath{\infty}"),
        ("x⁻¹", r"x\ensuremath{^{-}}\ensuremath{^{1}}"),
        ("Müller, Łoś", "Müller, Łoś"),
        ("one\ntwo", "one two"),
        ("☃", "[U+2603]"),
    ],
)
def test_escape(text: str, latex: str) -> None:
    assert escape(text) == latex


def test_no_special_character_is_left_bare() -> None:
    commands = r"\\(?:[a-zA-Z]+\{\}|[{}$&%#_])"
    bare = re.sub(commands, "", escape(PRINTABLE))
    assert not set(bare.replace("{}", "")) & set('\\{}$&%#_~^<>|"`')


def test_table_holds_every_claim_and_names_its_packages(
    paper: Paper, verdicts: list[Verdict]
) -> None:
    table = verdict_table(paper, verdicts)
    first = table.splitlines()[0]
    assert all(package in first for package in PACKAGES)
    for claim, verdict in zip(paper.claims, verdicts, strict=True):
        assert escape(glyphs(claim.statement)) in table
        assert rf"\textbf{{{escape(verdict.status)}}}" in table
    assert table.count(r"\begin{") == table.count(r"\end{") == 1
    body = table.split(r"\endfoot")[1].split(r"\end{longtable}")[0]
    rows = [line for line in body.splitlines() if line]
    assert all(len(re.findall(r"(?<!\\)&", row)) == 5 for row in rows)


def test_figures_point_to_their_pdf() -> None:
    text = figures_tex([Plate("figures/a_b/c.pdf", "a_b:c", "50 %")])
    assert r"{\detokenize{figures/a_b/c.pdf}}" in text
    assert r"\caption{50 \%}" in text
    assert r"\label{fig:a-b-c}" in text


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_document_compiles(paper: Paper, verdicts: list[Verdict], tmp_path: Path) -> None:
    nasty = " ".join(escape(c) for c in PRINTABLE + FOREIGN) + escape(PRINTABLE + FOREIGN)
    fragments = [verdict_table(paper, verdicts), nasty]
    (tmp_path / "all.tex").write_text(document(fragments), encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=300, check=False)
    log = (tmp_path / "all.log").read_text(errors="replace")
    assert done.returncode == 0, log[-2000:]
    assert "Missing character" not in log
    assert "LaTeX Font Warning" not in log
