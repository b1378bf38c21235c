"""The keys of messages, by which a repeat is recognized, and how far polled channels have been read."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.core.intake import Cursor, Once
from holdfast.errors import KeyReused, Repeated
from holdfast.ids import SessionId, TurnId
from holdfast.store.database import Add, Run, Transaction

_REMEMBER = """
    INSERT INTO dedupe (key, body_hash, turn_id, session_id, accepted_at)
    VALUES (:key, :body_hash, :turn_id, :session_id, :now)
    ON CONFLICT (key) DO NOTHING RETURNING key
"""
_FIND = "SELECT body_hash, turn_id, session_id, accepted_at FROM dedupe WHERE key = :key"
_SAVE_CURSOR = """
    INSERT INTO cursors (channel, position) VALUES (:channel, :position)
    ON CONFLICT (channel) DO UPDATE SET position = excluded.position
"""
_CURSOR = "SELECT position FROM cursors WHERE channel = :channel"


class First(NamedTuple):
    """What a key was first used for."""

    turn_id: TurnId
    session_id: SessionId
    accepted_at: int


def remember(key: str, body_hash: str, turn_id: TurnId, session_id: SessionId, now_ms: int) -> Transaction[First | None]:
    """Remember a key; returns what it was first used for if it came before.  Raises `KeyReused` where the body differs."""
    if (yield remembering(key, body_hash, turn_id, session_id, now_ms)):
        return None
    return (yield from first(key, body_hash))


def remembering(key: str, body_hash: str, turn_id: TurnId, session_id: SessionId, now_ms: int) -> Run:
    """Return the statement that remembers a key; it finds no row where the key came before."""
    params = {"key": key, "body_hash": body_hash, "turn_id": turn_id, "session_id": session_id, "now": now_ms}
    return Run(_REMEMBER, params, needed=True)


def first(key: str, body_hash: str) -> Transaction[First]:
    """Return what a key that came before was first used for.  Raises `KeyReused` where the body differs."""
    ((first_hash, *first),) = yield Run(_FIND, {"key": key})
    if first_hash != body_hash:
        raise KeyReused(key, first[0])
    return First(*first)


def find(key: str) -> Transaction[First | None]:
    """Return what a key was first used for, if it ever was."""
    found = yield Run(_FIND, {"key": key})
    return First(*found[0][1:]) if found else None


def once(request: Once | None, session_id: SessionId, now_ms: int) -> Transaction[None]:
    """Remember a request.  Raises `Repeated` if it came before."""
    if request is None:
        return
    if request.key is not None:
        # There is no turn, so the row says that its key was a command.
        subject = TurnId(f"command:{request.key}")
        if (yield from remember(request.key, request.body_hash, subject, session_id, now_ms)):
            raise Repeated(f"{request.key!r} came before, and was done then")
    if request.cursor:
        yield from save_cursor(request.cursor)


def save_cursor(cursor: Cursor) -> Transaction[None]:
    """Remember how far a channel has been read."""
    yield Add(_SAVE_CURSOR, [{"channel": cursor.channel, "position": cursor.position}])


def cursor(channel: str) -> Transaction[str | None]:
    """Return how far a channel has been read."""
    found = yield Run(_CURSOR, {"channel": channel})
    return found[0][0] if found else None
