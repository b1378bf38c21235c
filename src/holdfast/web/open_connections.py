"""The open connections of each key and sign-in, so that they are closed when it is withdrawn."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Hashable, Set
from typing import Generic, TypeVar

from holdfast.web.protocol import Connection

R = TypeVar("R", bound=Hashable)


class OpenConnections(Generic[R]):
    """Open connections by their right: the key or sign-in that they are used with."""

    def __init__(self) -> None:
        self._held: dict[R, set[Connection]] = {}

    @property
    def rights(self) -> Set[R]:
        return self._held.keys()

    @contextlib.contextmanager
    def held(self, right: R, connection: Connection) -> Generator[None]:
        """Let a right use a connection, which is closed when the right is withdrawn."""
        held = self._held.setdefault(right, set())
        held.add(connection)
        try:
            yield
        finally:
            held.discard(connection)
            if not held and self._held.get(right) is held:
                del self._held[right]

    def withdraw(self, right: R) -> None:
        """Close every connection that is open by a right."""
        for connection in self._held.pop(right, ()):
            connection.abort()
