"""Recall asks the memory provider what it knows about a message, and goes on without an answer that does not come soon.

A provider that hangs delays one reply, once.  Other turns that ask at the same time go on at once or after a moment.
Afterwards the provider is tried in the background until it has answered again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from holdfast.clock import Clock
from holdfast.config import MemoryConfig
from holdfast.core import recall
from holdfast.core.breaker import Breaker, pause_ms
from holdfast.core.facts import Recollection
from holdfast.core.redaction import Redaction
from holdfast.core.segments import BUILTIN, failure
from holdfast.core.sessions import Session
from holdfast.core.turns import Turn
from holdfast.errors import Rejected
from holdfast.foreign_call import foreign_call
from holdfast.ports import Bindings, MemoryProvider, Recalled, nothing_recalled

log = logging.getLogger(__name__)

# How long many turns may wait at once for a provider that has answered before, or one for a provider that has not.
WAIT_MAX_MS = 250
# Calls at once; a turn that comes when there are this many goes on without.
CALLS_MAX = 64

Found = Sequence[Recollection]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallCall:
    """A provider that was asked; the first one that asks of all waits longest."""

    task: asyncio.Task[Found]
    is_first: bool


class Recall:
    """What the provider of today recalls, as far as it is worth waiting for."""

    def __init__(self, bindings: Bindings | None, config: MemoryConfig, redaction: Redaction, clock: Clock) -> None:
        self._bindings = bindings
        self._config = config
        self._redaction = redaction
        self._clock = clock
        self._breaker = Breaker()
        self._calls: set[asyncio.Task[Found]] = set()
        self._group: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Keep the calls whose turns have gone on, until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                await asyncio.Event().wait()
            finally:
                # Calls in flight are cancelled with this component, and turns that ask meanwhile go on without.
                self._group = None
                self._breaker = Breaker()

    def ask(self, session: Session, turn: Turn, text: str) -> Recalled:
        """Ask what memory has to say to a message; returns what waits for the answer, but never for too long."""
        provider = self._bindings.current if self._bindings else None
        if provider is None or not recall.reminds(session, turn) or not (query := recall.query(text)):
            return nothing_recalled
        if provider.owner == BUILTIN:
            return partial(self._from_store, provider, session, query)
        call = self._begun(provider, session, query)
        return partial(self._from_afar, call) if call else nothing_recalled

    async def _from_store(
        self, provider: MemoryProvider, session: Session, query: str, *, knows_store: bool = False
    ) -> Found:
        # The store is near, and a prompt that has all memories of a person needs no search.
        call = None if knows_store else self._begun(provider, session, query)
        return await self._answer(call) if call else ()

    async def _from_afar(self, call: RecallCall, *, knows_store: bool = False) -> Found:  # noqa: ARG002 - It is elsewhere.
        return await self._answer(call)

    def _begun(self, provider: MemoryProvider, session: Session, query: str) -> RecallCall | None:
        """Ask, unless that is not worth it now."""
        if self._group is None or len(self._calls) >= CALLS_MAX or not self._breaker.may_ask(self._clock.monotonic_ms()):
            return None
        is_first = self._breaker.is_unknown
        self._breaker = self._breaker.asked()
        task = self._group.create_task(self._call(provider, session, query), name=f"recall in {session.id}")
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        return RecallCall(task=task, is_first=is_first)

    async def _answer(self, call: RecallCall) -> Found:
        """Return what a call brings, or nothing where that would take too long."""
        timeout_ms = self._config.recall_timeout * 1000
        if await _ended(call.task, timeout_ms if call.is_first else min(WAIT_MAX_MS, timeout_ms)):
            return call.task.result()
        may_ask = self._breaker.may_ask(self._clock.monotonic_ms())
        if timeout_ms <= WAIT_MAX_MS or not self._breaker.is_proven or not may_ask:
            # Another turn waits already, or the provider is only being tried.
            return ()
        self._breaker = self._breaker.tried()
        return call.task.result() if await _ended(call.task, timeout_ms - WAIT_MAX_MS) else ()

    async def _call(self, provider: MemoryProvider, session: Session, query: str) -> Found:
        """Ask, learn from what comes of it how the provider is, and raise nothing."""
        limit = self._config.recall_limit
        try:
            call = provider.recall(session, query, limit)
            answer = await foreign_call(call, self._config.recall_timeout, f"recall of {provider.owner}")
            found = recall.bounded(answer, limit)
        except TimeoutError:
            self._fail(provider, "it did not answer in time")
        except Rejected as refused:
            # It answers, though not to this person; the others are still asked for.
            self._breaker = self._breaker.answered()
            log.info("%s recalls nothing in %s: %s", provider.owner, session.id, failure(refused, self._redaction))
        except Exception as error:  # The edge to a provider: an answer without memories is better than none.
            self._fail(provider, failure(error, self._redaction))
        else:
            self._breaker = self._breaker.answered()
            return [_masked(each, self._redaction) for each in found]
        return ()

    def _fail(self, provider: MemoryProvider, why: str) -> None:
        before, self._breaker = self._breaker, self._breaker.failed(self._clock.monotonic_ms())
        if self._breaker is not before:
            pause_s = pause_ms(self._breaker.failures) // 1000
            log.warning("answering without what %s recalls for %d s: %s", provider.owner, pause_s, why)


async def _ended(call: asyncio.Task[Found], timeout_ms: float) -> bool:
    """Return whether a call ends in time.  The call goes on if not, and also when the caller is cancelled."""
    done, _ = await asyncio.wait((call,), timeout=timeout_ms / 1000)
    return bool(done) and not call.cancelled()


def _masked(found: Recollection, redaction: Redaction) -> Recollection:
    return Recollection(text=redaction.text(found.text), id=found.id, turn_id=found.turn_id)
