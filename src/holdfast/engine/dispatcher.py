"""The dispatcher claims turns for this node and owns the tasks that run them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from holdfast.clock import Clock
from holdfast.core.recovery import orphans
from holdfast.core.turns import Cause, State, Turn
from holdfast.engine.settings import Settings
from holdfast.engine.wake import Wake
from holdfast.engine.worker import Worker
from holdfast.errors import Fatal, Unavailable
from holdfast.ids import NodeId, SessionId, TurnId
from holdfast.ports import Store

log = logging.getLogger(__name__)

# What was told to stop has little left to do.
_STOPPING_MAX_S = 2


class Dispatcher:
    """Running turns of this node."""

    def __init__(self, node_id: NodeId, store: Store, worker: Worker, settings: Settings, clock: Clock) -> None:
        self.wake = Wake()
        self._node_id = node_id
        self._store = store
        self._worker = worker
        self._settings = settings
        self._clock = clock
        self._tasks: dict[TurnId, tuple[Turn, asyncio.Task[None]]] = {}
        self._sessions: set[SessionId] = set()
        self._suspected: set[TurnId] = set()
        self._doubted: set[TurnId] = set()
        self._nudged = worker.nudged
        self._resting = worker.resting
        self._resting.freed = self.wake.set
        self._draining = False
        # Whether more may be waiting than there was room for.
        self._full = False
        self._idle = asyncio.Event()
        self._idle.set()

    async def run(self) -> None:
        """Claim and run turns until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    await self._claim(group)
                    await self.wake.wait(self._settings.poll_ms)
        finally:
            # Nothing runs any more; a later start must not believe otherwise.
            self._tasks.clear()
            self._sessions.clear()
            self._nudged.clear()
            self._idle.set()

    def runs(self, session_id: SessionId) -> bool:
        """Return whether a turn of a session runs here, so that its entries are published directly."""
        return session_id in self._sessions

    @property
    def running(self) -> int:
        return len(self._tasks)

    def stop(self, turn_id: TurnId) -> None:
        """Stop working on a turn that is not ours any more."""
        if turn_id in self._tasks:
            self._tasks[turn_id][1].cancel()

    async def reconcile(self) -> None:
        """Make what runs here and what the store says we hold the same again.

        They differ when somebody took a turn away while its worker was waiting, or when the answer to a claim was lost.
        """
        held = {turn.id: turn for turn in await self._store.turns.held(self._node_id)}
        mine = {turn_id for turn_id, (claimed, _) in self._tasks.items() if _same(held.get(turn_id), claimed)}
        taken, self._doubted = orphans(self._tasks.keys(), mine, self._doubted)
        for turn_id in taken:
            self.stop(turn_id)
        lost, self._suspected = orphans(held.keys(), self._tasks.keys(), self._suspected)
        for turn_id in lost:
            log.warning("turn %s was claimed here and forgotten; giving it back", turn_id)
            await self._give_back(held[turn_id])

    def nudge(self, session_id: SessionId) -> None:
        """Say that a message may have come that wants to join the running turn of a session."""
        if session_id in self._sessions:
            self._nudged.add(session_id)

    def close(self) -> None:
        """Start nothing more."""
        self._draining = True

    async def drain(self, timeout_ms: int, cause: Cause) -> int:
        """Start nothing more and wait for what runs; at the deadline interrupt the rest and return how many."""
        self.close()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._idle.wait()
        except TimeoutError:
            # The cause is durable before anyone is interrupted.
            late = dict(self._tasks)
            cut = await self._interrupt(late, cause)
            for turn_id in late:
                self.stop(turn_id)
            if late:
                await asyncio.wait([task for _, task in late.values()], timeout=_STOPPING_MAX_S)
            # One that was just about to start may have started after all.
            return cut + await self._interrupt(late, cause)
        return 0

    async def _interrupt(self, turn_ids: Iterable[TurnId], cause: Cause) -> int:
        now, policy = self._clock.now_ms(), self._settings.policy
        return len(await self._store.settlement.interrupt(self._node_id, list(turn_ids), cause, policy, now))

    async def _claim(self, group: asyncio.TaskGroup) -> None:
        if self._draining:
            return
        free = self._free()
        if free <= 0:
            self._full = True
            return
        try:
            claimed = await self._store.turns.claim(self._node_id, free)
            if self._draining:
                # The drain began while the claim was on its way.
                for turn in claimed:
                    await self._give_back(turn)
                return
        except Unavailable as error:
            # What is ours by now, because only the answer was lost, `reconcile` gives back.
            log.warning("cannot claim: %s", error)
            return
        for turn in claimed:
            self._idle.clear()
            self._sessions.add(turn.session_id)
            task = group.create_task(self._run(turn), name=turn.id)
            self._tasks[turn.id] = (turn, task)
            task.add_done_callback(lambda _, turn=turn: self._forget(turn))
        self._full = len(claimed) >= free
        if self._full and self._free() > 0:
            # A turn ended while the claim was on its way.
            self.wake.set()

    def _free(self) -> int:
        return self._settings.max_running - max(len(self._tasks) - len(self._resting), 0)

    async def _run(self, turn: Turn) -> None:
        try:
            if self._draining:
                # Taken up a moment before the drain began, and simply still queued.
                await self._give_back(turn)
                return
            await self._worker.run(turn)
        except Fatal:
            raise
        except Exception:  # The edge of a task: its neighbours go on, and `reconcile` gives the turn back.
            log.exception("the worker of turn %s crashed", turn.id)

    def _forget(self, turn: Turn) -> None:
        # The turn may run again by now under a newer claim, and so may the next one of its session.
        if turn.id in self._tasks and self._tasks[turn.id][0] is turn:
            del self._tasks[turn.id]
        self._sessions = {claimed.session_id for claimed, _ in self._tasks.values()}
        self._nudged &= self._sessions
        if not self._tasks:
            self._idle.set()
        if self._full:
            self.wake.set()

    async def _give_back(self, turn: Turn) -> None:
        if turn.state is State.RUNNING:
            now = self._clock.now_ms()
            await self._store.settlement.interrupt(self._node_id, [turn.id], Cause.CRASH, self._settings.policy, now)
        else:
            await self._store.turns.release(turn)


def _same(held: Turn | None, claimed: Turn) -> bool:
    return held is not None and held.fence == claimed.fence
