"""Conversations as clients of the API name them: by the key of a session, or by its id."""

from __future__ import annotations

from holdfast.core.sessions import SessionState
from holdfast.errors import IllegalMove
from holdfast.ids import SessionId
from holdfast.operations.sessions import Sessions, looks_like_id
from holdfast.web.answers import Refused
from holdfast.web.requests import ID_MAX


async def conversation(sessions: Sessions, named: str) -> str:
    """Return the key under which the next message of a session is taken in.  Raises `NotFound`, or `Refused` for no name."""
    if not named.isprintable() or len(named) > ID_MAX:
        hint = "leave it out for a session of its own, or name one"
        raise Refused(400, "bad_id", f"the name of a session has printable characters only, {ID_MAX} at most", hint)
    if not looks_like_id(named):
        return named
    session = await sessions.get(SessionId(named))
    if session.one_shot and session.state is not SessionState.OPEN:
        raise IllegalMove(session.id, session.state, "take another message")
    return session.key
