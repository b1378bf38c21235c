"""Templates: text with fields of a payload, written `{a.b}`.  Fields are only looked up; nothing is evaluated."""

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
# A model reads the result.  One field may hold the whole body, and be used many times.
TEXT_MAX = 200_000
_CUT = "\n[… cut: the text was too long …]"
_PIECES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A filled template, and the fields that the payload does not have."""

    text: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field in a template."""

    name: str
    path: fields.Path

    def value(self, payload: Payload) -> str | None:
        """Return the value of the field as text; None if it is missing."""
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
    """A parsed template."""

    pieces: tuple[str | Field, ...]

    def fields(self) -> Iterator[Field]:
        return (piece for piece in self.pieces if isinstance(piece, Field))

    def render(self, payload: Payload) -> Rendered:
        """Fill the template from a payload; a field that is not there becomes `<missing>`."""
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
    """Parse a template.  Raises `Rejected` for anything in braces but a plain field."""
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
