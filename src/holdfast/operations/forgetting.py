"""Forgetting: here, and at the providers that keep something of it as well."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.clock import Clock
from holdfast.core.facts import Memory, MemoryChanges
from holdfast.core.segments import BUILTIN, DIRTY, Segment, SegmentState
from holdfast.errors import Rejected
from holdfast.ids import MemoryId, SessionId

if TYPE_CHECKING:
    # A command that asks a running gateway does not import these.
    from holdfast.ports import Bindings, MemoryProvider
    from holdfast.store.store import Store

# The ids that one request may name, and how long each may be.
IDS_MAX = 500
ID_MAX = 200
# A provider may have been given these, although it never confirmed it.
_GIVEN = frozenset({SegmentState.COMMITTED, SegmentState.COMMITTING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgetting:
    """What is to be forgotten: memories by their ids, all that came from a session, or everything."""

    ids: tuple[str, ...] = ()
    session_id: SessionId | None = None
    everything: bool = False

    def __post_init__(self) -> None:
        if sum((bool(self.ids), bool(self.session_id), self.everything)) != 1:
            raise Rejected("say what to forget: ids, a session_id, or everything")
        if len(self.ids) > IDS_MAX or not all(each.isprintable() and len(each) <= ID_MAX for each in self.ids):
            raise Rejected(f"ids have printable characters only, {ID_MAX} at most, and there are {IDS_MAX} at once at most")


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """How much is not remembered any more: here, and `elsewhere`, by other providers.

    `missing` are unknown ids.  `owed` segments will be remembered once they are committed.
    `problems` say what could not be forgotten elsewhere.
    """

    forgotten: int
    elsewhere: int = 0
    missing: Sequence[str] = ()
    owed: int = 0
    problems: Sequence[str] = ()


def elsewhere(bindings: Bindings | None) -> MemoryProvider | None:
    """Return the current provider if it keeps what it is given outside this store."""
    current = bindings.current if bindings else None
    return current if current and current.owner != BUILTIN else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Eraser:
    """Removes what is remembered about a person.

    `ask` waits for a provider with a timeout.  `told` words its errors, and `named` its name, as this person may see them.
    """

    store: Store
    person: str
    bindings: Bindings | None
    clock: Clock
    ask: Callable[[Awaitable[int]], Awaitable[int]]
    told: Callable[[Exception], str]
    named: Callable[[str], str]

    async def memories(self, ids: Sequence[str]) -> Forgotten:
        """Forget memories by their ids: our own, or those of a provider."""
        provider = elsewhere(self.bindings)
        here, there, missing, problems = 0, 0, list[str](), list[str]()
        for each in dict.fromkeys(ids):
            if await self.store.memories.remove(self.person, MemoryId(each)):
                here += 1
                continue
            gone = await self._at(provider, problems, memory_id=each) if provider else 0
            if gone is None:
                # The caller should not wait for a timeout with each id.
                provider = None
            there += gone or 0
            if not gone:
                missing.append(each)
        return Forgotten(forgotten=here, elsewhere=there, missing=missing, problems=problems)

    async def session(self, session_id: SessionId) -> Forgotten:
        """Forget all that came from a session."""
        here = await self._here(await self.store.memories.of_session(self.person, session_id))
        segments = await self.store.segments.of_session(session_id)
        there, problems = 0, list[str]()
        for binding in self._holders(segments):
            if provider := self.bindings.of(binding) if self.bindings else None:
                there += await self._at(provider, problems, session_id=session_id) or 0
            else:
                problems.append(f"{self.named(binding)} cannot be reached from here; delete it there")
        owed = sum(each.state in DIRTY for each in segments)
        return Forgotten(forgotten=here, elsewhere=there, owed=owed, problems=problems)

    async def everything(self, memories: Sequence[Memory]) -> Forgotten:
        """Forget everything that is remembered here."""
        return Forgotten(forgotten=await self._here(memories))

    async def _here(self, memories: Sequence[Memory]) -> int:
        changes = MemoryChanges(removed=[each.id for each in memories])
        return (await self.store.memories.change(self.person, changes, self.clock.now_ms())).removed

    async def _at(
        self,
        provider: MemoryProvider,
        problems: list[str],
        *,
        memory_id: str | None = None,
        session_id: SessionId | None = None,
    ) -> int | None:
        """Return how much a provider has forgotten; None if it did not answer in time."""
        try:
            return max(await self.ask(provider.forget(self.person, memory_id=memory_id, session_id=session_id)), 0)
        except TimeoutError as error:
            problems.append(self.told(error))
            return None
        except Exception as error:  # The edge to a provider: what is kept here is forgotten all the same.
            problems.append(self.told(error))
            return 0

    def _holders(self, segments: Sequence[Segment]) -> Sequence[str]:
        """Return the other providers that may keep something of a session: those that were given it, and the current one."""
        current = elsewhere(self.bindings)
        given = [each.owner for each in segments if each.state in _GIVEN]
        return [each for each in dict.fromkeys([*given, *([current.owner] if current else ())]) if each != BUILTIN]
