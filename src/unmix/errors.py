"""Every error a user can meet: what was expected, what came, and what to type next."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

SHOWN = 12


class UnmixError(Exception):
    """Base of all errors raised on purpose; `hint` says what to type next."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        message = "\n".join(line.removeprefix(": ") for line in self.message.split("\n"))
        return f"{message}\n  {self.hint}" if self.hint else message


class SpecError(UnmixError):
    """An experiment, or a part of one, that cannot be."""


class UnknownName(UnmixError):
    """A name that the catalog does not hold."""


class DataError(UnmixError):
    """Data that break their own declaration (shapes, labels, finite values)."""


class StoreError(UnmixError):
    """A run folder that cannot be read, written or trusted."""


class AttackError(UnmixError):
    """A threat model or an attack that cannot be carried out as asked."""


class CertificateError(UnmixError):
    """A certificate that cannot be computed as asked, or that contradicts itself."""


class Contradiction(CertificateError):
    """An attack below a certificate: one of the two is wrong. No report may pass over it."""


class Interrupted(UnmixError):
    """The user stopped the work; what was done is kept."""


def nearest(name: str, names: Iterable[str]) -> str:
    """A sentence that names the closest legal names, or all of them when none is close.

    Of many names only the first are told: an error fits on one screen.
    """
    options = sorted(names)
    close = get_close_matches(str(name), options, n=2, cutoff=0.55)
    if close:
        return "did you mean " + " or ".join(repr(c) for c in close) + "?"
    more = f" and {len(options) - SHOWN} more" if len(options) > SHOWN else ""
    return "expected one of: " + ", ".join(options[:SHOWN]) + more
