"""What a paper states, item by item, and how places name an item.

A claim or a figure belongs to every item that its place names: "Lemmas 5.1, B.2" names two lemmas,
"Fig 3 left" and "Fig 3a" are parts of "Fig 3", "B.7 (2)" means whatever has the number B.7.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

from unmix.errors import SpecError

ItemKind = Literal[
    "theorem",
    "proposition",
    "lemma",
    "corollary",
    "conjecture",
    "definition",
    "assumption",
    "remark",
    "equation",
    "section",
    "figure",
    "table",
    "algorithm",
    "experiment",
]

# Every spelling of a kind in front of a number -> the one that is compared.
_KINDS = {
    "theorem": "thm",
    "thm": "thm",
    "proposition": "prop",
    "prop": "prop",
    "lemma": "lemma",
    "corollary": "cor",
    "cor": "cor",
    "conjecture": "conj",
    "conj": "conj",
    "definition": "def",
    "def": "def",
    "assumption": "assumption",
    "remark": "remark",
    "claim": "claim",
    "fact": "fact",
    "equation": "eq",
    "eqn": "eq",
    "eq": "eq",
    "section": "section",
    "appendix": "section",
    "figure": "fig",
    "fig": "fig",
    "table": "table",
    "algorithm": "alg",
    "alg": "alg",
    "step": "step",
    "experiment": "experiment",
}
_NUMBER = r"\(?(?P<number>(?:[A-Z]\.?)?\d+(?:\.\d+)*|[A-Z](?![\w']))(?P<panel>[a-z]?)(?![\w'])"
_NAMED = re.compile(rf"\b(?P<kind>{'|'.join(_KINDS)})(?P<many>s?)\.? {_NUMBER}", re.IGNORECASE)
_BARE = re.compile(rf"^{_NUMBER}")
_SOURCE = re.compile(r"^(?P<source>slides|code)\b,? ?", re.IGNORECASE)


@dataclass(frozen=True)
class Item:
    """A statement, figure or table of a paper, at a place such as "Thm 4.5" or "slides, Lemma 2".

    `restates` is the place of an item that says the same; `why_not` says why nothing is measured.
    """

    place: str
    kind: ItemKind
    title: str
    restates: str = ""
    why_not: str = ""

    def __post_init__(self) -> None:
        if len(mentions(self.place)) != 1:
            hint = 'a kind and a number, such as "Thm 4.5", "Fig 2" or "slides, Lemma 2"'
            raise SpecError(f"expected the place of one item, came {self.place!r}", hint)

    def named_in(self, place: str) -> bool:
        """Whether a place names this item, or a number alone that is this item's."""
        (mine,) = mentions(self.place)
        return bool({mine, mine.rpartition(" ")[2]} & mentions(place))


@dataclass(frozen=True)
class Finding:
    """What a text gets wrong or leaves open, and the claims whose verdicts show it."""

    title: str
    text: str
    claims: tuple[str, ...] = ()


@cache
def mentions(place: str) -> frozenset[str]:
    """What a place names, in one spelling: "Thms 4.5 and 4.7 (2)" is {"thm 4.5", "thm 4.7"}.

    Numbers after a plural inherit its kind; "slides," in front holds for all of them.
    """
    beside = _SOURCE.match(place)
    source = f"{beside['source'].lower()} " if beside else ""
    found, kind = set(), ""
    for piece in re.split(r"[,;] |\band |\bto ", place[beside.end() if beside else 0 :]):
        if named := _NAMED.search(piece):
            mine = f"{_KINDS[named['kind'].lower()]} "
            found.add(f"{source}{mine}{named['number']}")
            kind = mine if named["many"] else ""
        elif bare := _BARE.match(piece):
            found.add(f"{source}{kind}{bare['number']}")
    return frozenset(found)
