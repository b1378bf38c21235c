"""The conversations that this node has at hand between their turns; the one used longest ago is let go first.

Letting one go is a boundary: what it owes to memory is paid, then what is held for it is closed, then it is forgotten.  All
of that is done in the background, and only for as long as nobody uses the conversation again.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import OrderedDict
from collections.abc import Sequence

from holdfast.clock import Clock
from holdfast.engine.committer import Committer
from holdfast.engine.dispatcher import Dispatcher
from holdfast.engine.histories import Histories
from holdfast.engine.tuning import Tuning
from holdfast.engine.wake import Wake
from holdfast.errors import Stale, Unavailable
from holdfast.ids import SessionId
from holdfast.ports import Agent
from holdfast.store.store import Store

log = logging.getLogger(__name__)

# How many are let go beside each other; each may wait for a slow provider.
EVICTIONS_MAX = 32
# So many times as many as there should be are too many to wait for anybody: those leave their debt to the background.
PRESSED = 2
RELEASE_MAX_S = 10


class Live:
    """Sessions at hand, the last used last."""

    def __init__(
        self,
        store: Store,
        agent: Agent,
        committer: Committer,
        dispatcher: Dispatcher,
        histories: Histories,
        live_max: int,
        tuning: Tuning,
        clock: Clock,
    ) -> None:
        self._store = store
        self._agent = agent
        self._committer = committer
        self._dispatcher = dispatcher
        self._histories = histories
        self._live_max = live_max
        self._tuning = tuning
        self._clock = clock
        self._wake = Wake()
        self._uses = itertools.count()
        # Each with its last use, so that whoever lets it go notices another.
        self._sessions: OrderedDict[SessionId, int] = OrderedDict()
        self._leaving: set[SessionId] = set()
        self._closed = False

    @property
    def sessions(self) -> Sequence[SessionId]:
        return tuple(self._sessions)

    def enter(self, session_id: SessionId) -> None:
        """Say that a turn of a session begins."""
        self._sessions[session_id] = next(self._uses)
        self._sessions.move_to_end(session_id)
        if self._over > 0:
            self._wake.set()

    def close(self) -> None:
        """Let no more go: the node stops, and what all of them owe is paid together."""
        self._closed = True

    async def run(self) -> None:
        """Let sessions go until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    for session_id in self._surplus():
                        self._leaving.add(session_id)
                        group.create_task(self._evict(session_id, self._pressed), name=f"evict {session_id}")
                    await self._wake.wait(self._tuning.poll_ms)
        finally:
            self._leaving.clear()

    @property
    def _over(self) -> int:
        """How many more are to go than are going."""
        return len(self._sessions) - len(self._leaving) - self._live_max

    @property
    def _pressed(self) -> bool:
        return len(self._sessions) > PRESSED * self._live_max

    def _surplus(self) -> list[SessionId]:
        """Return the sessions to let go now: those used longest ago that are at nothing."""
        if self._closed:
            return []
        room = self._over if self._pressed else min(self._over, EVICTIONS_MAX - len(self._leaving))
        resting = (each for each in self._sessions if each not in self._leaving and not self._dispatcher.runs(each))
        return list(itertools.islice(resting, max(room, 0)))

    async def _evict(self, session_id: SessionId, pressed: bool) -> None:
        use = self._sessions[session_id]
        try:
            await self._flush(session_id, pressed)
            if self._rests(session_id, use):
                await self._release(session_id)
                self._forget(session_id, use)
        except (Unavailable, Stale) as error:
            log.warning("cannot let go of %s yet: %s", session_id, error)
            await self._clock.sleep_ms(self._tuning.poll_ms)
        finally:
            self._leaving.discard(session_id)
            if self._over > 0:
                self._wake.set()

    async def _flush(self, session_id: SessionId, pressed: bool) -> None:
        """Pay what a session owes.  A provider that fails keeps nobody here: the debt is in the ledger."""
        if pressed:
            await self._store.segments.seal(session_id, self._clock.now_ms())
        else:
            await self._committer.commit(session_id)

    def _rests(self, session_id: SessionId, use: int) -> bool:
        """Return whether nobody has used a session since, nor does now."""
        return self._sessions.get(session_id) == use and not self._dispatcher.runs(session_id)

    async def _release(self, session_id: SessionId) -> None:
        try:
            async with asyncio.timeout(RELEASE_MAX_S):
                await self._agent.release(session_id)
        except Exception:  # The edge to an agent: what it cannot close now it will not close later.
            log.exception("what was held for %s could not be closed", session_id)

    def _forget(self, session_id: SessionId, use: int) -> None:
        """Forget a session that was closed, unless it was used again in that moment."""
        if self._rests(session_id, use):
            del self._sessions[session_id]
            self._histories.drop(session_id)
