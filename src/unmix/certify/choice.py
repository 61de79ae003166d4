"""Which certificate a net gets where none is named."""

from __future__ import annotations

from unmix.certify.base import Certifier, Question
from unmix.certify.exact import ExactL2
from unmix.certify.softmax import PairwiseLipschitz


def best(question: Question) -> Certifier:
    """The exact radius where there is a method for it, else the best bound."""
    return PairwiseLipschitz() if question.reading == "difference" else ExactL2()
