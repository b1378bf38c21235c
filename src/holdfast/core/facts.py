"""What is remembered about a person, with the turn that each thing came from."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from holdfast.core.legible import legible
from holdfast.ids import MemoryId, SegmentId, SessionId, TurnId

FACT_MAX_CHARS = 1_000
PROFILE_MAX_CHARS = 4_000
# About one person.  What comes when so much is known is left out, and the receipt says so.
FACTS_MAX = 2_000
# Credentials.  A model would be shown them in every later conversation.
_SECRETS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|\b(sk|pk|rk)[-_](live|test|proj|ant|or)?[-_A-Za-z0-9]{20,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bglpat-[-\w]{16,}"
    r"|\bxox[abeprs]-[-A-Za-z0-9]{10,}|\bAKIA[0-9A-Z]{16}\b|\bAIza[-\w]{30,}"
    r"|\beyJ[-\w]{8,}\.eyJ[-\w]{8,}\.[-\w]+|\b\d{6,}:AA[-\w]{30,}"
    r"|\b(hf|npm|whsec)_[-A-Za-z0-9_]{20,}|\bbearer\s+[-\w.~+/]{20,}|://[^\s/:@]{0,100}:[^\s/@]{3,100}@"
    r"|\b(password|passwd|passphrase|secret|api[ _-]?key|token)\b\s*(is|:|=)\s*\S{6,}",
    re.IGNORECASE,
)
# Control characters: an escape sequence could steer a terminal.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


class MemoryKind(StrEnum):
    """A person has many facts, and at most one profile: a few sentences that say who they are."""

    FACT = "fact"
    PROFILE = "profile"


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One thing that is remembered about `owner`: of a turn, and where it was extracted, of a segment."""

    id: MemoryId
    owner: str
    text: str
    created_at: int
    updated_at: int
    turn_id: TurnId | None = None
    kind: MemoryKind = MemoryKind.FACT
    segment_id: SegmentId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOrigin:
    """Where something that is remembered was said: in the turn `ordinal` of a conversation."""

    session_id: SessionId
    key: str
    title: str | None
    ordinal: int
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recollection:
    """Something that a provider recalls for a turn."""

    text: str
    id: str | None = None
    turn_id: TurnId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChanges:
    """What is to become of what is remembered about one person, all of it or none.

    `replaced` are by id; what is not there any more is left alone.  A `remark` is for the receipt.
    """

    added: Sequence[Memory] = ()
    replaced: Sequence[Memory] = ()
    removed: Sequence[MemoryId] = ()
    remark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoriesChanged:
    """What changes came to: what was known already, and what found no room, was not added."""

    added: int = 0
    replaced: int = 0
    removed: int = 0
    known: int = 0
    left_out: int = 0


def folded(text: str) -> str:
    """Return a text as it is compared: without case, punctuation at its ends, or more space than one between words."""
    return " ".join(text.casefold().split()).strip(" .,;:!?…")


def holds_secret(text: str) -> bool:
    """Return whether a text seems to hold a password or a key, in any spelling; they must not be remembered."""
    return _SECRETS.search(unicodedata.normalize("NFKC", legible(text))) is not None


def objection(text: str, kind: MemoryKind = MemoryKind.FACT) -> str | None:
    """Return why a text cannot be remembered, and what to do instead; None where it can."""
    longest = PROFILE_MAX_CHARS if kind is MemoryKind.PROFILE else FACT_MAX_CHARS
    if len(text) > longest:
        name = "the profile" if kind is MemoryKind.PROFILE else "a fact"
        return f"{name} has at most {longest:,} characters, and this has {len(text):,}; make it shorter"
    if holds_secret(text):
        return "that looks like a password or a key; secrets are not remembered, so leave it out"
    if _CONTROLS.search(text):
        return "it holds a control character; write it again without"
    return None


def receipt(changed: MemoriesChanged, remark: str = "") -> str:
    """Say what changes came to: "3 facts added, 1 changed, 2 known already"; a remark stands behind it."""
    amounts = (
        (changed.added, "added"),
        (changed.replaced, "changed"),
        (changed.removed, "removed"),
        (changed.known, "known already"),
        (changed.left_out, f"left out, as {FACTS_MAX:,} are kept at most"),
    )
    parts = [f"{amount:,} {what}" for amount, what in amounts if amount]
    if parts:
        first, _, what = parts[0].partition(" ")
        parts[0] = f"{first} {'fact' if first == '1' else 'facts'} {what}"
    told = ", ".join(parts) or "nothing new"
    return f"{told}; {remark}" if remark else told
