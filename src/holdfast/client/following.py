"""Following a session of the gateway that runs: its events, also across restarts of the gateway."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import cast

from holdfast.client.absence import Absence
from holdfast.client.link import Link, at
from holdfast.client.proxy import Proxy
from holdfast.core.journal import Entry
from holdfast.errors import Unavailable
from holdfast.ids import SessionId
from holdfast.operations.sessions import Sessions


class _SessionsProxy(Proxy):
    """The sessions of the gateway, with what is a stream and therefore no operation."""

    async def follow(self, session_id: SessionId, after: int = 0) -> AsyncGenerator[Entry]:
        """Yield every entry after a cursor.  A gateway that restarts in between is waited for."""
        absence = Absence(self._absent)
        while True:
            with contextlib.suppress(Unavailable):
                stream = self._link.events(at("sessions", session_id, "events"), after, absence.over)
                async with contextlib.aclosing(stream) as entries:
                    async for entry in entries:
                        after = entry.seq
                        yield entry
            await absence.wait()


def sessions_proxy(link: Link, absent: Callable[[], None]) -> Sessions:
    """Return the sessions of the gateway behind a link; `absent` is called when a caller has to wait for it."""
    return cast("Sessions", _SessionsProxy(Sessions, link, absent))
