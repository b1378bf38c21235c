"""Presence: which connections are open by whose right, so that they end with it."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Hashable, Set
from typing import Generic, TypeVar

from holdfast.web.protocol import Connection

R = TypeVar("R", bound=Hashable)


class Presence(Generic[R]):
    """Connections by the right that they are used by."""

    def __init__(self) -> None:
        self._held: dict[R, set[Connection]] = {}

    @property
    def rights(self) -> Set[R]:
        return self._held.keys()

    @contextlib.contextmanager
    def held(self, right: R, connection: Connection) -> Generator[None]:
        """Let a connection be used by a right: it is closed when that is withdrawn."""
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
