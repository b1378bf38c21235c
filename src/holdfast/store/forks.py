"""A fork copies a conversation into a new one, so that each can go its own way and be deleted by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from msgspec import structs

from holdfast.core.events import ContextCompacted, Event, MessageJoined, TurnCompleted, TurnInterrupted
from holdfast.core.journal import Entry
from holdfast.core.quotas import Quota
from holdfast.core.sessions import Session
from holdfast.core.turns import SETTLED, Turn
from holdfast.errors import NotFound
from holdfast.ids import SessionId, TurnId, new_turn_id
from holdfast.store import journal, passages, quotas, rows
from holdfast.store.database import Run, RunMany, Transaction, Value

_SESSION = f"SELECT {rows.SESSION} FROM sessions WHERE id = :id"
_TURNS = f"SELECT {rows.TURN} FROM turns WHERE session_id = :id ORDER BY ordinal"
_ENTRIES = f"SELECT {rows.ENTRY} FROM entries WHERE session_id = :id ORDER BY seq"
_COPY_SESSION = """
    INSERT INTO sessions
        (id, key, channel, owner, one_shot, source, title, parent_id, created_at, updated_at, seq, turns, model, bytes)
    VALUES (:id, :key, :channel, :owner, 0, :source, :title, :parent_id, :created_at, :created_at, :seq, :turns, :model,
            (SELECT bytes FROM sessions WHERE id = :parent_id))
"""
_COPY_TURN = """
    INSERT INTO turns
        (id, session_id, ordinal, accepted_at, mode, delivers_later, remembers, state, attempt, nth, cause, error,
         started_at, answered_at, steers, joined_to, verbatim, owner)
    VALUES (:id, :session_id, :ordinal, :accepted_at, :mode, :delivers_later, :remembers, :state, :attempt, :nth, :cause,
            :error, :started_at, :answered_at, :steers, :joined_to, :verbatim, :owner)
"""

# What a call has done in the world it has done for the copy too.  One that was to be repeated under its own key would get
# another key here, so its outcome is unknown.
# A call that never started waits in the copy as it did before.
_COPY_CALLS = """
    INSERT INTO tool_calls (turn_id, id, session_id, name, effect, args, state, starts, result)
    SELECT CAST(:to AS TEXT), id, CAST(:session_id AS TEXT), name, effect, args,
           CASE WHEN state IN ('ok', 'error', 'unknown') OR effect = 'pure' OR starts = 0 THEN state ELSE 'unknown' END,
           starts, result
      FROM tool_calls WHERE turn_id = :turn_id
"""
_COPY_IMAGES = """
    INSERT INTO images (turn_id, number, media_type, data)
    SELECT CAST(:to AS TEXT), number, media_type, data FROM images WHERE turn_id = :turn_id
"""


def fork(
    session_id: SessionId,
    copy: Session,
    through: TurnId | None,
    before: TurnId | None = None,
    quota: Quota | None = None,
) -> Transaction[Session]:
    """Copy the settled turns of a session, up to and with `through` or only `before` one, to `copy`.  Raises `NotFound`."""
    found = yield Run(_SESSION, {"id": session_id})
    if not found:
        raise NotFound(f"there is no session {session_id}")
    if quota:
        yield from quotas.check_session(quota, copy.owner, like=session_id)
    turns = yield from _copied_turns(session_id, through, before)
    entries = [rows.entry(row) for row in (yield Run(_ENTRIES, {"id": session_id}))]
    ids = {turn.id: new_turn_id(copy.created_at) for turn in turns}
    kept = [entry for entry in entries if entry.turn_id in ids]
    copied = [_copied(entry, copy.id, ids, seq, kept) for seq, entry in enumerate(kept, 1)]
    chosen = rows.session(found[0]).model
    copy = replace(copy, seq=len(copied), turns=len(turns), parent_id=session_id, model=chosen)
    yield Run(_COPY_SESSION, {**params(copy), "seq": copy.seq, "turns": copy.turns})
    yield from passages.name(copy.id, copy.owner, copy.title)
    if turns:
        yield RunMany(_COPY_TURN, [_params(turn, copy, ids, ordinal) for ordinal, turn in enumerate(turns, 1)])
        yield RunMany(_COPY_CALLS, [{"to": ids[turn.id], "session_id": copy.id, "turn_id": turn.id} for turn in turns])
        yield RunMany(_COPY_IMAGES, [{"to": ids[turn.id], "turn_id": turn.id} for turn in turns])
    yield from journal.copy(copied)
    return copy


def _copied_turns(session_id: SessionId, through: TurnId | None, before: TurnId | None) -> Transaction[list[Turn]]:
    turns = {turn.id: turn for turn in (rows.turn(row) for row in (yield Run(_TURNS, {"id": session_id})))}
    for named in (through, before):
        if named is not None and named not in turns:
            raise NotFound(f"there is no turn {named} in session {session_id}")
    kept = list(turns.values())
    if through is not None:
        kept = [turn for turn in kept if turn.ordinal <= turns[through].ordinal]
    if before is not None:
        # A message that joined another turn is a part of that one.
        first = turns[turns[before].joined_to or before]
        kept = [turn for turn in kept if turn.ordinal < first.ordinal]
    return _settled(kept)


def _settled(turns: Sequence[Turn]) -> list[Turn]:
    settled = {turn.id for turn in turns if turn.state in SETTLED}
    # What joined a turn that is still in flight stands in that one, and is left out with it.
    return [turn for turn in turns if turn.id in settled and (turn.joined_to is None or turn.joined_to in settled)]


def _copied(entry: Entry, session_id: SessionId, ids: Mapping[TurnId, TurnId], seq: int, kept: Sequence[Entry]) -> Entry:
    event = _renamed(entry.event, ids, kept)
    stored = entry.stored if event == entry.event else None
    return replace(entry, session_id=session_id, turn_id=ids[entry.turn_id], seq=seq, event=event, stored=stored)


def _renamed(event: Event, ids: Mapping[TurnId, TurnId], kept: Sequence[Entry]) -> Event:
    """Return an event as the copy has it: with its own turns, and without hope for what may still arrive."""
    match event:
        case TurnCompleted(joined=joined):
            return structs.replace(event, joined=ids.get(joined, joined))
        case MessageJoined(turn_id=turn_id):
            return structs.replace(event, turn_id=ids.get(turn_id, turn_id))
        case ContextCompacted(through=through, after=after):
            # The entries of the copy are numbered anew, so its context begins behind as many as are left of those before.
            left = sum(1 for each in kept if each.seq <= after)
            return structs.replace(event, through=ids.get(through, through), after=left)
        case TurnInterrupted():
            return structs.replace(event, recovery="")
        case _:
            return event


def params(session: Session) -> dict[str, Value]:
    """Return what a new session is written with."""
    return {
        "id": session.id,
        "key": session.key,
        "channel": session.channel,
        "owner": session.owner,
        "source": rows.source(session.source),
        "title": session.title,
        "parent_id": session.parent_id,
        "created_at": session.created_at,
        "model": session.model,
    }


def _params(turn: Turn, copy: Session, ids: dict[TurnId, TurnId], ordinal: int) -> dict[str, Value]:
    return {
        "id": ids[turn.id],
        "session_id": copy.id,
        "ordinal": ordinal,
        "accepted_at": turn.accepted_at,
        "mode": turn.mode.value,
        "delivers_later": int(turn.delivers_later),
        "remembers": 0,
        "state": turn.state.value,
        "attempt": turn.attempt,
        "nth": turn.nth,
        "cause": turn.cause,
        "error": turn.error,
        "started_at": turn.started_at,
        "answered_at": turn.answered_at,
        "steers": int(turn.steers),
        "joined_to": ids.get(turn.joined_to) if turn.joined_to else None,
        "verbatim": int(turn.verbatim),
        "owner": copy.owner,
    }
