"""The lingering close of a connection whose client is still sending when the answer is out.

The kernel resets a connection that is closed while bytes still arrive, and a client that is reset may never read its
answer.  So only the sending side is closed first, and what arrives is read and dropped, for a short time.
"""

from __future__ import annotations

import asyncio
from typing import Any

LINGER_S = 5.0
# More than the largest body that a route takes, so that a client that sends somewhat too much reads why it is refused.
LINGER_MAX = 64 * 1024 * 1024


class Lingering(asyncio.Protocol):
    """A connection that is closed in this way.  It still counts as one of `connections`, and keeps nothing of what it reads.

    HTTP is over here: to the protocol that answered it stands for a transport that is closing.
    """

    def __init__(self, transport: asyncio.Transport, connections: set[Any], loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._connections = connections
        self._left = LINGER_MAX
        self._timer = loop.call_later(LINGER_S, transport.abort)
        connections.add(self)
        transport.set_protocol(self)
        transport.resume_reading()
        try:
            transport.write_eof()
        except OSError:
            # The client reset the connection, and the loop does not know it yet.
            transport.abort()

    def data_received(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - How it ended does not matter.
        self._timer.cancel()
        self._connections.discard(self)

    def shutdown(self) -> None:
        """End at once, as the server asks of each of its connections when it closes."""
        self._transport.close()

    def write(self, data: bytes) -> None:
        """Drop what is written after the end."""

    def close(self) -> None:
        """Do nothing: it is closing."""

    def is_closing(self) -> bool:
        return True

    def abort(self) -> None:
        self._transport.abort()
