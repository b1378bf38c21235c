"""Peers: the clients that have connections open, and which of these connections are idle.

When a peer opens more connections than it may, its connection that has been idle for longest is closed.  A user of this
machine is one peer at all of its addresses; every other address is a peer by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Peer:
    """The connections of one peer; those that are idle with what closes them, the oldest first."""

    count: int = 0
    idle: dict[Hashable, Callable[[], None]] = field(default_factory=dict[Hashable, Callable[[], None]])


class Peers:
    """Every peer that has a connection.  `most` is how many one may have; 0 is any number."""

    def __init__(self, most: int = 0) -> None:
        self._most = most
        self._peers: dict[str, _Peer] = {}

    def opened(self, name: str) -> bool:
        """Count a connection in, closing an idle one of the same peer for it; return whether it may stay."""
        peer = self._peers.setdefault(name, _Peer())
        peer.count += 1
        if not self._most or peer.count <= self._most:
            return True
        for connection, close in peer.idle.items():
            del peer.idle[connection]
            close()
            return True
        return False

    def closed(self, name: str, connection: Hashable) -> None:
        """Count a connection out."""
        peer = self._peers[name]
        peer.idle.pop(connection, None)
        peer.count -= 1
        if not peer.count:
            del self._peers[name]

    def rests(self, name: str, connection: Hashable, close: Callable[[], None]) -> None:
        """Mark a connection as idle; `close` closes it."""
        if peer := self._peers.get(name):
            peer.idle[connection] = close

    def works(self, name: str, connection: Hashable) -> None:
        """Mark a connection as in use."""
        if peer := self._peers.get(name):
            peer.idle.pop(connection, None)


def peer_of(address: str, uid: int | None) -> str:
    """Return the peer of a connection: its user where that is known, since all users of a machine share an address."""
    return address if uid is None else f"uid {uid}"
