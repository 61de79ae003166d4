"""The page in a real browser: it is quiet, asks nobody for anything, and answers a reader."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from unmix.papers.base import Drawing, Paper
from unmix.papers.standing import Standing
from unmix.papers.story import Explorer, Plane, Scene
from unmix.report.page import Section, write

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    # Not even the browser's own questions leave this machine.
    "--host-resolver-rules=MAP * ~NOTFOUND",
    *("--hide-scrollbars", "--enable-logging=stderr", "--virtual-time-budget=2000"),
)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium here: apt-get install chromium"
)

# What a reader does, and what must then be on the page; results go into a <pre>.
READ = """
<script>
const told = {};
const one = (selector) => document.querySelector(selector);
const press = (key, on) => on.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
const rows = () =>
  [...document.querySelectorAll("tr[data-status]")].filter((row) => !row.hidden).length;
told.rows = rows();
one('.filter button[data-status="refuted"]').click();
told.refuted = rows();
location.hash = "#fake-claim-confirmed";
told.width = document.documentElement.clientWidth;
told.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
const plot = one('.plot[data-marks="fake-curve"]');
press("ArrowRight", plot);
told.first = one("#tip").textContent;
press("ArrowLeft", plot);
told.last = one("#tip").textContent;
press("Escape", plot);
told.hidden = one("#tip").hidden;
const slider = one(".explorer input[type=range]");
slider.value = 2;
slider.dispatchEvent(new Event("input"));
told.radius = one(".explorer output").textContent.trim();
told.wrong = one(".explorer path.wrong").getAttribute("d").split("M").length - 1;
one(".explorer input[value='1']").click();
told.seed = one(".explorer output").textContent.trim();
const met = "svg:not([aria-hidden]), button, input, [tabindex]";
told.unnamed = [...document.querySelectorAll(met)].filter((e) =>
  !e.getAttribute("aria-label") && !e.getAttribute("aria-labelledby") && !e.textContent.trim()
  && !(e.labels && e.labels.length)).length;
told.asked = performance.getEntriesByType("resource").map((entry) => entry.name);
setTimeout(() => {
  told.shownAgain = rows();
  document.body.append(Object.assign(document.createElement("pre"),
    {id: "told", textContent: JSON.stringify(told)}));
}, 200);
</script>
"""


@pytest.fixture
def page(section: Section, paper: Paper, standings: list[Standing], tmp_path: Path) -> Path:
    """A page with everything that moves on it."""
    planes = tuple(
        Plane("2 labels", seed, 0.9, ("110", "101", "111"), (1.0, 0.9, 0.5 - seed / 4))
        for seed in (0, 1)
    )
    explorer = Explorer("How far?", "A plane.", "√d", (0.0, 0.2, 0.4), planes)
    story = (Scene("mixes", "It mixes", "So it does.", "curve"),)
    told = replace(
        section, paper=replace(paper, story=story), explorer=explorer, standings=standings
    )
    return write(tmp_path / "site", [told])


def browse(path: Path, tmp_path: Path, *flags: str) -> tuple[str, str]:
    """The page after its scripts ran, and what the browser complained of."""
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", *flags]
    done = subprocess.run(
        [*command, path.as_uri()], capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout, "\n".join(re.findall(r".*CONSOLE.*", done.stderr))


def read(dom: str) -> dict:
    found = re.search(r'<pre id="told">(.*?)</pre>', dom, re.S)
    assert found, "the script on the page did not come to its end"
    return json.loads(unescape(found[1]))


def test_a_reader_can_filter_point_and_move(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8").replace("</body>", READ + "</body>")
    page.write_text(text, encoding="utf-8")
    dom, complaints = browse(page, tmp_path, "--dump-dom", "--window-size=1200,900")
    assert complaints == ""
    told = read(dom)
    assert (told["rows"], told["refuted"], told["shownAgain"]) == (6, 1, 6)
    assert told["first"] == "gradient: 1 at radius 1"
    assert told["last"] == "decoupled: 4.4 at radius 3"
    assert told["hidden"] is True
    assert told["radius"] == "0.4 √d: 50 % of the points hold"
    assert told["seed"] == "0.4 √d: 25 % of the points hold"
    assert told["wrong"] == 2
    assert told["wide"] <= 0
    assert told["unnamed"] == 0


def test_a_phone_needs_no_sideways_scrolling_and_nobody_is_asked(
    page: Path, tmp_path: Path
) -> None:
    text = page.read_text(encoding="utf-8").replace("</body>", READ + "</body>")
    # No window is narrower than 500 pixels, so the page lies in a frame as wide as a phone.
    page.write_text(text, encoding="utf-8")
    outer = page.with_name("phone.html")
    outer.write_text(
        '<!doctype html><iframe src="index.html" width="360" height="800"></iframe>'
        "<script>onload = () => setTimeout(() => { const inner = frames[0].document;"
        "document.body.append(inner.getElementById('told')); }, 500);</script>",
        encoding="utf-8",
    )
    flags = ("--dump-dom", "--allow-file-access-from-files")
    dom, complaints = browse(outer, tmp_path, *flags)
    assert complaints == ""
    told = read(dom)
    assert told["width"] == 360
    assert told["wide"] <= 0
    assert told["asked"] == []


def test_it_prints(page: Path, tmp_path: Path) -> None:
    paper = tmp_path / "page.pdf"
    browse(page, tmp_path, f"--print-to-pdf={paper}")
    assert paper.read_bytes().startswith(b"%PDF")


def test_a_light_and_a_dark_picture_differ(page: Path, tmp_path: Path, curve: Drawing) -> None:
    shots = []
    for name, flags in {"light": (), "dark": ("--force-dark-mode",)}.items():
        shot = tmp_path / f"{name}.png"
        browse(page, tmp_path, f"--screenshot={shot}", "--window-size=800,600", *flags)
        shots.append(shot.read_bytes())
    assert shots[0] != shots[1]
