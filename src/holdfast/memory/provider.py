"""The base class of a memory provider, with defaults for everything but `commit`.

A plugin offers one in the entry-point group `holdfast.memory`.  The entry point names a callable that takes the `[memory]`
table of the configuration (`holdfast.config.MemoryConfig`) and returns a provider; its name is what stands in
`memory.provider`:

    [project.entry-points."holdfast.memory"]
    elephant = "holdfast_elephant:provider"
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from holdfast.core.facts import Recollection
from holdfast.core.segments import Segment, SpokenMessage
from holdfast.core.sessions import Session
from holdfast.errors import Rejected
from holdfast.ids import SessionId


class Provider(ABC):
    """A provider that recalls nothing.  See `holdfast.ports.MemoryProvider` for the contract of each method."""

    mirrors = False

    def __init__(self, owner: str) -> None:
        self.owner = owner

    @abstractmethod
    async def commit(self, session: Session, segment: Segment, messages: Sequence[SpokenMessage]) -> str: ...

    async def recall(self, session: Session, query: str, limit: int) -> Sequence[Recollection]:  # noqa: ARG002 - A default.
        return ()

    async def note(self, session: Session, segment: Segment, messages: Sequence[SpokenMessage]) -> None:  # noqa: B027 - A default.
        """Do nothing before the commit."""

    async def forget(
        self,
        person: str,  # noqa: ARG002 - A default.
        *,
        memory_id: str | None = None,  # noqa: ARG002 - A default.
        session_id: SessionId | None = None,  # noqa: ARG002 - A default.
    ) -> int:
        raise Rejected(f"{self.owner} cannot be told to forget; delete it there")

    async def check(self) -> str:
        return "nothing to check"

    async def close(self) -> None:  # noqa: B027 - A default.
        """Do nothing."""
