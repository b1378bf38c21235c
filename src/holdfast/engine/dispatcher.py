"""The dispatcher claims turns for this node and owns the tasks that run them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Sequence

from holdfast.core.admission import Isolation, Load, Places, Pressure
from holdfast.core.journal import Entry
from holdfast.core.recovery import orphans
from holdfast.core.turns import Cause, Mode, Turn, TurnState
from holdfast.engine.node_context import NodeContext
from holdfast.engine.worker import Worker
from holdfast.errors import Fatal, Unavailable
from holdfast.ids import SessionId, TurnId

log = logging.getLogger(__name__)

# How soon the dispatcher looks again while it holds detached turns back.
_LOOK_AGAIN_MS = 25
# How often a node looks for deferred turns that are due, and for suspects while it knows of none.
_SUSPECTS_EVERY_S = 1.0
# A turn that was stopped has little left to do.
_STOPPING_MAX_S = 2


class Dispatcher:
    """Running turns of this node."""

    def __init__(self, node: NodeContext, worker: Worker, places: Places, recovered: asyncio.Event | None = None) -> None:
        # A turn that rests gives up its place, and another one may begin.
        self.wake = worker.resting.freed
        self._node_id, self._store, self._tuning, self._clock = node.id, node.store, node.tuning, node.clock
        self._policy = node.policy
        self._worker = worker
        self._places = places
        self._tasks: dict[TurnId, tuple[Turn, asyncio.Task[None]]] = {}
        self._sessions: set[SessionId] = set()
        self._suspected: set[TurnId] = set()
        self._doubted: set[TurnId] = set()
        # Running turns whose worker crashed.
        self._crashed: set[TurnId] = set()
        # Nothing is claimed before the turns of crashed nodes have been taken over: suspects come first, and alone.
        self._recovered = recovered
        self._isolation = Isolation()
        self._looked_for_suspects_at: float | None = None
        self._nudged = worker.nudged
        self._resting = worker.resting
        self._draining = False
        self._claiming = False
        # Whether the store refused the last claim.
        self._in_vain = False
        self._pressure = Pressure()
        # When a detached turn last began.
        self._began_at = 0.0
        # Whether detached turns may have been left for later.
        self._held_back = False
        # Whether more turns may be waiting than there was room for.
        self._full = False
        self._idle = asyncio.Event()
        self._idle.set()

    async def run(self) -> None:
        """Claim and run turns until cancelled."""
        if self._recovered:
            await self._recovered.wait()
        try:
            async with asyncio.TaskGroup() as self._group:
                while True:
                    await self._claim()
                    await self._measure()
                    await self.wake.wait(_LOOK_AGAIN_MS if self._held_back else self._tuning.poll_ms)
        finally:
            # Nothing runs any more, and a later start must know that.
            self._tasks.clear()
            self._sessions.clear()
            self._nudged.clear()
            self._crashed.clear()
            self._idle.set()

    def runs(self, session_id: SessionId) -> bool:
        """Return whether a turn of a session runs here; its entries are then published directly."""
        return session_id in self._sessions

    @property
    def running(self) -> int:
        return len(self._tasks)

    def stop(self, turn_id: TurnId) -> None:
        """Stop working on a turn that is not ours any more."""
        if turn_id in self._tasks:
            self._tasks[turn_id][1].cancel()

    async def reconcile(self) -> None:
        """Make the turns that run here the same as those that the store says this node holds.

        They differ when a turn was taken away while its worker was waiting, or when the answer to a claim was lost.
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
        """Say that a message may wait to join the running turn of a session."""
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
        now = self._clock.now_ms()
        return len(await self._store.settlement.interrupt(self._node_id, list(turn_ids), cause, self._policy, now))

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
            if await self._keeps_clear():
                # A turn that ends meanwhile lets the dispatcher look again.
                self._full = True
                return
            claimed = await self._take(free)
        except Unavailable as error:
            # If only the answer was lost, `reconcile` finds what was claimed.
            if not self._in_vain:
                # Logged once: every message that comes meanwhile lets the dispatcher look again, perhaps for hours.
                log.warning("cannot claim: %s", error)
            self._in_vain = True
            return
        finally:
            self._claiming = False
            self._rest()
        self._in_vain = False
        self._full = len(claimed) >= free or self._load().is_capped
        if self._full and self._free() > 0:
            # A turn ended while the claim was on its way.
            self.wake.set()

    async def _measure(self) -> None:
        """Measure how busy this process is: a round of the loop takes as long as everything that is ready."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.sleep(0)
        now = loop.time()
        self._pressure = self._pressure.after(now - began, now, time.process_time())

    async def _keeps_clear(self) -> bool:
        """Return whether nothing else may begin now, for the sake of a suspect: one that runs, or one that waits."""
        now = self._clock.monotonic_ms()
        if self._is_guarded(now):
            return True
        suspect = await self._suspect()
        if suspect is None:
            self._isolation = Isolation()
            return False
        self._isolation = self._isolation.wait(suspect, now)
        if not self._isolation.may_begin(self._working(), now):
            return True
        taken = await self._store.turns.take_suspect(self._node_id, self._clock.now_ms())
        self._isolation = self._isolation.begin(now) if taken else Isolation()
        await self._begin(taken)
        return bool(taken)

    def _is_guarded(self, now: int) -> bool:
        """Return whether a suspect runs alone; once it does not any more, look for the next one."""
        if self._isolation.running is None:
            return False
        if self._isolation.holds({each for each in self._tasks if each not in self._resting}, now):
            return True
        self._isolation, self._looked_for_suspects_at = Isolation(), None
        return False

    async def _suspect(self) -> Turn | None:
        """Return the next suspect.  While there is none, the store is not asked for one at every claim."""
        now = asyncio.get_running_loop().time()
        if self._looked_for_suspects_at is not None and now - self._looked_for_suspects_at < _SUSPECTS_EVERY_S:
            return None
        await self._store.turns.ripen(self._clock.now_ms())
        suspect = await self._store.turns.suspect()
        self._looked_for_suspects_at = None if suspect else now
        return suspect

    def _working(self) -> int:
        """Return how many turns have a place, and do not rest."""
        return max(len(self._tasks) - len(self._resting), 0)

    async def _take(self, free: int) -> list[Turn]:
        few = self._pressure.detached_max(asyncio.get_running_loop().time() - self._began_at)
        taken = await self._store.turns.take(self._node_id, free, self._clock.now_ms(), detached=few, load=self._load())
        detached = sum(turn.mode is Mode.DETACHED for turn, _ in taken)
        self._held_back = detached >= few
        if detached:
            self._began_at = asyncio.get_running_loop().time()
        return await self._begin(taken)

    async def _begin(self, taken: Sequence[tuple[Turn, list[Entry]]]) -> list[Turn]:
        for turn, entries in taken:
            if turn.state is TurnState.RUNNING or not self._draining:
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
        """Take care of a turn that is ours and has no worker: its worker crashed, or the answer to its claim was lost."""
        if turn.state is TurnState.RUNNING and turn.id not in self._crashed and not self._draining:
            log.warning("turn %s was started here and forgotten; going on with it", turn.id)
            self._launch(turn)
            return
        self._crashed.discard(turn.id)
        log.warning("turn %s was claimed here and forgotten; giving it back", turn.id)
        await self._give_back(turn)

    def _load(self) -> Load:
        """Return how many turns of each owner have a place."""
        return self._places.load(turn.owner for turn, _ in self._tasks.values() if turn.id not in self._resting)

    def _free(self) -> int:
        return self._places.total - self._working()

    async def _run(self, turn: Turn) -> None:
        try:
            if self._draining and turn.state is TurnState.QUEUED:
                # It was claimed just before the drain began, and is still queued.
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
        if turn.state is TurnState.RUNNING:
            now = self._clock.now_ms()
            await self._store.settlement.interrupt(self._node_id, [turn.id], Cause.CRASH, self._policy, now)
        else:
            await self._store.turns.release(turn)


def _same(held: Turn | None, claimed: Turn) -> bool:
    return held is not None and held.fence == claimed.fence
