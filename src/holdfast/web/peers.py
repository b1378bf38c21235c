"""Peers: who has connections open, and which of them nobody uses.

An address that opens more connections than it may loses those first that it has left idle for longest.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Peer:
    """The connections of one address; those that are idle with what closes them, the oldest first."""

    count: int = 0
    idle: dict[Hashable, Callable[[], None]] = field(default_factory=dict[Hashable, Callable[[], None]])


class Peers:
    """Every address that has a connection.  `most` is how many one may have; 0 is any number."""

    def __init__(self, most: int = 0) -> None:
        self._most = most
        self._peers: dict[str, _Peer] = {}

    def opened(self, address: str) -> bool:
        """Count a connection in, closing an idle one of the same address for it; return whether it may stay."""
        peer = self._peers.setdefault(address, _Peer())
        peer.count += 1
        if not self._most or peer.count <= self._most:
            return True
        for connection, close in peer.idle.items():
            del peer.idle[connection]
            close()
            return True
        return False

    def closed(self, address: str, connection: Hashable) -> None:
        """Count a connection out."""
        peer = self._peers[address]
        peer.idle.pop(connection, None)
        peer.count -= 1
        if not peer.count:
            del self._peers[address]

    def rests(self, address: str, connection: Hashable, close: Callable[[], None]) -> None:
        """Remember that nothing is asked for on a connection now, and how it is closed."""
        if peer := self._peers.get(address):
            peer.idle[connection] = close

    def works(self, address: str, connection: Hashable) -> None:
        """Remember that something is asked for on a connection."""
        if peer := self._peers.get(address):
            peer.idle.pop(connection, None)
