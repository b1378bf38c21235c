"""Findings: the facts and wishes of a person that were found in a conversation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.core.facts import MemoryKind, objection
from holdfast.core.legible import legible
from holdfast.core.redaction import MASK
from holdfast.ids import MemoryId, TurnId


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The memories that a conversation may be about: the profile, and facts by id, the most relevant first."""

    profile: str = ""
    facts: Mapping[MemoryId, str] = field(default_factory=dict[MemoryId, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class FactFinding:
    """A fact from a turn.  With an `id` it replaces that fact; with an `id` and no text it removes it."""

    turn_id: TurnId
    text: str = ""
    id: MemoryId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The result of reading a part.

    `profile` is set only if it is new.  `unfounded` counts claims that the person's own words do not support.
    """

    found: tuple[FactFinding, ...] = ()
    profile: str | None = None
    unfounded: int = 0


def rememberable(value: object, kind: MemoryKind = MemoryKind.FACT) -> str:
    """Return a text that can be remembered, on one line; empty if it cannot be."""
    text = legible(value) if isinstance(value, str) else ""
    return "" if MASK in text or objection(text, kind) else text
