"""The evictor lets the least recently used sessions go, while this node has more at hand than it should.

Letting a session go is a boundary: what it owes to memory is paid, then what the agent holds for it is closed, then it is
forgotten.  All of that happens in the background, and stops when the session is used again.
"""

from __future__ import annotations

import asyncio
import itertools
import logging

from holdfast.engine.committer import Committer
from holdfast.engine.dispatcher import Dispatcher
from holdfast.engine.histories import Histories
from holdfast.engine.live import LiveSessions
from holdfast.engine.node_context import NodeContext
from holdfast.errors import Stale, Unavailable
from holdfast.ids import SessionId
from holdfast.ports import Agent

log = logging.getLogger(__name__)

# How many are let go at once; each may wait for a slow provider.
EVICTIONS_MAX = 32
RELEASE_MAX_S = 10


class Evictor:
    """Lets sessions go, several at once."""

    def __init__(
        self,
        node: NodeContext,
        live: LiveSessions,
        agent: Agent,
        committer: Committer,
        dispatcher: Dispatcher,
        histories: Histories,
    ) -> None:
        self._store, self._tuning, self._clock = node.store, node.tuning, node.clock
        self._live = live
        self._agent = agent
        self._committer = committer
        self._dispatcher = dispatcher
        self._histories = histories
        self._closed = False

    def close(self) -> None:
        """Let no more sessions go: the node stops, and what all of them owe is paid together."""
        self._closed = True

    async def run(self) -> None:
        """Let sessions go until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    for session_id in self._surplus():
                        self._live.leaving.add(session_id)
                        group.create_task(self._evict(session_id, self._live.is_pressed), name=f"evict {session_id}")
                    await self._live.wake.wait(self._tuning.poll_ms)
        finally:
            self._live.leaving.clear()

    def _surplus(self) -> list[SessionId]:
        """Return the sessions to let go now: the least recently used ones of which no turn runs."""
        if self._closed:
            return []
        live = self._live
        room = live.over if live.is_pressed else min(live.over, EVICTIONS_MAX - len(live.leaving))
        resting = (each for each in live.uses if each not in live.leaving and not self._dispatcher.runs(each))
        return list(itertools.islice(resting, max(room, 0)))

    async def _evict(self, session_id: SessionId, pressed: bool) -> None:
        use = self._live.uses[session_id]
        try:
            await self._flush(session_id, pressed)
            if self._rests(session_id, use):
                await self._release(session_id)
                self._forget(session_id, use)
        except (Unavailable, Stale) as error:
            log.warning("cannot let go of %s yet: %s", session_id, error)
            await self._clock.sleep_ms(self._tuning.poll_ms)
        finally:
            self._live.leaving.discard(session_id)
            if self._live.over > 0:
                self._live.wake.set()

    async def _flush(self, session_id: SessionId, pressed: bool) -> None:
        """Pay what a session owes.  Where the provider fails the session still goes, because the debt is in the ledger."""
        if pressed:
            await self._store.segments.seal(session_id, self._clock.now_ms())
        else:
            await self._committer.commit(session_id)

    def _rests(self, session_id: SessionId, use: int) -> bool:
        """Return whether a session has not been used since, and no turn of it runs."""
        return self._live.uses.get(session_id) == use and not self._dispatcher.runs(session_id)

    async def _release(self, session_id: SessionId) -> None:
        try:
            async with asyncio.timeout(RELEASE_MAX_S):
                await self._agent.release(session_id)
        except Exception:  # The edge to an agent: what it cannot close now it will not close later.
            log.exception("what was held for %s could not be closed", session_id)

    def _forget(self, session_id: SessionId, use: int) -> None:
        """Forget a session that was closed, unless it was used again in that moment."""
        if self._rests(session_id, use):
            del self._live.uses[session_id]
            self._histories.drop(session_id)
