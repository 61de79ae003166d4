"""The catalog keeps its promises, and modules import only from their left."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import unmix
from unmix import catalog
from unmix.errors import UnknownName, UnmixError, nearest
from unmix.spec import Spec

SOURCE = Path(unmix.__file__).parent

# From left to right; those of one column may not import each other.
ORDER = """
errors · catalog · spec · streams · balls · data · nets · perturbations · train · experiment ·
probes attacks certify · claims · style · papers · sealed · parquet · records · query · store ·
sweep · forecast · report · reproduction · campaign · citing · listing · terminal · showing ·
asked · cli · __main__
"""
COLUMN = {name: i for i, names in enumerate(ORDER.split("·")) for name in names.split()}
# These two name types of what they must not load.
TYPES_ONLY = {"papers/base.py", "cli.py"}

FILES = sorted(SOURCE.rglob("*.py"))
MEMBERS = [(family, name) for family in catalog.CATALOG for name in catalog.names(family)]


def layer(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Layers that a file imports, anywhere in it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found: set[str] = set()
    for node in _walk(tree, str(path.relative_to(SOURCE)) in TYPES_ONLY):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{name.name}" for name in node.names}
    parts = [name.split(".") for name in found]
    inner = {names[1] for names in parts if names[0] == "unmix" and len(names) > 1}
    return inner - {"__version__"}


def _walk(tree: ast.AST, skip_types: bool):
    for node in ast.iter_child_nodes(tree):
        types = isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        if types and skip_types:
            continue
        yield node
        yield from _walk(node, skip_types)


@pytest.mark.parametrize("path", FILES, ids=[str(p.relative_to(SOURCE)) for p in FILES])
def test_a_module_imports_only_from_its_left(path: Path) -> None:
    mine = layer(path)
    if mine == "__init__":
        assert imported(path) == set()
        return
    assert mine in COLUMN, f"{mine} has no place in the order of the house"
    wrong = {name for name in imported(path) if name != mine and not COLUMN[name] < COLUMN[mine]}
    assert wrong == set(), f"{mine} must not import {wrong}"


def test_every_layer_of_the_order_exists() -> None:
    assert {layer(path) for path in FILES} - {"__init__"} == set(COLUMN)


def test_the_check_of_imports_sees_them(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "SOURCE", tmp_path)
    text = "def f():\n    from unmix.store import Store\nif TYPE_CHECKING:\n    import unmix.cli\n"
    for name in ("nets.py", "cli.py"):
        (tmp_path / name).write_text(f"from unmix import style\nimport torch\n{text}")
    assert imported(tmp_path / "nets.py") == {"style", "store", "cli"}
    assert imported(tmp_path / "cli.py") == {"style", "store"}


@pytest.mark.parametrize(
    "code",
    [
        "import unmix; dir(unmix)",
        "import unmix.cli",
        "from unmix.listing import listing; assert len(listing()['claims']) > 50",
        "from unmix import catalog; catalog.names('nets')",
    ],
)
def test_looking_around_costs_no_torch(code: str) -> None:
    heavy = ("torch", "scipy", "matplotlib", "duckdb")
    script = (
        f"{code}\nimport sys, json\nprint(json.dumps([m for m in {heavy} if m in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == []


@pytest.mark.parametrize(("family", "name"), MEMBERS)
def test_every_entry_loads_and_knows_its_name(family: str, name: str) -> None:
    entry = catalog.find(family, name)
    assert entry.target.startswith(f"unmix.{family}.")
    assert entry.summary.strip() == entry.summary != ""
    member = entry.load()
    if isinstance(member, type) and issubclass(member, Spec):
        assert member.model_fields["kind"].default == name
        assert member.parse(member().plain()) == member()
    assert (getattr(member, "__doc__", "") or "").strip()


def test_no_member_is_listed_twice() -> None:
    targets = [e.target for members in catalog.CATALOG.values() for e in members.values()]
    assert len(targets) == len(set(targets))


@pytest.mark.parametrize(
    ("family", "name", "hint"),
    [
        ("nets", "two_layer", "did you mean 'two-layer'?"),
        ("probes", "margin", "did you mean 'margins'?"),
        ("attacks", "pgd-l2", "did you mean 'pgd'"),
        ("net", "two-layer", "did you mean 'nets'?"),
        ("train", "zzz", "expected one of: adam, contrast-descent, "),
        ("nets", ["two-layer"], "did you mean 'two-layer'?"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(family: str, name, hint: str) -> None:
    with pytest.raises(UnknownName) as caught:
        catalog.load(family, name)
    assert hint in caught.value.hint


def test_errors_put_the_hint_on_its_own_line() -> None:
    error = UnmixError(": what came\n: and more", "type this")
    assert str(error) == "what came\nand more\n  type this"
    assert str(UnmixError("plain")) == "plain"


def test_nearest_names_two_close_ones_or_all() -> None:
    assert nearest("sigma_x", ["sigma_w", "sigma_b", "m"]) in (
        "did you mean 'sigma_w' or 'sigma_b'?",
        "did you mean 'sigma_b' or 'sigma_w'?",
    )
    assert nearest("q", ["b", "a"]) == "expected one of: a, b"


def test_public_names_are_there() -> None:
    for name in unmix.__all__:
        assert getattr(unmix, name).__module__.startswith("unmix.")
        assert name in dir(unmix)
    with pytest.raises(AttributeError, match="no attribute 'Clutsers'"):
        _ = unmix.Clutsers
