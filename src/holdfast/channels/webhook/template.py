"""Templates: text with fields of a payload in it, as `{a.b}`.  Nothing is evaluated: fields are looked up, that is all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from holdfast.channels.webhook import fields
from holdfast.channels.webhook.payload import Payload
from holdfast.errors import Rejected

RAW = "__raw__"
RAW_MAX = 4_000
ABSENT = "<missing>"
TEMPLATE_MAX = 20_000
# What is rendered is read by a model; one field may hold a whole body, and stand in many places.
TEXT_MAX = 200_000
_CUT = "\n[… cut: the text was too long …]"
_PIECES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A text, and the fields that were not there."""

    text: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A place in a template where something of the payload stands."""

    name: str
    path: fields.Path

    def value(self, payload: Payload) -> str | None:
        """Return what stands there as text; None where it is missing."""
        if self.name == RAW:
            return payload.raw[:RAW_MAX]
        if self.name == fields.EVENT_TYPE and payload.event_type is not None:
            return payload.event_type
        found = fields.find(payload.data, self.path)
        if found is fields.MISSING:
            return None
        return found if isinstance(found, str) else msgspec.json.encode(found).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A text that was understood once, to be filled in often."""

    pieces: tuple[str | Field, ...]

    def fields(self) -> Iterator[Field]:
        return (piece for piece in self.pieces if isinstance(piece, Field))

    def render(self, payload: Payload) -> Rendered:
        """Fill in what a payload holds; what it does not hold is said to be missing."""
        shown: list[str] = []
        missing: list[str] = []
        room = TEXT_MAX
        for piece in self.pieces:
            text = piece if isinstance(piece, str) else piece.value(payload)
            if text is None:
                text = ABSENT
                missing.append(piece.name if isinstance(piece, Field) else "")
            if len(text) > room:
                shown += (text[:room], _CUT)
                break
            shown.append(text)
            room -= len(text)
        return Rendered(text="".join(shown), missing=tuple(dict.fromkeys(missing)))


def parse(text: str) -> Template:
    """Understand a template.  Raises `Rejected` for whatever is not a plain field."""
    if len(text) > TEMPLATE_MAX:
        raise Rejected(f"is longer than {TEMPLATE_MAX} characters")
    pieces: list[str | Field] = []
    end = 0
    for match in _PIECES.finditer(text):
        pieces += (text[end : match.start()], _piece(match))
        end = match.end()
    pieces.append(text[end:])
    return Template(pieces=_joined(pieces))


def _piece(match: re.Match[str]) -> str | Field:
    if match[0] in ("{{", "}}"):
        return match[0][0]
    if match[1] is None:
        raise Rejected(f"has a single {match[0]} in it; write {match[0] * 2} where a brace is meant")
    name = match[1].strip()
    if name == RAW:
        return Field(name=RAW, path=())
    if not name:
        raise Rejected("has {} in it, which names no field; write {{}} where braces are meant")
    try:
        return Field(name=name, path=fields.parse(name))
    except Rejected as error:
        raise Rejected(f"{{{match[1]}}}: {error}; write {{{{ and }}}} where braces are meant") from None


def _joined(pieces: list[str | Field]) -> tuple[str | Field, ...]:
    joined: list[str | Field] = []
    for piece in pieces:
        if isinstance(piece, str) and joined and isinstance(joined[-1], str):
            joined[-1] += piece
        elif piece:
            joined.append(piece)
    return tuple(joined)
