"""Formulas in ASCII become signs; words and names do not."""

from __future__ import annotations

import pytest

from unmix.papers.averaging import PAPER
from unmix.report.latex import escape
from unmix.report.signs import glyphs

FORMULAS = {
    "|mu_j|^2 <= sqrt(d)": "|μ_j|² ≤ √d",
    "sqrt(2n/k) ln(n/k) and sqrt(2n)/k": "√(2n/k) ln(n/k) and √(2n)/k",
    "-(1 - 1/sqrt 2) d": "−(1 − 1/√2) d",
    "(k-1) q + e^q - 1 = (k-1) kappa t": "(k−1) q + e^q − 1 = (k−1) κ t",
    "e^(-t^2/2)/2 >= 0": "e^(−t²/2)/2 ≥ 0",
    "<w, xi_i> - sigma_i -> 0": "⟨w, ξ_i⟩ − σ_i → 0",
    "l'_{i,s} != +-1": "ℓ′_{i,s} ≠ ±1",
    "Theta(sqrt(d/k)), not Omega(1)": "Θ(√(d/k)), not Ω(1)",
}
WORDS = (
    "the k-label net's two-layer twin",
    "e1-eta-necessary, lemma-5.1, thm-4.5.3-k and prop-a.6.1",
    "CIFAR-10 embeddings, not MNIST",
    "alphabet, sums and lambdas, the model's",
)


@pytest.mark.parametrize(("text", "signs"), FORMULAS.items())
def test_formulas_get_their_signs(text: str, signs: str) -> None:
    assert glyphs(text) == signs
    assert glyphs(signs) == signs


@pytest.mark.parametrize("text", WORDS)
def test_words_stay(text: str) -> None:
    assert glyphs(text) == text


def test_every_sign_has_its_latex() -> None:
    texts = [t for c in PAPER.claims for t in (c.statement, c.source.reading, c.quantity)]
    assert not [t for t in texts if "[U+" in escape(glyphs(t))]
