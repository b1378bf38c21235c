"""Ownership: what belongs to another owner is not there for the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.core.sessions import Session
from holdfast.errors import NotFound
from holdfast.ids import SessionId, TurnId
from holdfast.operations.caller import Caller

if TYPE_CHECKING:
    # A command that asks a running gateway does not import these.
    from holdfast.core.turns import Turn
    from holdfast.store.store import Store


async def own_session(store: Store, caller: Caller, session_id: SessionId, missing: str = "") -> Session:
    """Return a session of the caller.  Raises `NotFound`, in the words of `missing` where it is about something in it."""
    session = await store.sessions.get(session_id)
    if session.owner != caller.owner:
        raise NotFound(missing or f"there is no session {session_id}")
    return session


async def own_turn(store: Store, caller: Caller, turn_id: TurnId) -> Turn:
    """Return a turn of the caller.  Raises `NotFound`."""
    turn = await store.turns.get(turn_id)
    await own_session(store, caller, turn.session_id, f"there is no turn {turn_id}")
    return turn
