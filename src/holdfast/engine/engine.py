"""The engine as a whole: one node on one store."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.clock import Clock, SystemClock
from holdfast.core.journal import Draft, Kind
from holdfast.core.redaction import Redaction
from holdfast.core.turns import Cause, Turn
from holdfast.engine.committer import Committer
from holdfast.engine.dispatcher import Dispatcher
from holdfast.engine.feed import Feed
from holdfast.engine.heart import Heart
from holdfast.engine.inbox import Inbox
from holdfast.engine.janitor import Janitor
from holdfast.engine.outbox import Outbox
from holdfast.engine.settings import Settings
from holdfast.engine.supervisor import supervise
from holdfast.engine.sweeper import Sweeper
from holdfast.engine.worker import Worker
from holdfast.errors import HoldfastError
from holdfast.ids import SessionId, TurnId, new_node_id
from holdfast.ports import Agent, Carrier, MemoryProvider, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the composition root gives an engine."""

    store: Store
    agent: Agent
    carriers: Mapping[str, Carrier] = field(default_factory=dict[str, Carrier])
    memory: MemoryProvider | None = None
    settings: Settings = field(default_factory=Settings)
    redaction: Redaction = field(default_factory=Redaction)
    clock: Clock = field(default_factory=SystemClock)


class Engine:
    """One node: it joins the store when it runs, and leaves it when it stops."""

    def __init__(self, parts: Parts) -> None:
        clock, settings, store = parts.clock, parts.settings, parts.store
        self.node_id = new_node_id(clock.now_ms())
        self.inbox = Inbox(store, parts.redaction, clock)
        self.feed = Feed(store.journal)
        self._parts = parts
        worker = Worker(
            node_id=self.node_id,
            store=store,
            agent=parts.agent,
            feed=self.feed,
            carriers=parts.carriers,
            memory=parts.memory,
            settings=settings,
            redaction=parts.redaction,
            clock=clock,
        )
        self._dispatcher = Dispatcher(self.node_id, store, worker, settings, clock)
        self._outbox = Outbox(self.node_id, store, parts.carriers, settings, parts.redaction, clock)
        self._committer = Committer(self.node_id, store, parts.memory, settings, parts.redaction, clock)
        self._sweeper = Sweeper(self.node_id, store, settings, clock)
        self._janitor = Janitor(store, settings, clock)
        reconcilers = (self._dispatcher.reconcile, self._outbox.reconcile, self._committer.reconcile)
        self._heart = Heart(self.node_id, store, reconcilers, settings, clock)

    async def run(self) -> None:
        """Work until cancelled.  Raises `Fatal` when this process must not go on."""
        store = self._parts.store
        await store.nodes.join(self.node_id, self._parts.clock.now_ms())
        deaf = store.wakes.listen(self._hear)
        components = {
            "heart": self._heart.run,
            "sweeper": self._sweeper.run,
            "dispatcher": self._dispatcher.run,
            "outbox": self._outbox.run,
            "committer": self._committer.run,
            "janitor": self._janitor.run,
        }
        try:
            await supervise(components, self._parts.clock)
        finally:
            deaf()
            # What is still held is for the next node; if the store is gone, our silence says the same.
            with contextlib.suppress(HoldfastError):
                await store.nodes.leave(self.node_id)

    async def recovered(self) -> None:
        """Return when everything that earlier nodes left behind has been taken over."""
        await self._sweeper.recovered.wait()

    async def drain(self, timeout_ms: int, cause: Cause = Cause.SHUTDOWN_TIMEOUT) -> int:
        """Start nothing more and let what runs finish; returns how many turns the deadline interrupted."""
        return await self._dispatcher.drain(timeout_ms, cause)

    async def cancel(self, turn_id: TurnId, cause: Cause = Cause.USER) -> Turn:
        """Cancel a turn, wherever it runs; what it has shown stays."""
        return await self._parts.store.settlement.cancel(turn_id, cause, self._parts.clock.now_ms())

    async def answer(self, turn_id: TurnId, question_id: str, text: str) -> Turn:
        """Answer the question a turn waits for; it goes on from there."""
        data = {"question_id": question_id, "text": self._parts.redaction.text(text)}
        draft = Draft(kind=Kind.APPROVAL_ANSWERED, at=self._parts.clock.now_ms(), data=data)
        return await self._parts.store.turns.answer(turn_id, draft)

    @property
    def running(self) -> int:
        """How many turns run on this node."""
        return self._dispatcher.running

    def _hear(self, topic: str) -> None:
        name, _, subject = topic.partition(":")
        match name:
            case "turns":
                self._dispatcher.wake.set()
            case "deliveries":
                self._outbox.wake.set()
            case "segments":
                self._committer.wake.set()
            case "session":
                self.feed.hint(SessionId(subject))
            case "appended":
                # What runs here is published as it is written, so its followers need not look.
                if not self._dispatcher.runs(SessionId(subject)):
                    self.feed.hint(SessionId(subject))
            case "cancelled":
                self._dispatcher.stop(TurnId(subject))
            case _:
                pass
