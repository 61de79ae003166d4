"""Figures as files: every format, the same bytes twice, and SVG that a page can theme."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import duckdb
import numpy as np
import pytest

from unmix.errors import DataError
from unmix.papers.base import Drawing
from unmix.report.export import FORMATS, printed
from unmix.style import ROLES, STEPS, canvas, css_variables, label_ends


def test_every_format_is_written_and_twice_the_same(curve: Drawing, tmp_path: Path) -> None:
    once, twice = (printed(curve, "curve").save(tmp_path / folder) for folder in ("a", "b"))
    assert [path.name for path in once] == [f"curve.{suffix}" for suffix in FORMATS]
    for one, other in zip(once, twice, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name


def test_two_drawings_of_one_figure_have_the_same_svg() -> None:
    def draw() -> Drawing:
        with canvas(3, 2) as figure:
            figure.subplots().fill_between([0, 1], [0, 1], [1, 2], hatch="/")
        return Drawing(figure, {"x": [0]}, "", "A band")

    assert printed(draw(), "a") == printed(draw(), "a")


def test_no_clock_and_no_version_in_the_files(curve: Drawing, tmp_path: Path) -> None:
    for path in printed(curve, "curve").save(tmp_path)[:3]:
        content = path.read_bytes().lower()
        assert b"creationdate" not in content
        assert b"matplotlib v" not in content


def test_parquet_keeps_types_and_missing_values(curve: Drawing, tmp_path: Path) -> None:
    *_, path = printed(curve, "curve").save(tmp_path)
    with duckdb.connect() as database:
        rows = database.execute(f"SELECT * FROM '{path}'").fetchall()
    assert rows == [(1, 1.0, "a"), (2, None, "b"), (3, 4.0, "c'")]


def test_csv_takes_numpy_scalars(curve: Drawing) -> None:
    table = {"a b": list(np.array([0.1, 1e-16])), "n": list(np.arange(2))}
    found = printed(Drawing(curve.canvas, table, "", "Lines"), "curve")
    assert found.files["csv"] == b"a b,n\n0.1,0\n1e-16,1\n"


@pytest.mark.parametrize("table", [{}, {"a": [1, 2], "b": [1]}])
def test_columns_of_unequal_length_are_refused(curve: Drawing, table: dict) -> None:
    with pytest.raises(DataError, match="columns of one length"):
        printed(Drawing(curve.canvas, table, "", ""), "curve")


def test_a_name_that_leaves_the_folder_is_refused(curve: Drawing) -> None:
    with pytest.raises(DataError, match="figure name"):
        printed(curve, "../curve")


def test_inline_svg_scales_speaks_and_leaks_nothing(curve: Drawing) -> None:
    root = ElementTree.fromstring(printed(curve, "one").svg)
    assert root.tag == "svg"
    assert root.get("role") == "img"
    assert root.get("width") == "100%"
    assert root.get("height") is None
    assert root.findtext("title") == "Two rising curves."
    assert root.findtext("desc") == "They end apart."
    assert root.find(".//style") is None
    assert root.find(".//metadata") is None


def test_ids_carry_the_prefix_and_references_find_them(matrix: Drawing) -> None:
    text = printed(matrix, "two").svg
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert all(name.startswith("two-") for name in ids)
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', text)) <= set(ids)


def test_every_colour_of_an_inline_svg_is_a_variable(curve: Drawing, matrix: Drawing) -> None:
    for drawing in (curve, matrix):
        text = printed(drawing, "x").svg
        assert re.findall(r"(?:fill|stroke): #", text) == []
        assert "<image" not in text
        assert set(re.findall(r"var\(--([\w-]+)\)", text)) <= set(ROLES)
    assert "var(--blue)" in printed(curve, "x").svg
    assert f"var(--step-{STEPS - 1})" in printed(matrix, "x").svg


def test_every_role_has_its_own_light_colour_and_is_declared_twice() -> None:
    assert len({light for light, _ in ROLES.values()}) == len(ROLES)
    css = css_variables()
    assert all(css.count(f"--{role}:") == 2 for role in ROLES)


def test_labels_at_one_height_are_pushed_apart() -> None:
    with canvas() as figure:
        axes = figure.subplots()
        for name in ("a", "b", "c"):
            axes.plot([0, 1], [0, 1], label=name)
        label_ends(axes, gap=10)
    offsets = sorted(text.xyann[1] for text in axes.texts)
    assert np.diff(offsets) == pytest.approx([10, 10], abs=1e-3)


def test_an_inline_picture_holds_no_blanks_and_no_names_that_nobody_uses(curve: Drawing) -> None:
    svg = printed(curve, "curve", "fake").svg
    assert not re.search(r">\s+<", svg)
    assert "<g id" not in svg
    named = set(re.findall(r' id="([^"]+)"', svg))
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', svg))
    assert used
    assert used <= named
