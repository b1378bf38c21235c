"""Forgetting: here, and wherever else something of it is kept and can be told to forget."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from holdfast.clock import Clock
from holdfast.core.facts import Memory, MemoryChanges
from holdfast.core.segments import BUILTIN, DIRTY, Segment, SegmentState
from holdfast.desk.debts import Forgotten
from holdfast.ids import MemoryId, SessionId
from holdfast.ports import Bindings, MemoryProvider
from holdfast.store.store import Store

# What a provider may have been given, though it never said so.
_GIVEN = frozenset({SegmentState.COMMITTED, SegmentState.COMMITTING})


def elsewhere(bindings: Bindings | None) -> MemoryProvider | None:
    """Return the provider of today, where it keeps what it is given somewhere else."""
    current = bindings.current if bindings else None
    return current if current and current.owner != BUILTIN else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Eraser:
    """Takes what is remembered about a person away.

    `ask` waits for a provider for so long and no longer; `told` says what went wrong there, and `named` who it is, to
    whoever wants to forget.
    """

    store: Store
    person: str
    bindings: Bindings | None
    clock: Clock
    ask: Callable[[Awaitable[int]], Awaitable[int]]
    told: Callable[[Exception], str]
    named: Callable[[str], str]

    async def memories(self, ids: Sequence[str]) -> Forgotten:
        """Forget memories by their ids: ours, or those by which a provider recalls."""
        provider = elsewhere(self.bindings)
        here, there, missing, problems = 0, 0, list[str](), list[str]()
        for each in dict.fromkeys(ids):
            if await self.store.memories.remove(self.person, MemoryId(each)):
                here += 1
                continue
            gone = await self._at(provider, problems, memory_id=each) if provider else 0
            if gone is None:
                # Whoever waits does not wait for each of them.
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
                problems.append(f"nobody here is {self.named(binding)}; delete it there")
        owed = sum(each.state in DIRTY for each in segments)
        return Forgotten(forgotten=here, elsewhere=there, owed=owed, problems=problems)

    async def everything(self, memories: Sequence[Memory]) -> Forgotten:
        """Forget whatever is remembered here."""
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
        """Return how much a provider has forgotten; None where it did not answer in time."""
        try:
            return max(await self.ask(provider.forget(self.person, memory_id=memory_id, session_id=session_id)), 0)
        except TimeoutError as error:
            problems.append(self.told(error))
            return None
        except Exception as error:  # The edge to a provider: what is kept here is forgotten all the same.
            problems.append(self.told(error))
            return 0

    def _holders(self, segments: Sequence[Segment]) -> Sequence[str]:
        """Return who else may hold something of a session: whoever was given it, and whoever hears of it now."""
        current = elsewhere(self.bindings)
        given = [each.owner for each in segments if each.state in _GIVEN]
        return [each for each in dict.fromkeys([*given, *([current.owner] if current else ())]) if each != BUILTIN]
