"""Ownership: what belongs to another owner is not there for the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.core.sessions import Session
from holdfast.errors import NotFound
from holdfast.ids import SessionId
from holdfast.operations.caller import Caller

if TYPE_CHECKING:
    # A command that asks a running gateway does not import it.
    from holdfast.store.store import Store


async def own_session(store: Store, caller: Caller, session_id: SessionId, missing: str = "") -> Session:
    """Return a session of the caller.  Raises `NotFound`, in the words of `missing` where it is about something in it."""
    session = await store.sessions.get(session_id)
    if session.owner != caller.owner:
        raise NotFound(missing or f"there is no session {session_id}")
    return session
