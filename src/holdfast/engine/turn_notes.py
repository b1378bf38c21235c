"""Tells a memory provider that asks for it of each turn as soon as that has ended, in the background.

A note may be lost, because the commit of the segment has all of its turns.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from dataclasses import dataclass, field

from holdfast.clock import Clock
from holdfast.core.breaker import Breaker, pause_ms
from holdfast.core.redaction import Redaction
from holdfast.core.segments import failure, messages
from holdfast.core.sessions import Session
from holdfast.engine.tuning import Tuning
from holdfast.errors import Rejected, Unavailable
from holdfast.foreign_call import foreign_call
from holdfast.ids import TurnId
from holdfast.ports import Bindings, MemoryProvider
from holdfast.store.store import Store

log = logging.getLogger(__name__)

# At once; the turns of one session use the same lane, so that they arrive in order.
LANES = 4
# On each lane; a turn that comes when this many wait is left to the commit.
WAITING_MAX = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    session: Session
    turn_id: TurnId


@dataclass(slots=True)
class _Lane:
    waiting: asyncio.Queue[_Ended] = field(default_factory=lambda: asyncio.Queue(WAITING_MAX))
    breaker: Breaker = field(default_factory=Breaker)


class TurnNotes:
    """Turns that the current provider is still to be told of."""

    def __init__(self, store: Store, bindings: Bindings | None, tuning: Tuning, redaction: Redaction, clock: Clock) -> None:
        self._store = store
        self._bindings = bindings
        self._tuning = tuning
        self._redaction = redaction
        self._clock = clock
        self._lanes = [_Lane() for _ in range(LANES)]

    def tell(self, session: Session, turn_id: TurnId) -> None:
        """Queue a turn that is remembered; where there is no room for it, or the provider wants no notes, do nothing."""
        if (provider := self._provider) is None:
            return
        lane = self._lanes[hash(session.id) % LANES]
        if not lane.breaker.may_ask(self._clock.monotonic_ms()):
            return
        try:
            lane.waiting.put_nowait(_Ended(session=session, turn_id=turn_id))
        except asyncio.QueueFull:
            log.info("%s hears of turn %s when it is committed, and not before: too many wait", provider.owner, turn_id)

    async def run(self) -> None:
        """Tell of turns until cancelled."""
        async with asyncio.TaskGroup() as group:
            for lane in self._lanes:
                group.create_task(self._follow(lane))

    @property
    def _provider(self) -> MemoryProvider | None:
        provider = self._bindings.current if self._bindings else None
        return provider if provider and provider.mirrors else None

    async def _follow(self, lane: _Lane) -> None:
        while True:
            ended = await lane.waiting.get()
            provider = self._provider
            if provider is not None and lane.breaker.may_ask(self._clock.monotonic_ms()):
                try:
                    await self._tell(lane, provider, ended)
                except Unavailable as error:
                    log.info("%s hears of turn %s when it is committed: %s", provider.owner, ended.turn_id, error)

    async def _tell(self, lane: _Lane, provider: MemoryProvider, ended: _Ended) -> None:
        segment = await self._store.segments.of_turn(ended.turn_id)
        # Another binding may have been chosen for a session in the meantime, or the session is gone.
        if segment is None or segment.owner != provider.owner:
            return
        if said := messages(await self._store.journal.read_turn(ended.turn_id)):
            await self._note(lane, provider, provider.note(ended.session, segment, said))

    async def _note(self, lane: _Lane, provider: MemoryProvider, note: Awaitable[None]) -> None:
        try:
            await foreign_call(note, self._tuning.note_timeout_ms / 1000, f"note to {provider.owner}")
        except Rejected as refused:
            # It answers, though not to this person, so the lane stays open for other sessions.
            lane.breaker = lane.breaker.answered()
            log.info("%s takes no note: %s", provider.owner, failure(refused, self._redaction))
        except Exception as error:  # The edge to a provider: the commit has the turn too.
            lane.breaker = lane.breaker.failed(self._clock.monotonic_ms())
            why = "no answer in time" if isinstance(error, TimeoutError) else failure(error, self._redaction)
            pause_s = pause_ms(lane.breaker.failures) // 1000
            log.info("%s hears of no turn before its commit for %d s: %s", provider.owner, pause_s, why)
        else:
            lane.breaker = lane.breaker.answered()
