"""Findings: what a person said of themselves, or wishes for later, as it was found in a talk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.core.facts import MemoryKind, objection
from holdfast.core.legible import legible
from holdfast.core.redaction import MASK
from holdfast.ids import MemoryId, TurnId


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is remembered that a talk may be about: the profile, and facts by their ids, those that matter most first."""

    profile: str = ""
    facts: Mapping[MemoryId, str] = field(default_factory=dict[MemoryId, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that a person said in a turn.  With an `id` it takes the place of that fact; without a text it ends it."""

    turn_id: TurnId
    text: str = ""
    id: MemoryId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What was found.  A `profile` is there only where it is a new one.

    What was claimed and rests on nothing that the person said is not found, only counted.
    """

    found: tuple[Finding, ...] = ()
    profile: str | None = None
    unfounded: int = 0


def rememberable(value: object, kind: MemoryKind = MemoryKind.FACT) -> str:
    """Return a text that can be remembered, on one line; nothing where it cannot."""
    text = legible(value) if isinstance(value, str) else ""
    return "" if MASK in text or objection(text, kind) else text
