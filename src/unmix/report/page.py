"""One self-contained page: what was claimed, what was measured, and every figure."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from unmix import __version__
from unmix.claims import Verdict
from unmix.papers.base import FigureEntry, Paper
from unmix.papers.beside import Predicted
from unmix.papers.standing import Estimate, Standing
from unmix.papers.story import Explorer, Scene
from unmix.report import coverage, export, latex, tables
from unmix.report.signs import glyphs
from unmix.style import css_variables


@dataclass(frozen=True)
class Section:
    """A paper with everything that a page says about it.

    `command` and `flags` make the section again, and with a figure's name between them that
    figure; `digests` names the run of each setting,
    and `sources` the runs of each figure.
    """

    paper: Paper
    verdicts: Sequence[Verdict]
    drawings: Mapping[str, export.Printed] = field(default_factory=dict)
    not_drawn: Mapping[str, str] = field(default_factory=dict)
    predictions: Sequence[Predicted] = ()
    standings: Sequence[Standing] = ()
    explorer: Explorer | None = None
    sources: Mapping[str, Sequence[str]] = field(default_factory=dict)
    command: str = ""
    flags: str = ""
    digests: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in (*self.drawings, *self.not_drawn):
            self.paper.figure(name)

    @property
    def drawn(self) -> list[FigureEntry]:
        """The figures that were drawn, in the order of the paper."""
        return [entry for entry in self.paper.figures if entry.name in self.drawings]

    @property
    def missing(self) -> list[tuple[FigureEntry, str]]:
        """The other figures, each with the reason."""
        rest = [entry for entry in self.paper.figures if entry.name not in self.drawings]
        return [(f, self.not_drawn.get(f.name) or f.why_not or _UNASKED) for f in rest]


@dataclass(frozen=True)
class Found:
    """A finding in a reader's signs, and the verdicts that show it."""

    title: str
    text: str
    verdicts: Sequence[Verdict]

    @property
    def runs(self) -> list[str]:
        return list(dict.fromkeys(run for verdict in self.verdicts for run in verdict.runs))


ACTS = {
    "mixes": "What mixing is",
    "breaks": "How it breaks a network",
    "unmixes": "What un-mixes it",
}
# A table of more bytes than this is a file beside the page only.
LONG = 12_000
_UNASKED = "it was not asked for in this report"


def write(folder: Path, sections: Sequence[Section]) -> Path:
    """Write the page, the figures and the verdicts as data; returns the path of index.html."""
    folder.mkdir(parents=True, exist_ok=True)
    for section in sections:
        for entry in section.drawn:
            section.drawings[entry.name].save(folder / place(section))
    records = [r for s in sections for r in tables.records(s.paper, s.verdicts)]
    text = json.dumps(records, indent=1, ensure_ascii=False, allow_nan=False)
    _write(folder / "verdicts.json", text + "\n")
    _write(folder / "verdicts.csv", tables.as_csv(records))
    for name, text in _latex(sections).items():
        _write(folder / name, text)
    return _write(folder / "index.html", render(sections))


def render(sections: Sequence[Section]) -> str:
    """The page as text; the same sections give the same text."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(_resource("page.html"))
    return template.render(
        css=Markup(css_variables() + "\n" + _resource("page.css")),
        script=Markup(_resource("page.js")),
        sections=[_view(section) for section in sections],
        acts=_story(sections),
        standings=[row for section in sections for row in section.standings],
        estimate=_estimate,
        share=_share,
        number=tables.number,
        digest=_digest,
        glyphs=glyphs,
        data=_data,
        statuses=tables.STATUSES,
        symbols=tables.SYMBOLS | {"drawn": "▦"},
        meanings=tables.MEANINGS,
        kinds=tables.KINDS,
        formats=export.FORMATS,
        version=__version__,
    )


def _view(section: Section) -> dict[str, Any]:
    """What the template reads of a section."""
    table = tables.rows(section.paper, section.verdicts)
    groups = {kind: [row for row in table if row.kind == kind] for kind in tables.KINDS}
    lines = coverage.coverage(section.paper, table, section.drawings)
    return {
        "section": section,
        "paper": section.paper,
        "rows": table,
        "groups": {kind: rows for kind, rows in groups.items() if rows},
        "counts": tables.counts(table),
        "findings": _findings(section),
        "coverage": lines,
        "covered": coverage.counts(lines),
        "unmeasured": [row for row in table if row.status == "not-run"],
        "figures": [(entry, section.drawings[entry.name]) for entry in section.drawn],
        "told": {scene.figure for scene in section.paper.story},
        "numbers": _numbers(section),
        "place": place(section),
    }


def _story(sections: Sequence[Section]) -> dict[str, list[tuple[Section, Scene]]]:
    """The scenes whose figures were drawn, by act."""
    scenes = [
        (section, scene)
        for section in sections
        for scene in section.paper.story
        if scene.figure in section.drawings
    ]
    acts = {act: [pair for pair in scenes if pair[1].act == act] for act in ACTS}
    return {ACTS[act]: found for act, found in acts.items() if found}


def _numbers(section: Section) -> Markup:
    """What pointers and sliders need, as JSON that cannot end a script element."""
    figures = {f"{section.paper.name}-{n}": d.marks for n, d in section.drawings.items() if d.marks}
    explorer = None if section.explorer is None else asdict(section.explorer)
    text = json.dumps({"figures": figures, "explorer": explorer}, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))


def _estimate(found: Estimate) -> tuple[str, str]:
    """A mean and its interval; no interval where replicas agree."""
    if found.mean is None:
        return tables.NONE, ""
    text, *ends = map(tables.number, (found.mean, found.low, found.high))
    return text, f"[{', '.join(ends)}]" if ends[0] != ends[1] else ""


def _share(found: Estimate) -> tuple[str, str]:
    """The same in per cent."""
    if found.mean is None:
        return tables.NONE, ""
    text, *ends = (f"{100 * (value or 0.0):.1f}" for value in (found.mean, found.low, found.high))
    return f"{text} %", f"[{', '.join(ends)}]" if ends[0] != ends[1] else ""


def _digest(runs: Sequence[str], most: int = 3) -> str:
    """The first few digests of many."""
    more = f" and {len(runs) - most} more" if len(runs) > most else ""
    return " ".join(runs[:most]) + more


def _data(printed: export.Printed) -> str:
    """The numbers of a figure as a link that works without the files beside the page; empty for
    long tables, which would make the page heavy."""
    if len(printed.files["csv"]) > LONG:
        return ""
    return "data:text/csv;base64," + b64encode(printed.files["csv"]).decode()


def _findings(section: Section) -> list[Found]:
    judged = {verdict.claim: verdict for verdict in section.verdicts}
    return [
        Found(
            finding.title, glyphs(finding.text), [judged[c] for c in finding.claims if c in judged]
        )
        for finding in section.paper.findings
    ]


def place(section: Section) -> str:
    """Folder of a section's figures, as seen from the page."""
    return f"figures/{section.paper.name}"


def _latex(sections: Sequence[Section]) -> dict[str, str]:
    """The tables, the figures, and a document that holds both; the first two are for \\input."""
    parts = {
        "tables.tex": [latex.verdict_table(s.paper, s.verdicts) for s in sections],
        "figures.tex": [latex.figures_tex([_plate(s, e) for e in s.drawn]) for s in sections],
    }
    both = latex.document([rf"\input{{{name}}}" for name in parts])
    return {name: "\n".join(texts) for name, texts in parts.items()} | {"verdicts.tex": both}


def _plate(section: Section, entry: FigureEntry) -> latex.Plate:
    path = f"{place(section)}/{entry.name}.pdf"
    # The title often holds the paper's own figure number; LaTeX puts its own in front.
    caption = f"{section.drawings[entry.name].caption} ({entry.title})"
    return latex.Plate(path, f"{section.paper.name}-{entry.name}", caption)


def _resource(name: str) -> str:
    return files("unmix.report").joinpath(name).read_text(encoding="utf-8")


def _write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="\n")
    return path
