"""How Sphinx builds the documentation: `make docs`."""

import unmix

project = "unmix"
author = "The unmix authors"
copyright = "the unmix authors"
version = release = unmix.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["build"]

html_theme = "furo"
html_title = "unmix"
html_show_sourcelink = False
html_show_copyright = False

# Shapes such as "R k d" are no types that a page could link to.
autodoc_typehints = "none"
autodoc_member_order = "bysource"


def _norms(app, what, name, thing, options, lines: list[str]) -> None:
    """|mu| in a docstring is a norm, and no substitution of reStructuredText."""
    lines[:] = [line.replace("|", "\\|") for line in lines]


def setup(app) -> None:
    """What Sphinx calls first."""
    app.connect("autodoc-process-docstring", _norms)
