"""Formulas that claims and notes spell out in ASCII, as a reader expects them."""

from __future__ import annotations

import re

# Pattern and sign, in the order of replacement.
_SIGNS: tuple[tuple[str, str], ...] = (
    (r"<=", "≤"),
    (r">=", "≥"),
    (r"!=", "≠"),
    (r"\+-", "±"),
    (r"->", "→"),
    (r"<([^<>]+, [^<>]+)>", r"⟨\1⟩"),
    (r"\bsqrt ?(?=[\w(])", "√"),
    (r"√\((\w|\d+)\)", r"√\1"),
    (r"\^2(?!\w)", "²"),
    (r"(?<= )-(?= )|(?<![\w)'’-])-(?=[\w(√])|(?<=\b\w)-(?=\d)", "−"),
    (r"(?<![\w'’])l'", "ℓ′"),
)
_NAMES = "alpha beta gamma delta epsilon eta kappa lambda mu pi rho sigma xi Delta Theta Omega Phi"
_GREEK = dict(zip(_NAMES.split(), "αβγδεηκλμπρσξΔΘΩΦ", strict=True))


def glyphs(text: str) -> str:
    """A formula in ASCII as a reader expects it: |mu|^2 <= sqrt(d) becomes |μ|² ≤ √d."""
    for pattern, sign in _SIGNS:
        text = re.sub(pattern, sign, text)
    # A name of a claim, such as e1-eta-necessary, keeps its letters.
    return re.sub(rf"(?<![\w-])({'|'.join(_GREEK)})(?![a-zA-Z-])", lambda m: _GREEK[m[1]], text)
