"""Damage: what a check of the file of a store has found, and what may still be done with it."""

from __future__ import annotations

from collections.abc import Sequence

# How SQLite words what it says of the order of the pages themselves: a new row could be written over another then.
_OF_THE_ORDER = ("freelist", "2nd reference to page", "bad ptr map", "failed to read ptrmap", "page never used")


def is_writable(found: Sequence[str]) -> bool:
    """Whether a store with this damage can still be written to: it is in some rows, and not in the order of the pages."""
    return not any(words in line.lower() for line in found for words in _OF_THE_ORDER)
