"""Rows to domain objects and back, once, at the edge of the store."""

# JSON from outside is untyped until a rule in core gives it a meaning.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.core import delivery, effects, events, segments, sessions, turns
from holdfast.core.events import Data, Event, UnknownEvent
from holdfast.core.journal import Entry
from holdfast.store.database import Row, clean

_encoder = msgspec.json.Encoder()
_decode_json = msgspec.json.Decoder(dict[str, Any]).decode
_decode_extra = msgspec.json.Decoder(delivery.Extra).decode
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


def encode(value: object) -> str:
    """Return JSON that both databases can hold."""
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


def session(row: Row) -> sessions.Session:
    (
        id_, key, channel, owner, one_shot, source, state, title, parent_id, auto_reset_reason, end_reason,
        created_at, updated_at, ended_at, seq, turns_, generation, strikes, pinned, archived, model,
    ) = row  # fmt: skip
    known = {name: value for name, value in data(source).items() if name in sessions.Source.__slots__}
    return sessions.Session(
        id=id_,
        key=key,
        channel=channel,
        owner=owner,
        one_shot=bool(one_shot),
        source=sessions.Source(**known),  # pyright: ignore[reportArgumentType] - Written by us from the same fields.
        state=sessions.SessionState(state),
        title=title,
        parent_id=parent_id,
        auto_reset_reason=auto_reset_reason,
        end_reason=end_reason,
        created_at=created_at,
        updated_at=updated_at,
        ended_at=ended_at,
        seq=seq,
        turns=turns_,
        generation=generation,
        strikes=strikes,
        pinned=bool(pinned),
        archived=bool(archived),
        model=model,
    )


def turn(row: Row) -> turns.Turn:
    (
        id_, session_id, ordinal, accepted_at, mode, delivers_later, remembers, reply_to, state, attempt, nth, fence,
        node_id, cause, error, generation, started_at, answered_at, steers, joined_to, parent_turn_id, verbatim, owner,
        retry_at,
    ) = row  # fmt: skip
    return turns.Turn(
        id=id_,
        session_id=session_id,
        ordinal=ordinal,
        accepted_at=accepted_at,
        mode=turns.Mode(mode),
        delivers_later=bool(delivers_later),
        remembers=bool(remembers),
        reply_to=reply_to,
        state=turns.TurnState(state),
        attempt=attempt,
        nth=nth,
        fence=fence,
        node_id=node_id,
        cause=cause,
        error=error,
        generation=generation,
        started_at=started_at,
        answered_at=answered_at,
        steers=bool(steers),
        joined_to=joined_to,
        parent_turn_id=parent_turn_id,
        verbatim=bool(verbatim),
        owner=owner,
        retry_at=retry_at,
    )


def entry(row: Row) -> Entry:
    session_id, seq, turn_id, attempt, nth, kind, at, text = row
    return Entry.read(session_id=session_id, seq=seq, turn_id=turn_id, attempt=attempt, nth=nth, kind=kind, at=at, data=text)


def call(row: Row) -> effects.Call:
    id_, turn_id, session_id, name, effect, args, state, starts, result = row
    return effects.Call(
        id=id_,
        turn_id=turn_id,
        session_id=session_id,
        name=name,
        effect=effects.Effect(effect),
        args=args,
        state=effects.CallState(state),
        starts=starts,
        result=result,
    )


def delivered(row: Row) -> delivery.Delivery:
    (
        id_, turn_id, session_id, target, part, text, created_at, due_at, state, attempt, repeats, fence, receipt, error,
        settled_at, owner, extra_,
    ) = row  # fmt: skip
    return delivery.Delivery(
        id=id_,
        turn_id=turn_id,
        session_id=session_id,
        target=target,
        part=part,
        text=text,
        created_at=created_at,
        due_at=due_at,
        state=delivery.DeliveryState(state),
        attempt=attempt,
        repeats=repeats,
        fence=fence,
        receipt=receipt,
        error=error,
        settled_at=settled_at,
        owner=owner,
        extra=delivery.NO_EXTRA if extra_ == "{}" else _decode_extra(extra_),
    )


def segment(row: Row) -> segments.Segment:
    id_, session_id, owner, first_generation, last_generation, created_at, due_at, state, attempt, fence, *rest = row
    error, receipt, settled_at = rest
    return segments.Segment(
        id=id_,
        session_id=session_id,
        owner=owner,
        first_generation=first_generation,
        last_generation=last_generation,
        created_at=created_at,
        due_at=due_at,
        state=segments.SegmentState(state),
        attempt=attempt,
        fence=fence,
        error=error,
        receipt=receipt,
        settled_at=settled_at,
    )
