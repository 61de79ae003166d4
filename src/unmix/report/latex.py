"""Verdicts and figures as LaTeX that compiles with a plain pdflatex."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from unmix.claims import Verdict
from unmix.papers.base import Paper
from unmix.report.tables import Row, rows

PACKAGES = ("booktabs", "longtable", "array", "amssymb", "textcomp", "graphicx")

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_\allowbreak{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "/": r"/\allowbreak{}",
    "—": r"\textemdash{}",
    "–": r"\textendash{}",
    "’": r"\textquoteright{}",
    "‘": r"\textquoteleft{}",
    "“": r"\textquotedblleft{}",
    "”": r"\textquotedblright{}",
    "…": r"\ldots{}",
    "\u00a0": "~",
}
_MATH = {
    "≤": r"\leq",
    "≥": r"\geq",
    "≠": r"\neq",
    "≈": r"\approx",
    "∼": r"\sim",
    "±": r"\pm",
    "×": r"\times",
    "·": r"\cdot",
    "−": "-",
    "∞": r"\infty",
    "√": r"\surd",
    "∈": r"\in",
    "∑": r"\sum",
    "∂": r"\partial",
    "∇": r"\nabla",
    "→": r"\to",
    "↔": r"\leftrightarrow",
    "⟨": r"\langle",
    "⟩": r"\rangle",
    "‖": r"\|",
    "∥": r"\|",
    "⊥": r"\perp",
    "∀": r"\forall",
    "∃": r"\exists",
    "ℓ": r"\ell",
    "′": "'",
    "ℝ": r"\mathbb{R}",
    "µ": r"\mu",
    "ϵ": r"\epsilon",
    "ϕ": r"\phi",
}
_LETTERS = "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ"
_NAMES = (
    "alpha beta gamma delta varepsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau "
    "upsilon varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
)
_MATH |= {c: rf"\{name}" for c, name in zip(_LETTERS, _NAMES.split(), strict=True)}

# Letters outside ASCII that T1 has and Unicode does not compose of a base and an accent.
_LETTERS_OF_T1 = "ßæøÆØłŁœŒ"


@dataclass(frozen=True)
class Plate:
    """A figure to include: the path of its PDF as seen from the document."""

    path: str
    label: str
    caption: str


def escape(text: str) -> str:
    """Any text as LaTeX that prints it; a character without a glyph becomes its code point."""
    latex = "".join(_character(c) for c in unicodedata.normalize("NFC", text))
    # Two of these in a row would melt into a dash or a quotation mark.
    return re.sub(r"([-,'])(?=\1)", r"\1{}", latex)


def verdict_table(paper: Paper, verdicts: Sequence[Verdict]) -> str:
    """A longtable of every claim of the paper with its verdict."""
    lines = [
        "% needs: " + ", ".join(PACKAGES),
        r"\begingroup\footnotesize\setlength{\tabcolsep}{4pt}\setlength{\LTcapwidth}{\linewidth}",
        rf"\begin{{longtable}}{{{_columns(0.30, 0.13, 0.11, 0.14, 0.09, 0.23)}}}",
        rf"\caption{{Verdicts on {escape(paper.title)} ({escape(paper.authors)})}}\\",
        rf"\toprule {_HEAD} \\ \midrule \endfirsthead",
        rf"\toprule {_HEAD} \\ \midrule \endhead",
        r"\bottomrule \endfoot",
        *(_line(row) for row in rows(paper, verdicts)),
        r"\end{longtable}\endgroup",
    ]
    return "\n".join(lines) + "\n"


def figures_tex(plates: Sequence[Plate]) -> str:
    """One float for each figure."""
    return "\n".join(_float(plate) for plate in plates)


def document(fragments: Sequence[str]) -> str:
    """The fragments in a document that compiles on its own."""
    lines = [
        r"\documentclass[10pt]{article}",
        r"\usepackage[T1]{fontenc}",
        r"\usepackage[utf8]{inputenc}",
        r"\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}",
        r"\usepackage[a4paper,margin=2cm]{geometry}",
        *(rf"\usepackage{{{package}}}" for package in PACKAGES),
        r"\begin{document}",
        *fragments,
        r"\end{document}",
    ]
    return "\n".join(lines) + "\n"


_HEAD = r"Claim & Where & Wanted & Measured & Runs & Verdict"


def _columns(*shares: float) -> str:
    """Ragged columns that share the line; each also carries its part of the space between."""
    ragged = r">{\raggedright\arraybackslash}"
    return "".join(rf"{ragged}p{{\dimexpr {s:.2f}\linewidth-2\tabcolsep\relax}}" for s in shares)


def _line(row: Row) -> str:
    runs = row.replicas if row.status == "not-run" else f"{row.replicas}, {row.scale}"
    plain = (row.statement, row.place, row.wanted, row.measured, runs)
    verdict = rf"\textbf{{{escape(row.status)}}}: {escape(row.why)}"
    return " & ".join([*map(escape, plain), verdict]) + r" \\ \addlinespace[2pt]"


def _float(plate: Plate) -> str:
    label = "".join(c if c.isascii() and c.isalnum() else "-" for c in plate.label)
    lines = (
        r"\begin{figure}[htbp]",
        r"\centering",
        rf"\includegraphics[width=0.85\linewidth]{{\detokenize{{{plate.path}}}}}",
        rf"\caption{{{escape(plate.caption)}}}",
        rf"\label{{fig:{label}}}",
        r"\end{figure}",
    )
    return "\n".join(lines) + "\n"


def _character(c: str) -> str:
    if c in _ESCAPES:
        return _ESCAPES[c]
    if c in _MATH:
        return rf"\ensuremath{{{_MATH[c]}}}"
    if c.isspace() or unicodedata.category(c) == "Cc":
        return " "
    return c if c.isascii() else _foreign(c)


def _foreign(c: str) -> str:
    """Accented Latin as it is, raised and lowered characters, and the code point for the rest."""
    parts = unicodedata.decomposition(c).split()
    if c in _LETTERS_OF_T1 or (parts and c.isalpha() and "À" <= c <= "ž" and c not in "ĿŀŉĴĵ"):
        return c
    shift = {"<super>": "^", "<sub>": "_"}.get(parts[0]) if len(parts) == 2 else None
    base = chr(int(parts[1], 16)) if shift else ""
    base = _MATH.get(base, base)
    if shift and base.isascii():
        return rf"\ensuremath{{{shift}{{{base}}}}}"
    return rf"[U+{ord(c):04X}]"
