"""The committer pays memory debt, each to the binding that it is owed to.  No reply waits for it.

The ledger in the store decides who may pay what, and when; the committer only knows what this node is paying.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.config import MemoryConfig
from holdfast.core.delivery import backoff_ms
from holdfast.core.recovery import orphans
from holdfast.core.segments import (
    NOTHING_SAID,
    Segment,
    SegmentEvent,
    SegmentState,
    SpokenMessage,
    failure,
    messages,
    receipt,
)
from holdfast.core.sessions import Session
from holdfast.engine.node_context import NodeContext
from holdfast.engine.persistence import persist
from holdfast.engine.wake import Wake
from holdfast.errors import Fatal, HoldfastError, NotFound, Stale, Unavailable
from holdfast.foreign_call import foreign_call
from holdfast.ids import SegmentId, SessionId
from holdfast.ports import Bindings, MemoryProvider

log = logging.getLogger(__name__)

TOO_LATE = "the provider did not answer in time"
# For this long after a caller closed a session off, only that caller pays.
HEAD_START_MS = 2_000
# How often a commit that is in flight on another node is looked at.
_LOOK_AGAIN_S = 0.05
# Sealing what is owed takes a moment; a shutdown that has no time at all has so much.
_SEALING_MIN_S = 1
# A store that takes longer is away, and a shutdown does not wait for it: what was not sealed is so later.
_SEALING_MAX_S = 3
_IDLE_LOOK_MS = 60_000
# Later than any recorded use.
_EVER = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitInFlight:
    """A commit in flight on this node; the task says whether it succeeded."""

    segment: Segment
    task: asyncio.Task[bool]
    in_background: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a provider made of a segment: a receipt, or an error."""

    receipt: str = ""
    error: str | None = None


class Committer:
    """Segments that this node is committing."""

    def __init__(self, node: NodeContext, memory: Bindings | None, config: MemoryConfig) -> None:
        self.wake = Wake()
        self._node_id, self._store, self._tuning, self._clock = node.id, node.store, node.tuning, node.clock
        self._redaction = node.redaction
        self._memory = memory
        self._config = config
        self._group: asyncio.TaskGroup | None = None
        self._commits: dict[SegmentId, CommitInFlight] = {}
        self._suspected: set[SegmentId] = set()
        self._idle_looked_at: int | None = None
        self._claiming = False
        # Nothing is claimed in the background any more, and later nothing at all.
        self._draining = False
        self._closed = asyncio.Event()

    async def run(self) -> None:
        """Commit what is due until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                while True:
                    await self._claim_due()
                    await self.wake.wait(self._tuning.poll_ms)
            finally:
                # Commits in flight are cancelled with this component; callers are told from now on that nothing was paid.
                self._group = None

    async def commit(self, session_id: SessionId, *, wait: bool = True) -> bool:
        """Close off what a session owes and pay it, oldest first, each segment to its owner.

        True when this call has paid something and nothing of it is left.  While another commit of the session is in
        flight, here or on another node, a caller that does not `wait` is told False at once.  Turns that complete meanwhile
        are owed afterwards.
        """
        now = self._clock.now_ms()
        if await self._store.segments.close_off(session_id, now, now + HEAD_START_MS) is None:
            return False
        paid, through = False, None
        while owed := await self._owed(session_id, through):
            oldest, through = owed[0], owed[-1].last_generation
            provider = self._provider(oldest.owner)
            if provider is None or self._group is None or self._closed.is_set():
                return False
            if oldest.state is SegmentState.COMMITTING:
                if not wait:
                    return False
                await self._over(oldest)
            elif claimed := await self._store.segments.claim_one(self._node_id, session_id, oldest.owner):
                if not await self._paid(provider, claimed):
                    return False
                paid = True
            else:
                # Another caller was faster.
                await asyncio.sleep(_LOOK_AGAIN_S)
        return paid

    async def drain(self, sessions: Sequence[SessionId], timeout_ms: int) -> None:
        """Let commits in flight end and pay what is owed, first by these sessions; in the end nothing more is begun.

        What does not fit into the time stays owed.
        """
        self._draining = True
        try:
            # Sealed first, so that it is paid after the next start in any case.
            async with asyncio.timeout(min(max(timeout_ms / 1000, _SEALING_MIN_S), _SEALING_MAX_S)):
                await self._close_off(sessions)
                owners = {each.owner for each in await self._store.segments.unpaid()}
            # What fails from now on is not tried again: whom it is owed to would be gone for as long as there is time.
            now = self._clock.now_ms()
            if owners:
                async with asyncio.timeout(timeout_ms / 1000):
                    # Sessions that wait for a provider that hangs do not delay the others.
                    groups = await self._by_owner(sessions) if len(owners) > 1 else [sessions]
                    await asyncio.gather(*(self._flush(each) for each in groups))
                    await self._flush_due(now)
                    await self._rest()
        except (TimeoutError, HoldfastError) as error:
            log.warning("some memory stays owed: %s", str(error) or "time is up")
        self._closed.set()

    async def rest(self, timeout_ms: int) -> None:
        """Let commits in flight end, and begin nothing more; what is owed stays owed."""
        self._draining = True
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._rest()
        except TimeoutError:
            log.info("a commit did not end in time; it is made again")
        self._closed.set()

    async def reconcile(self) -> None:
        """Release segments that were claimed here and are not being paid, undo clock jumps, and close off idle sessions."""
        now = self._clock.now_ms()
        await self._store.segments.hasten(now)
        held = {each.id: each for each in await self._store.segments.held(self._node_id)}
        lost, self._suspected = orphans(held.keys(), self._commits.keys(), self._suspected)
        for segment_id in lost:
            await self._settle(held[segment_id], Outcome(error="the store went away before it was committed"))
        await self._seal_idle(now)

    async def _seal_idle(self, now_ms: int) -> None:
        looked_at, since = self._idle_looked_at, self._clock.monotonic_ms()
        if self._draining or (looked_at is not None and since - looked_at < _IDLE_LOOK_MS):
            return
        sealed = await self._store.segments.seal_idle(now_ms - int(self._config.idle_minutes * 60_000), now_ms)
        # As long as there are some, there may be more than one look takes.
        self._idle_looked_at = None if sealed else since

    async def _close_off(self, sessions: Sequence[SessionId]) -> None:
        """Seal what these sessions owe; the last node also seals what a killed node left open."""
        now = self._clock.now_ms()
        await self._store.segments.seal_all(sessions, now)
        others = (await self._store.nodes.beats()).keys() - {self._node_id}
        while not others and await self._store.segments.seal_idle(_EVER, now):
            # There may be more than one look takes.
            pass

    async def _claim_due(self) -> None:
        if self._draining or self._memory is None:
            return
        self._claiming = True
        try:
            for owner in await self._store.segments.owners_due(self._clock.now_ms()):
                at_work = sum(each.in_background and each.segment.owner == owner for each in self._commits.values())
                # The drain may have begun while we looked.
                if not self._draining:
                    await self._claim(owner, self._clock.now_ms(), self._tuning.commits_max - at_work)
        except (Unavailable, Stale) as error:
            log.warning("cannot claim memory segments: %s", error)
        finally:
            self._claiming = False

    async def _claim(self, owner: str, now_ms: int, limit: int) -> set[asyncio.Task[bool]]:
        """Take what is due for an owner, and begin to pay it.  A debt to an owner without a provider here stays."""
        provider = self._provider(owner)
        if provider is None or limit <= 0:
            return set()
        claimed = await self._store.segments.claim(self._node_id, owner, now_ms, limit)
        return {task for each in claimed if (task := self._begin(provider, each, in_background=True))}

    def _provider(self, owner: str) -> MemoryProvider | None:
        return self._memory.of(owner) if self._memory else None

    async def _owed(self, session_id: SessionId, through: int | None) -> list[Segment]:
        """Return what a session owes of what was closed off up to a generation, oldest first."""
        owed = await self._store.segments.closed_off(session_id)
        return [segment for segment in owed if through is None or segment.last_generation <= through]

    async def _over(self, segment: Segment) -> None:
        """Wait for a commit in flight here; one on another node is looked at again soon."""
        if commit := self._commits.get(segment.id):
            await self._wait(commit.task)
        else:
            await asyncio.sleep(_LOOK_AGAIN_S)

    async def _paid(self, provider: MemoryProvider, segment: Segment) -> bool:
        """Pay a claimed segment, and wait for it.  The payment goes on when the caller is cancelled."""
        task = self._begin(provider, segment, in_background=False)
        if task is None:
            return False
        await self._wait(task)
        return task.done() and not task.cancelled() and task.exception() is None and task.result()

    async def _wait(self, payment: asyncio.Task[bool]) -> None:
        """Wait for a payment, but not for longer than anything is paid here: then it stays owed."""
        closed = asyncio.create_task(self._closed.wait())
        try:
            await asyncio.wait((payment, closed), return_when=asyncio.FIRST_COMPLETED)
        finally:
            closed.cancel()

    def _begin(self, provider: MemoryProvider, segment: Segment, *, in_background: bool) -> asyncio.Task[bool] | None:
        if self._group is None or self._closed.is_set():
            # The committer stopped while the claim was on its way; the next `reconcile` releases it.
            return None
        task = self._group.create_task(self._pay(provider, segment), name=segment.id)
        self._commits[segment.id] = CommitInFlight(segment=segment, task=task, in_background=in_background)
        task.add_done_callback(lambda _: self._forget(segment))
        return task

    def _forget(self, segment: Segment) -> None:
        self._commits.pop(segment.id, None)
        self.wake.set()

    async def _pay(self, provider: MemoryProvider, segment: Segment) -> bool:
        try:
            session, said = await persist(self._clock, lambda: self._read(segment))
        except NotFound:
            # Its session was deleted, and the debt with it.
            return False
        except Fatal:
            raise
        except Exception as error:  # What cannot be read must not keep everything else from being paid.
            log.exception("cannot read segment %s", segment.id)
            return await self._settle(segment, Outcome(error=failure(error, self._redaction)))
        if not said:
            return await self._settle(segment, Outcome(receipt=NOTHING_SAID))
        outcome = await self._ask(provider, session, segment, said)
        if outcome.error:
            # The ledger says so too and it is tried again, so a person at a prompt need not be told.
            log.info("committing %s failed: %s", segment.id, outcome.error)
        return await self._settle(segment, outcome)

    async def _read(self, segment: Segment) -> tuple[Session, list[SpokenMessage]]:
        session = await self._store.sessions.get(segment.session_id)
        return session, messages(await self._store.journal.read_segment(segment))

    async def _ask(
        self, provider: MemoryProvider, session: Session, segment: Segment, said: Sequence[SpokenMessage]
    ) -> Outcome:
        """Call a provider, with a timeout; it may fail in any way."""
        call, name = provider.commit(session, segment, said), f"commit {segment.id}"
        try:
            said_of_it = await foreign_call(call, self._config.commit_timeout, name)
        except Exception as error:  # The edge to a provider.
            is_silent = isinstance(error, TimeoutError) and not str(error)
            return Outcome(error=TOO_LATE if is_silent else failure(error, self._redaction))
        return Outcome(receipt=receipt(said_of_it, self._redaction))

    async def _settle(self, segment: Segment, outcome: Outcome) -> bool:
        """Record how a commit ended, however long the store is away; returns whether the debt is paid."""
        now = self._clock.now_ms()
        event = SegmentEvent.FAIL if outcome.error else SegmentEvent.SUCCEED
        due_at = now + backoff_ms(segment.attempt, 0) if outcome.error else None

        async def settle() -> Segment:
            return await self._store.segments.settle(
                segment, event, now, due_at=due_at, error=outcome.error, receipt=None if outcome.error else outcome.receipt
            )

        try:
            settled = await persist(self._clock, settle)
        except Stale as stale:
            # It was decided elsewhere while the store was away, or our own first answer was lost.
            log.info("segment %s: %s", segment.id, stale)
            return not outcome.error and await self._is_paid(segment)
        return settled.state is SegmentState.COMMITTED

    async def _is_paid(self, segment: Segment) -> bool:
        try:
            found = await persist(self._clock, lambda: self._store.segments.get(segment.id))
        except NotFound:
            return False
        return found.state is SegmentState.COMMITTED

    async def _rest(self) -> None:
        """Wait for everything in flight on this node."""
        while self._commits or self._claiming:
            tasks = [commit.task for commit in self._commits.values()]
            await (asyncio.wait(tasks) if tasks else asyncio.sleep(_LOOK_AGAIN_S))

    async def _by_owner(self, sessions: Sequence[SessionId]) -> list[Sequence[SessionId]]:
        """Return sessions by whom they owe the oldest of what they owe."""
        groups: dict[str, list[SessionId]] = {}
        for session_id in sessions:
            if owed := await self._owed(session_id, None):
                groups.setdefault(owed[0].owner, []).append(session_id)
        return [*groups.values()]

    async def _flush(self, sessions: Sequence[SessionId]) -> None:
        """Commit sessions, several at a time."""
        waiting = iter(sessions)

        async def commit_each() -> None:
            for session_id in waiting:
                try:
                    await self.commit(session_id)
                except HoldfastError as error:
                    log.warning("cannot commit the memory of %s: %s", session_id, error)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._tuning.drain_commits_max, len(sessions))):
                group.create_task(commit_each())

    async def _flush_due(self, now_ms: int) -> None:
        """Pay everything else that is due, to all owners at once."""
        try:
            owners = await self._store.segments.owners_due(now_ms)
        except HoldfastError as error:
            log.warning("cannot look for memory segments that are due: %s", error)
            return
        async with asyncio.TaskGroup() as group:
            for owner in owners:
                group.create_task(self._flush_owner(owner, now_ms))

    async def _flush_owner(self, owner: str, now_ms: int) -> None:
        at_work: set[asyncio.Task[bool]] = set()
        try:
            while at_work := at_work | await self._claim(owner, now_ms, self._tuning.drain_commits_max - len(at_work)):
                _, at_work = await asyncio.wait(at_work, return_when=asyncio.FIRST_COMPLETED)
        except HoldfastError as error:
            log.warning("cannot claim memory segments: %s", error)
