"""Figures as files and as themeable SVG; the same drawing gives the same bytes."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from unmix import parquet
from unmix.errors import DataError
from unmix.papers.base import Drawing
from unmix.report.marks import marks
from unmix.style import PAPER, ROLES, look

FORMATS = ("svg", "png", "pdf", "csv", "parquet")

# Matplotlib would write its version and the hour; both differ between two equal runs.
_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
}
_VARIABLES = {pair[0]: f"var(--{role})" for role, pair in ROLES.items()}
_VARIABLES |= {"#000000": "var(--ink)", "#ffffff": "var(--paper)"}


@dataclass(frozen=True)
class Printed:
    """A drawing in every format of FORMATS, and what a page needs of it.

    `marks` are the points and cells of the picture with their numbers, for a reader's pointer.
    """

    name: str
    caption: str
    alt: str
    svg: str
    marks: list[dict[str, Any]]
    files: Mapping[str, bytes]

    def save(self, folder: Path) -> list[Path]:
        """Write the files; the numbers go beside the picture."""
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / f"{self.name}.{suffix}" for suffix in FORMATS]
        for path, suffix in zip(paths, FORMATS, strict=True):
            path.write_bytes(self.files[suffix])
        return paths


def printed(drawing: Drawing, name: str, prefix: str = "") -> Printed:
    """The drawing as bytes and text; ids of the page's SVG start with `prefix` and the name."""
    _check(drawing.table, name)
    files = {suffix: _picture(drawing, suffix) for suffix in FORMATS[:3]}
    table = {name: [_plain(v) for v in values] for name, values in drawing.table.items()}
    files |= {"csv": _csv(table), "parquet": parquet.as_bytes(table)}
    root = re.sub(r"[^A-Za-z0-9-]", "-", f"{prefix}-{name}" if prefix else name)
    svg = inline_svg(files["svg"], drawing.alt, root)
    return Printed(name, drawing.caption, drawing.alt, svg, marks(drawing.canvas), files)


def inline_svg(picture: bytes, alt: str, prefix: str) -> str:
    """An SVG file as an <svg> for a page: ids start with `prefix`, colours are variables."""
    root = ElementTree.fromstring(picture)
    for parent in list(root.iter()):
        for child in list(parent):
            # Matplotlib's <style> selects `*`, which on a page means the whole page.
            if child.tag.endswith(("metadata", "style")):
                parent.remove(child)
    for element in root.iter():
        _adapt(element, prefix)
    for group in root.iter("g"):
        _shorten(group)
    _tighten(root)
    _describe(root, alt, prefix)
    return ElementTree.tostring(root, encoding="unicode")


def _picture(drawing: Drawing, suffix: str) -> bytes:
    """One picture file; only the PNG is opaque, since viewers put it on any background."""
    ground = PAPER if suffix == "png" else "none"
    stream = BytesIO()
    with look():
        drawing.canvas.savefig(
            stream, format=suffix, dpi=200, facecolor=ground, metadata=_METADATA[suffix]
        )
    return stream.getvalue()


def _adapt(element: ElementTree.Element, prefix: str) -> None:
    """Drop the XML namespaces, make ids unique on the page, and name colours by role."""
    element.tag = element.tag.partition("}")[2]
    attributes = {key.rpartition("}")[2]: value for key, value in element.attrib.items()}
    element.attrib.clear()
    for key, value in attributes.items():
        if key == "id":
            value = f"{prefix}-{value}"
        value = re.sub(r"^#|(?<=url\()#", f"#{prefix}-", value)
        if key == "style":
            value = re.sub(r"#[0-9a-f]{6}\b", lambda m: _VARIABLES.get(m[0], m[0]), value)
        element.set(key, value)


def _shorten(group: ElementTree.Element) -> None:
    """Say once what all paths of a group have in common, and drop digits that nobody sees."""
    paths = [child for child in group if child.tag == "path"]
    for path in paths:
        path.set("d", re.sub(r"\d+\.\d{3,}", lambda m: f"{float(m[0]):.2f}", path.get("d", "")))
    if len(paths) < 2 or len(paths) < len(group):
        return
    styles = [set(path.get("style", "").split("; ")) for path in paths]
    if common := set.intersection(*styles) - {""}:
        group.set("style", "; ".join(sorted(common)))
        for path, style in zip(paths, styles, strict=True):
            path.set("style", "; ".join(sorted(style - common)))
    if "QuadMesh" in group.get("id", ""):
        # The tiles of a matrix fill its axes and nothing else.
        for path in paths:
            path.attrib.pop("clip-path", None)


def _tighten(root: ElementTree.Element) -> None:
    """Drop what nobody refers to or sees: Matplotlib's own names of groups ("axes_1"), and the
    blanks between elements."""
    for element in root.iter():
        if element.tag == "g" and re.search(r"_\d+$", element.get("id", "")):
            element.attrib.pop("id")
        element.text = element.text if (element.text or "").strip() else None
        element.tail = None


def _describe(root: ElementTree.Element, alt: str, prefix: str) -> None:
    """Size by the page, and words for those who cannot see the figure."""
    _, _, width, height = root.attrib["viewBox"].split()
    root.attrib.clear()
    first, stop, rest = alt.partition(". ")
    words = {"title": first + stop.rstrip(), "desc": rest}
    words = {tag: text for tag, text in words.items() if text}
    root.set("viewBox", f"0 0 {width} {height}")
    root.set("width", "100%")
    root.set("role", "img")
    root.set("aria-labelledby", " ".join(f"{prefix}-{tag}" for tag in words))
    look_of_root = "fill:var(--ink);stroke-linejoin:round;stroke-linecap:butt"
    # The page lets a figure shrink to `--least`, where its letters can still be read.
    widths = f"max-width:{float(width) / 10:.4g}rem;--least:{float(width) / 19:.4g}rem"
    root.set("style", f"{look_of_root};{widths}")
    for place, (tag, text) in enumerate(words.items()):
        element = ElementTree.Element(tag, {"id": f"{prefix}-{tag}"})
        element.text = text
        root.insert(place, element)


def _check(table: Mapping[str, list[Any]], name: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        message = f"expected a figure name of letters, digits, '-', '_' and '.', came {name!r}"
        raise DataError(message, "rename the figure's entry in its paper")
    lengths = {column: len(values) for column, values in table.items()}
    if len(set(lengths.values())) != 1:
        message = f"the table of figure {name!r}: expected columns of one length, came {lengths}"
        raise DataError(message, "give every column of Drawing.table one value a row")


def _plain(value: Any) -> Any:
    """A Python value for a numpy or torch scalar."""
    return value.item() if hasattr(value, "item") else value


def _csv(table: Mapping[str, list[Any]]) -> bytes:
    stream = StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*table.values(), strict=True))
    return stream.getvalue().encode()
