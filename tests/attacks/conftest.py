"""Attacks call small functions very often; their shapes are checked in the conformance tests."""

import pytest


@pytest.fixture(autouse=True)
def _unchecked(unchecked: None) -> None:
    """In every test of this folder."""
