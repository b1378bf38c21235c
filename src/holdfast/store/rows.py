"""Rows to domain objects and back, once, at the edge of the store."""

# JSON from outside is untyped until a rule in core gives it a meaning.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from holdfast.core import delivery, effects, events, segments, sessions, turns
from holdfast.core.events import Data, Event, UnknownEvent
from holdfast.core.journal import Entry
from holdfast.store.database import Row, clean

R = TypeVar("R")
_encoder = msgspec.json.Encoder()
_decode_json = msgspec.json.Decoder(dict[str, Any]).decode
_decode_texts = msgspec.json.Decoder(tuple[str, ...]).decode

SESSION = (
    "id, key, channel, owner, one_shot, source, state, title, parent_id, auto_reset_reason, end_reason, "
    "created_at, updated_at, ended_at, seq, turns, generation, strikes, pinned, archived, model"
)
TURN = (
    "id, session_id, ordinal, accepted_at, mode, delivers_later, remembers, reply_to, state, attempt, nth, fence, "
    "node_id, cause, error, generation, started_at, answered_at, steers, joined_to, parent_turn_id, verbatim, owner, "
    "retry_at"
)
ENTRY = "session_id, seq, turn_id, attempt, nth, kind, at, data"
CALL = "id, turn_id, session_id, name, effect, args, state, starts, result"
DELIVERY = (
    "id, turn_id, session_id, target, part, text, created_at, due_at, state, attempt, repeats, fence, receipt, error, "
    "settled_at, owner, extra"
)
SEGMENT = (
    "id, session_id, owner, first_generation, last_generation, created_at, due_at, state, attempt, fence, error, receipt, "
    "settled_at"
)

# Part of every claim: a node that is declared dead claims no more work, even before it knows.
NOT_GIVEN_UP = "NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = :node_id AND n.state = 'dead')"


def qualified(columns: str, table: str) -> str:
    """Return a list of columns with their table's name before each."""
    return ", ".join(f"{table}.{column}" for column in columns.split(", "))


def reader(kind: type[R], columns: str, **decoders: Callable[[Any], object]) -> Callable[[Row], R]:
    """Return a function that makes a record of a row with these columns, which are the names of its fields.

    Enumerations are decoded by their type; `decoders` have the columns that are kept in another form.
    """
    names = columns.split(", ")
    # msgspec looks a type up at its first use, and crashes if two threads do that at once.
    with contextlib.suppress(msgspec.ValidationError):
        msgspec.convert({}, kind)

    def read(row: Row) -> R:
        values: dict[str, Any] = dict(zip(names, row, strict=True))
        for name, decode in decoders.items():
            values[name] = decode(values[name])
        return msgspec.convert(values, kind)

    return read


def encode(value: object) -> str:
    """Return JSON that both databases can hold: text that is no text is replaced."""
    return _encode(value).decode()


def storable(event: Event) -> Event:
    """Return an event as it will come back from either database.

    What is shown live goes through here, so that a replay shows the same.
    """
    return events.decoded(event.kind, _encode(content_of(event)))[0]


def content_of(event: Event) -> object:
    """Return what is written of an event."""
    return event.data if isinstance(event, UnknownEvent) else event


def _encode(value: object) -> bytes:
    """Return JSON in which text that is no text, NUL or half a surrogate pair, is replaced."""
    try:
        encoded = _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(_clean(value))
    return _encoder.encode(_clean(value)) if b"\\u0000" in encoded else encoded


def _clean(data: object) -> object:
    match data:
        case str():
            return clean(data)
        case Mapping():
            return {clean(str(key)): _clean(value) for key, value in data.items()}
        case list() | tuple():
            return [_clean(value) for value in data]
        case msgspec.Struct():
            return _clean(msgspec.to_builtins(data))
        case _:
            return data


def data(text: str) -> Data:
    """Return a JSON object; empty if the text is none, so that the rest of its row can still be read."""
    try:
        return _decode_json(text)
    except msgspec.DecodeError:
        return {}


def event(kind: str, text: str) -> Event:
    """Return what an entry says whose content was read alone."""
    return events.decoded(kind, text)[0]


def source(of: sessions.Source) -> str:
    """Return where messages come from as a session keeps it."""
    return encode({name: getattr(of, name) for name in of.__slots__})


def texts(text: str) -> tuple[str, ...]:
    """Return a list of strings that `encode` wrote."""
    return _decode_texts(text)


session = reader(sessions.Session, SESSION, one_shot=bool, source=data, pinned=bool, archived=bool)
turn = reader(turns.Turn, TURN, delivers_later=bool, remembers=bool, steers=bool, verbatim=bool)


def entry(row: Row) -> Entry:
    session_id, seq, turn_id, attempt, nth, kind, at, text = row
    return Entry.read(session_id=session_id, seq=seq, turn_id=turn_id, attempt=attempt, nth=nth, kind=kind, at=at, data=text)


call = reader(effects.Call, CALL)
delivered = reader(delivery.Delivery, DELIVERY, extra=data)
segment = reader(segments.Segment, SEGMENT)
