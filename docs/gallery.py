"""Run every example and write the gallery: its source, what it prints, what it draws.

python docs/gallery.py FOLDER
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"
# The baseline at its full size takes minutes; the guide shows it without running it.
SKIPPED = {"five_lines.py"}


def main(folder: Path) -> None:
    """One page for each example, and an index of them."""
    folder.mkdir(parents=True, exist_ok=True)
    scripts = [path for path in sorted(EXAMPLES.glob("*.py")) if path.name not in SKIPPED]
    for script in scripts:
        (folder / f"{script.stem}.md").write_text(_page(script, folder), encoding="utf-8")
    names = "\n".join(script.stem for script in scripts)
    index = f"# Gallery\n\nEvery example was run for this page.\n\n```{{toctree}}\n{names}\n```\n"
    (folder / "index.md").write_text(index, encoding="utf-8")


def _page(script: Path, folder: Path) -> str:
    source = script.read_text(encoding="utf-8")
    title, _, words = (ast.get_docstring(ast.parse(source)) or script.stem).partition("\n")
    done = subprocess.run(
        [sys.executable, script], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{script} failed:\n{done.stderr}")
    parts = [f"# {title.rstrip('.')}", words.strip()]
    pictures = sorted(folder.glob(f"{script.stem}*.png"))
    parts += [f"![{title}]({picture.name})" for picture in pictures]
    code = source.partition('"""')[2].partition('"""')[2].strip()
    parts += [f"```python\n{code}\n```", f"```text\n{done.stdout.rstrip()}\n```"]
    return "\n\n".join(part for part in parts if part) + "\n"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
