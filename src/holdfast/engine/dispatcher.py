"""The dispatcher claims turns for this node and owns the tasks that run them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable

from holdfast.clock import Clock
from holdfast.core.recovery import orphans
from holdfast.core.turns import Cause, Mode, State, Turn
from holdfast.engine.settings import Settings
from holdfast.engine.wake import Wake
from holdfast.engine.worker import Worker
from holdfast.errors import Fatal, Unavailable
from holdfast.ids import NodeId, SessionId, TurnId
from holdfast.ports import Store

log = logging.getLogger(__name__)

# Turns that nobody waits for begin a few at a time, so that a flood of them does not keep the loop from whoever knocks.
DETACHED_AT_ONCE = 8
# While one round of the loop takes longer, or this process uses more of a core than that, it is crowded: then one of them
# begins after each pause.  How many run does not matter, because most of a turn is waiting for a model.
CROWDED_S = 0.008
CROWDED_SHARE = 0.7
CROWDED_PAUSE_S = 0.05
# What a process uses is taken over at least this long.
_SHARE_OVER_S = 0.1
# How soon after that it is looked again.
_LOOK_AGAIN_MS = 25
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
        # Those whose worker is gone although they run.
        self._crashed: set[TurnId] = set()
        self._nudged = worker.nudged
        self._resting = worker.resting
        self._resting.freed = self.wake.set
        self._draining = False
        self._claiming = False
        self._crowded = self._busy = False
        self._looked_at = self._used = 0.0
        # When a turn that nobody waits for last began.
        self._began_at = 0.0
        # Whether turns that nobody waits for may have been left for later.
        self._held_back = False
        # Whether more may be waiting than there was room for.
        self._full = False
        self._idle = asyncio.Event()
        self._idle.set()

    async def run(self) -> None:
        """Claim and run turns until cancelled."""
        try:
            async with asyncio.TaskGroup() as self._group:
                while True:
                    await self._claim()
                    await self._look_around()
                    await self.wake.wait(_LOOK_AGAIN_MS if self._held_back else self._settings.poll_ms)
        finally:
            # Nothing runs any more; a later start must not believe otherwise.
            self._tasks.clear()
            self._sessions.clear()
            self._nudged.clear()
            self._crashed.clear()
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
            await self._recall(held[turn_id])

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

    async def _claim(self) -> None:
        if self._draining:
            return
        free = self._free()
        if free <= 0:
            self._full = True
            return
        self._claiming = True
        self._idle.clear()
        try:
            claimed = await self._take(free)
        except Unavailable as error:
            # What is ours by now, because only the answer was lost, `reconcile` finds.
            log.warning("cannot claim: %s", error)
            return
        finally:
            self._claiming = False
            self._rest()
        self._full = len(claimed) >= free
        if self._full and self._free() > 0:
            # A turn ended while the claim was on its way.
            self.wake.set()

    async def _look_around(self) -> None:
        """Notice how much else there is to do: a round of the loop takes as long as everything that is ready."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.sleep(0)
        now, used = loop.time(), time.process_time()
        if now - self._looked_at >= _SHARE_OVER_S:
            self._busy = used - self._used > CROWDED_SHARE * (now - self._looked_at)
            self._looked_at, self._used = now, used
        self._crowded = self._busy or now - began > CROWDED_S

    async def _take(self, free: int) -> list[Turn]:
        few = self._few()
        taken = await self._store.turns.take(self._node_id, free, self._clock.now_ms(), detached=few)
        detached = sum(turn.mode is Mode.DETACHED for turn, _ in taken)
        self._held_back = detached >= few
        if detached:
            self._began_at = asyncio.get_running_loop().time()
        for turn, entries in taken:
            if turn.state is State.RUNNING or not self._draining:
                self._launch(turn)
                self._worker.feed.publish(entries)
            else:
                # The drain began while the claim was on its way.
                await self._give_back(turn)
        return [turn for turn, _ in taken]

    def _launch(self, turn: Turn) -> None:
        self._idle.clear()
        self._sessions.add(turn.session_id)
        task = self._group.create_task(self._run(turn), name=turn.id)
        self._tasks[turn.id] = (turn, task)
        task.add_done_callback(lambda _: self._forget(turn))

    async def _recall(self, turn: Turn) -> None:
        """Take care of a turn that is ours and that nobody works on: its worker crashed, or a claim had no answer."""
        if turn.state is State.RUNNING and turn.id not in self._crashed and not self._draining:
            log.warning("turn %s was started here and forgotten; going on with it", turn.id)
            self._launch(turn)
            return
        self._crashed.discard(turn.id)
        log.warning("turn %s was claimed here and forgotten; giving it back", turn.id)
        await self._give_back(turn)

    def _few(self) -> int:
        """Return how many turns that nobody waits for may begin now."""
        if not self._crowded:
            return DETACHED_AT_ONCE
        return int(asyncio.get_running_loop().time() - self._began_at >= CROWDED_PAUSE_S)

    def _free(self) -> int:
        return self._settings.max_running - max(len(self._tasks) - len(self._resting), 0)

    async def _run(self, turn: Turn) -> None:
        try:
            if self._draining and turn.state is State.QUEUED:
                # Taken up a moment before the drain began, and simply still queued.
                await self._give_back(turn)
                return
            await self._worker.run(turn)
        except Fatal:
            raise
        except Exception:  # The edge of a task: its neighbours go on, and `reconcile` gives the turn back.
            self._crashed.add(turn.id)
            log.exception("the worker of turn %s crashed", turn.id)

    def _forget(self, turn: Turn) -> None:
        # The turn may run again by now under a newer claim, and so may the next one of its session.
        if turn.id in self._tasks and self._tasks[turn.id][0] is turn:
            del self._tasks[turn.id]
        self._sessions = {claimed.session_id for claimed, _ in self._tasks.values()}
        self._nudged &= self._sessions
        self._rest()
        if self._full:
            self.wake.set()

    def _rest(self) -> None:
        """Say so when nothing runs, and nothing is about to."""
        if not self._tasks and not self._claiming:
            self._idle.set()

    async def _give_back(self, turn: Turn) -> None:
        if turn.state is State.RUNNING:
            now = self._clock.now_ms()
            await self._store.settlement.interrupt(self._node_id, [turn.id], Cause.CRASH, self._settings.policy, now)
        else:
            await self._store.turns.release(turn)


def _same(held: Turn | None, claimed: Turn) -> bool:
    return held is not None and held.fence == claimed.fence
