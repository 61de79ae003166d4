"""`unmix list` and `--help`: complete, quick to start, and readable by machines."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from unmix import asked, catalog
from unmix.experiment import Experiment
from unmix.papers.averaging import PAPER

HEAVY = {"torch", "numpy", "scipy", "matplotlib", "duckdb", "safetensors"}
LOADED = """
import sys
from unmix.cli import main
try:
    main()
except SystemExit as end:
    print(" ".join(sys.modules), file=sys.stderr)
    sys.exit(end.code)
"""


@pytest.mark.parametrize(
    "words",
    [["--help"], ["run", "--help"], ["list"], ["list", "claims", "--json"], ["list", "nosuch"]],
    ids=" ".join,
)
def test_nothing_heavy_is_loaded(words: list[str]) -> None:
    command = [sys.executable, "-c", LOADED, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == (2 if "nosuch" in words else 0)
    if done.returncode == 0:
        loaded = set(done.stderr.split())
        assert "unmix.cli" in loaded
        assert not loaded & HEAVY


def test_everything_is_listed(unmix) -> None:
    table = unmix("list", "--json").json
    assert list(table) == [*catalog.CATALOG, "claims", "figures"]
    for family in catalog.CATALOG:
        summaries = {name: catalog.find(family, name).summary for name in catalog.names(family)}
        assert table[family] == summaries
    papers = [catalog.load("papers", name) for name in catalog.names("papers")]
    assert list(table["claims"]) == [f"{p.name} {c.name}" for p in papers for c in p.claims]
    assert list(table["figures"]) == [f"{p.name} {f.name}" for p in papers for f in p.figures]


@pytest.mark.parametrize("family", [*catalog.CATALOG, "claims", "figures", "settings"])
def test_people_and_machines_are_told_the_same(unmix, family: str) -> None:
    said, data = unmix("list", family), unmix("list", family, "--json")
    assert (said.code, data.code, said.err, data.err) == (0, 0, "", "")
    ((name, members),) = data.json.items()
    head, *lines = said.out.splitlines()
    assert (name, head) == (family, f"{family}:")
    assert len(lines) == len(members) > 0
    for line, (member, summary) in zip(lines, members.items(), strict=True):
        # The names of claims hold blanks, so the summary is what is left of its line.
        assert line.startswith(f"  {member} ")
        assert line.removeprefix(f"  {member}").strip() == summary


def test_a_figure_that_is_never_drawn_says_why(unmix) -> None:
    figures = unmix("list", "figures", "--json").json["figures"]
    missing = [f for f in PAPER.figures if f.why_not]
    assert missing
    for entry in PAPER.figures:
        told = f"(not run: {entry.why_not})" in figures[f"averaging {entry.name}"]
        assert told is (entry in missing)


def test_a_listed_setting_is_a_spec(unmix) -> None:
    listed = unmix("list", "settings", "--json").json["settings"]
    wanted = []
    for paper in (catalog.load("papers", name) for name in catalog.names("papers")):
        both = paper.settings("paper") | paper.settings("quick")
        wanted += [f"{paper.name}:{name}" for name in both]
    assert list(listed) == wanted
    for name in ("averaging:binary", "averaging:k-class-h3", "averaging:snr=2,sigma"):
        experiment, summary = asked.experiment(name, [], ""), listed[name]
        assert experiment.net.kind in summary
        assert f"k={experiment.data.k} d={experiment.data.d}" in summary


def test_a_setting_has_quick_size_where_it_has_both() -> None:
    quick, full = PAPER.settings("quick"), PAPER.settings("paper")
    assert asked.experiment("averaging:binary", [], "") == quick["binary"].experiment
    assert "n=50000" not in quick
    assert asked.experiment("averaging:n=50000", [], "") == full["n=50000"].experiment


def test_specs_are_the_schema_of_an_experiment(unmix) -> None:
    document = unmix("list", "specs").json
    assert set(document["properties"]) == set(Experiment.model_fields)
    kinds = [m["properties"]["kind"]["const"] for m in document["properties"]["net"]["anyOf"]]
    assert kinds == catalog.names("nets")
    assert json.dumps(document) == json.dumps(unmix("list", "specs", "--json").json)


def test_help_names_every_verb_on_one_screen(unmix) -> None:
    said = unmix("--help")
    assert said.code == 0
    verbs = said.out.partition("Commands:")[2].splitlines()
    assert [line.split()[0] for line in verbs if line] == [
        *("list", "run", "fetch", "reproduce", "show", "cite")
    ]
    assert all(line.endswith(".") and not line.endswith("...") for line in verbs if line)
    assert len(said.out.splitlines()) <= 20
