"""Conversations as clients of the API name them: by the key of a session, or by its id."""

from __future__ import annotations

from holdfast.core.sessions import State
from holdfast.desk.port import Host, looks_like_id
from holdfast.errors import IllegalMove
from holdfast.ids import SessionId


async def conversation(desk: Host, named: str) -> str:
    """Return the key under which the next message of a session is taken in.  Raises `NotFound`."""
    if not looks_like_id(named):
        return named
    session = await desk.session(SessionId(named))
    if session.one_shot and session.state is not State.OPEN:
        raise IllegalMove(session.id, session.state, "take another message")
    return session.key
