"""The engine as a whole: one node on one store."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from holdfast.clock import Clock, SystemClock
from holdfast.config import ONE_SHOT_DAYS, Config
from holdfast.core import notes
from holdfast.core.admission import Places
from holdfast.core.events import ApprovalAnswered
from holdfast.core.redaction import Redaction
from holdfast.core.report import BootReport
from holdfast.core.turns import Cause, OnCrash, Policy, Resume, Turn
from holdfast.engine.batching import Batching
from holdfast.engine.board import Board
from holdfast.engine.child_results import ChildResults
from holdfast.engine.committer import Committer
from holdfast.engine.dispatcher import Dispatcher
from holdfast.engine.endings import Endings
from holdfast.engine.evictor import Evictor
from holdfast.engine.expiry import Expiry
from holdfast.engine.feed import Feed
from holdfast.engine.heartbeat import Heartbeat
from holdfast.engine.histories import Histories
from holdfast.engine.inbox import Inbox
from holdfast.engine.indexer import Indexer
from holdfast.engine.inspector import Inspector
from holdfast.engine.janitor import Janitor
from holdfast.engine.late_entries import LateEntries
from holdfast.engine.live import LiveSessions
from holdfast.engine.node_context import NodeContext
from holdfast.engine.outbox import Outbox
from holdfast.engine.recall import Recall
from holdfast.engine.repair import Repair
from holdfast.engine.scheduler import Scheduler
from holdfast.engine.spool import Spool
from holdfast.engine.supervisor import supervise
from holdfast.engine.sweeper import Sweeper
from holdfast.engine.timekeeper import SteadyClock, Timekeeper
from holdfast.engine.tuning import Tuning
from holdfast.engine.turn_notes import TurnNotes
from holdfast.engine.worker import Worker
from holdfast.errors import HoldfastError, Unavailable
from holdfast.ids import NodeId, SessionId, TurnId, new_node_id
from holdfast.ports import Agent, AskOperator, Bindings, Carrier, Models, OneModel, ask_nowhere
from holdfast.store.store import Store

log = logging.getLogger(__name__)

# Deliveries and commits in flight at the end of a drain get this much more time: late is better than half-sent.
_LAST_GRACE_MS = 2_000
_ANNOUNCE_MAX_S = 2
# At the end of a command a person waits at a prompt, and a commit that was cut off is made again.
_RESTING_MAX_MS = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What an engine is built from."""

    store: Store
    agent: Agent
    carriers: Mapping[str, Carrier] = field(default_factory=dict[str, Carrier])
    ask_operator: AskOperator = ask_nowhere
    memory: Bindings | None = None
    models: Models = field(default_factory=OneModel)
    config: Config = field(default_factory=Config)
    tuning: Tuning = field(default_factory=Tuning)
    redaction: Redaction = field(default_factory=Redaction)
    clock: Clock = field(default_factory=SystemClock)
    # Names this node to others; made up if None.
    node_id: NodeId | None = None
    # The clock again, where it is one that is to be kept right.
    steady: SteadyClock | None = None
    # Where turns keep entries while the store is away; without it they wait.
    spool: Spool | None = None
    # Other components of this node; one that crashes is started again.
    components: Mapping[str, Callable[[], Awaitable[None]]] = field(
        default_factory=dict[str, "Callable[[], Awaitable[None]]"]
    )


class Engine:
    """One node: it joins the store when it runs, and leaves it when it stops."""

    def __init__(self, parts: Parts) -> None:
        store, memory, redaction, clock = parts.store, parts.memory, parts.redaction, parts.clock
        config, tuning = parts.config, parts.tuning
        node = NodeContext(
            id=parts.node_id or new_node_id(clock.now_ms()),
            store=store,
            clock=clock,
            tuning=tuning,
            policy=Policy(
                resume=Resume(config.gateway.resume),
                on_crash=OnCrash(config.gateway.on_crash),
                chats=frozenset(kind for kind, carrier in parts.carriers.items() if carrier.in_line),
            ),
            redaction=redaction,
            home=parts.spool.home_id if parts.spool else "",
        )
        self.node_id = node.id
        self.models = parts.models
        self.inbox = Inbox(store, config.gateway, config.sessions, redaction, clock, parts.models)
        self.feed = Feed(store.journal)
        self.board = Board(store.sessions)
        self.repair = Repair(store.recoveries, clock)
        self._parts = parts
        self._node = node
        self._recall = Recall(memory, config.memory, redaction, clock)
        self._turn_notes = TurnNotes(store, memory, tuning, redaction, clock)
        self.live = LiveSessions(config.memory.live_sessions)
        histories = Histories(self.live)
        worker = Worker(
            node=node,
            agent=parts.agent,
            feed=self.feed,
            endings=Endings(
                node=node,
                feed=self.feed,
                carriers=parts.carriers,
                memory=memory,
                ask_operator=parts.ask_operator,
                model_wait_ms=int(config.model.wait * 1000),
            ),
            recall=self._recall,
            turn_notes=self._turn_notes,
            batching=Batching(tuning.batch_ms),
            spool=parts.spool,
            histories=histories,
        )
        dedupes = frozenset(kind for kind, carrier in parts.carriers.items() if carrier.dedupes)
        self._sweeper = Sweeper(node, dedupes)
        places = Places(total=config.gateway.max_running, tenant_max=config.limits.running)
        self._dispatcher = Dispatcher(node, worker, places, self._sweeper.recovered)
        self._outbox = Outbox(node, parts.carriers)
        self._committer = Committer(node, memory, config.memory)
        self._evictor = Evictor(node, self.live, parts.agent, self._committer, self._dispatcher, histories)
        # A channel that the operator does not name keeps its default.
        self._janitor = Janitor(store, {**ONE_SHOT_DAYS, **config.sessions.retention_days}, tuning, clock)
        self._indexer = Indexer(store.passages, tuning, clock)
        self._inspector = Inspector(store, tuning, clock)
        self._expiry = Expiry(store, tuning, clock)
        self._scheduler = Scheduler(store, tuning, clock)
        self._child_results = ChildResults(store, self.inbox.accept, tuning, clock)
        reconcilers = (self._dispatcher.reconcile, self._outbox.reconcile, self._committer.reconcile)
        self._heartbeat = Heartbeat(node, reconcilers)

    async def run(self) -> None:
        """Work until cancelled.  Raises `Fatal` when this process must not go on."""
        store = self._parts.store
        await store.nodes.join(self.node_id, self._parts.clock.now_ms(), self._node.home)
        deaf = store.wakes.listen(self._hear)
        components = {
            "heartbeat": self._heartbeat.run,
            "sweeper": self._sweeper.run,
            "dispatcher": self._dispatcher.run,
            "outbox": self._outbox.run,
            "committer": self._committer.run,
            "evictor": self._evictor.run,
            "recall": self._recall.run,
            "turn_notes": self._turn_notes.run,
            "janitor": self._janitor.run,
            "indexer": self._indexer.run,
            "inspector": self._inspector.run,
            "expiry": self._expiry.run,
            "scheduler": self._scheduler.run,
            "child_results": self._child_results.run,
            "board": self.board.run,
            **self._parts.components,
        }
        if spool := self._parts.spool:
            components["late_entries"] = LateEntries(self._node, spool, self._sweeper.recovered).run
        if steady := self._parts.steady:
            components["timekeeper"] = Timekeeper(self.node_id, store.nodes, steady, self._parts.tuning).run
        try:
            await supervise(components, self._parts.clock)
        finally:
            deaf()
            # The next node takes over what is still held; if the store is gone, it learns that from our silence.
            with contextlib.suppress(HoldfastError):
                await store.nodes.leave(self.node_id)

    async def recovered(self) -> None:
        """Return when everything that earlier nodes left behind has been taken over."""
        await self._sweeper.recovered.wait()

    @property
    def report(self) -> BootReport | None:
        """What was found at the start; None until everything has been taken over."""
        return self._sweeper.report

    async def drain(self, timeout_ms: int, cause: Cause = Cause.SHUTDOWN_TIMEOUT, *, is_boundary: bool = True) -> int:
        """Tell every active chat, start nothing more, and let what runs finish; returns how many turns were interrupted.

        Messages are accepted as before; they are answered after the next start.  As a boundary for memory, what the
        conversations at hand owe is paid as far as there is time, and the rest after the next start.
        """
        clock = self._parts.clock
        deadline = clock.monotonic_ms() + timeout_ms
        self._dispatcher.close()
        self._evictor.close()
        await self._announce(cause)
        cut = await self._dispatcher.drain(max(deadline - clock.monotonic_ms(), 0), cause)
        left_ms = max(deadline - clock.monotonic_ms(), _LAST_GRACE_MS) if timeout_ms else 0
        remembering = (
            self._committer.drain(self.live.sessions, left_ms)
            if is_boundary
            else self._committer.rest(min(left_ms, _RESTING_MAX_MS))
        )
        await asyncio.gather(self._outbox.drain(left_ms), remembering)
        return cut

    @property
    def memory(self) -> Bindings | None:
        """The providers that debts can be owed to; None where nothing is remembered."""
        return self._parts.memory

    async def commit(self, session_id: SessionId, *, wait: bool = True) -> bool:
        """Pay what a session owes to memory up to now; True when something was paid and nothing of it is left.

        With `wait` false, the answer is False while another commit of the session is in flight.
        """
        return await self._committer.commit(session_id, wait=wait)

    async def _announce(self, cause: Cause) -> None:
        banner, text = notes.BANNERS[cause]
        try:
            async with asyncio.timeout(_ANNOUNCE_MAX_S):
                now = self._parts.clock.now_ms()
                await self._parts.store.settlement.announce(self.node_id, banner, text, now, self._node.policy)
        except (Unavailable, TimeoutError) as error:
            # The drain goes on without the announcement.
            log.warning("cannot tell the active chats: %s", str(error) or "the store does not answer")

    async def cancel(self, turn_id: TurnId, cause: Cause = Cause.USER) -> Turn:
        """Cancel a turn, wherever it runs; what it has shown stays."""
        return await self._parts.store.settlement.cancel(turn_id, cause, self._parts.clock.now_ms())

    async def answer(self, turn_id: TurnId, question_id: str, text: str) -> Turn:
        """Answer the question a turn waits for; it goes on from there."""
        given = ApprovalAnswered(question_id=question_id, text=self._parts.redaction.text(text))
        return await self._parts.store.turns.answer(turn_id, given, self._parts.clock.now_ms())

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
                self.board.hint(SessionId(subject))
                self._dispatcher.nudge(SessionId(subject))
            case "appended":
                self.board.hint(SessionId(subject))
                # Entries of a turn that runs here are published as they are written, so its followers need not look.
                if not self._dispatcher.runs(SessionId(subject)):
                    self.feed.hint(SessionId(subject))
            case "gone":
                session_id, _, owner = subject.partition(":")
                self.board.gone(SessionId(session_id), owner)
                self._janitor.wake.set()
            case "damage":
                self._inspector.wake.set()
            case "missed":
                self.board.miss()
            case "cancelled":
                self._dispatcher.stop(TurnId(subject))
            case _:
                pass
