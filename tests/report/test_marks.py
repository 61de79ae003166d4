"""The numbers behind a picture lie where the picture shows them."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from unmix.papers.base import Drawing
from unmix.report.export import printed
from unmix.report.marks import MOST, marks
from unmix.style import canvas


def test_points_lie_on_the_line_that_is_drawn() -> None:
    with canvas(4, 3) as figure:
        axes = figure.subplots()
        axes.plot([1, 10, 100], [1.0, 2.0, 8.0], label="$\\alpha$ rises", gid="line")
        axes.set(xscale="log", xlabel="radius $\\sqrt{d}$", ylabel="y")
    found = printed(Drawing(figure, {"x": [0]}, "", "A line"), "x")
    (mark,) = found.marks
    assert (mark["label"], mark["x"]) == ("alpha rises", "radius sqrtd")
    group = next(e for e in ElementTree.fromstring(found.svg).iter() if e.get("id") == "x-line")
    path = next(e for e in group.iter() if e.tag == "path").get("d", "")
    drawn = [float(v) for v in path.replace("M", " ").replace("L", " ").split()]
    told = [v for across, down, *_ in mark["points"] for v in (across, down)]
    assert told == pytest.approx(drawn, abs=0.06)
    assert [p[2:] for p in mark["points"]] == [[1, 1], [10, 2], [100, 8]]


def test_a_matrix_has_its_box_and_its_values(matrix: Drawing) -> None:
    (mark,) = marks(matrix.canvas)
    assert mark["cells"] == [[1.0, 0.3], [-0.9, 1.0]]
    left, top, right, bottom = mark["box"]
    assert 0 < left < right < 3 * 72
    assert 0 < top < bottom < 2.5 * 72


def test_long_lines_are_thinned_and_gaps_left_out() -> None:
    x = np.arange(1000.0)
    y = np.where(x == 0, np.nan, x)
    with canvas() as figure:
        axes = figure.subplots()
        axes.plot(x, y, label="long")
        axes.plot([0, 1], [0, 0], label="_frame")
        axes.errorbar([1, 2], [3, 4], [0.1, 0.1], label="bars")
    long, bars = marks(figure)
    assert len(long["points"]) == MOST
    assert long["points"][-1][2] == 999
    assert [p[2:] for p in bars["points"]] == [[1, 3], [2, 4]]


def test_a_matrix_on_axes_of_its_own_has_its_corners_there() -> None:
    with canvas(4, 3) as figure:
        axes = figure.subplots()
        axes.pcolormesh([10, 20, 40], [0.0, 0.5, 1.0, 1.5], np.arange(6.0).reshape(3, 2))
        axes.set(xlim=(10, 40), ylim=(0, 1.5))
        other = axes.pcolormesh(np.zeros((60, 60)))
        other.set_visible(False)
    (mark,) = marks(figure)
    frame = axes.get_window_extent()
    scale = 72 / figure.dpi
    left, bottom, right, top = mark["box"]
    assert (left, right) == pytest.approx((frame.x0 * scale, frame.x1 * scale), abs=0.06)
    assert (bottom, top) == pytest.approx(
        (216 - frame.y0 * scale, 216 - frame.y1 * scale), abs=0.06
    )
    assert mark["cells"] == [[0, 1], [2, 3], [4, 5]]
