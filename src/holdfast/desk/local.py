"""The desk of this process: straight to its own store and engine."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast import __version__
from holdfast.channels.webhook.routes import Routes
from holdfast.clock import Clock
from holdfast.config import ServerConfig
from holdfast.core import images as pictures
from holdfast.core import processes
from holdfast.core.events import ApprovalAsked
from holdfast.core.intake import Busy, Image, Inbound, Receipt
from holdfast.core.journal import Entry
from holdfast.core.keys import LOCAL
from holdfast.core.redaction import Redaction
from holdfast.core.retries import Try
from holdfast.core.sessions import Glance, Session, SessionDeleted, SessionsMissed, SessionState
from holdfast.core.trust import trusts
from holdfast.core.turns import IN_FLIGHT, TurnState
from holdfast.desk.address import OPENING
from holdfast.desk.lifecycle import Lifecycle
from holdfast.desk.plans import SESSION_PREFIX, Change, Opening, Pruning, looks_like_id
from holdfast.desk.reading import StoreReading
from holdfast.desk.views import (
    AgentView,
    ClockOff,
    Health,
    JournalPage,
    Phase,
    Pruned,
    SessionView,
    Status,
    Stop,
    Transcript,
    TurnView,
)
from holdfast.engine.engine import Engine
from holdfast.errors import Damaged, IllegalMove, NotFound, NotTrusted, Rejected, Unavailable
from holdfast.ids import SessionId, TurnId, new_id, new_session_id
from holdfast.operations import pages
from holdfast.operations.approvals import Approvals
from holdfast.operations.caller import Caller
from holdfast.operations.deliveries import Deliveries
from holdfast.operations.jobs import Jobs
from holdfast.operations.keys import Keys
from holdfast.operations.logins import Logins
from holdfast.operations.memories import Commits, Memories
from holdfast.operations.processes import NoProcesses, Processes
from holdfast.operations.webhooks import Webhooks
from holdfast.ports import ProcessControl, Upload, Uploads
from holdfast.targets import Targets

if TYPE_CHECKING:
    # A command that is a gateway for a moment needs none of it.
    from holdfast.operations.upkeep import Upkeep

DAY_MS = 86_400_000
OPERATOR_ENDED = "operator"
STORE_PATIENCE_S = 2
# Anybody may ask how the gateway is; what exactly is damaged is for the operator.
DAMAGED = "the store is damaged; run: holdfast doctor"
# One request to prune ends after so long, well before any client gives it up.
PRUNING_MS = 2_000
NAME_MAX = 200
# What the agent takes as the wish to put a summary in the place of what it has read.
COMPRESS = "/compress"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalDesk(StoreReading):
    """The whole desk, over an engine that runs in this process."""

    engine: Engine
    lifecycle: Lifecycle
    clock: Clock
    control: ProcessControl = field(default_factory=NoProcesses)
    # Asked each time, because servers of tools come and go.
    describe: Callable[[], AgentView] = AgentView
    server: ServerConfig = field(default_factory=ServerConfig)
    targets: Targets = field(default_factory=lambda: Targets({}))
    routes: Routes | None = None
    redaction: Redaction = field(default_factory=Redaction)
    commits: Commits = field(default_factory=Commits)
    uploads: Uploads | None = None
    trusted_owners: Sequence[str] = ()
    care: Upkeep | None = None

    @property
    def approvals(self) -> Approvals:
        return Approvals(store=self.store, caller=self.caller)

    @property
    def processes(self) -> Processes:
        return Processes(store=self.store, caller=self.caller, control=self.control)

    @property
    def jobs(self) -> Jobs:
        return Jobs(store=self.store, caller=self.caller, clock=self.clock, targets=self.targets)

    @property
    def deliveries(self) -> Deliveries:
        return Deliveries(store=self.store, caller=self.caller, clock=self.clock)

    @property
    def memories(self) -> Memories:
        return Memories(
            store=self.store,
            caller=self.caller,
            clock=self.clock,
            engine=self.engine,
            bindings=self.engine.memory,
            commits=self.commits,
            redaction=self.redaction,
        )

    @property
    def keys(self) -> Keys:
        closed = bool(self.server.api_key or self.server.password)
        return Keys(store=self.store, clock=self.clock, closed=closed)

    @property
    def logins(self) -> Logins:
        life = self.lifecycle
        return Logins(
            store=self.store,
            caller=self.caller,
            clock=self.clock,
            password=self.server.password,
            url=life.url,
            process=life.process,
            opening=Path(life.home) / OPENING,
        )

    @property
    def webhooks(self) -> Webhooks:
        if self.routes is None:
            raise Unavailable("this gateway takes no webhooks")
        return Webhooks(
            store=self.store,
            configured=self.channels.webhook.routes,
            routes=self.routes,
            clock=self.clock,
            url=self.lifecycle.url,
            signing_secret=self.channels.url.secret,
        )

    @property
    def upkeep(self) -> Upkeep:
        if self.care is None:
            raise Unavailable("only a gateway that serves looks after itself; start one with: holdfast serve")
        return self.care

    def of(self, caller: Caller) -> LocalDesk:
        return self if caller == self.caller else replace(self, caller=caller)

    async def accept(self, message: Inbound) -> Receipt:
        return await self.engine.inbox.accept(message)

    async def seen(self, key: str) -> Receipt | None:
        return await self.store.intake.seen(key)

    async def rejoin(self, this: Try) -> Receipt | None:
        return await self.store.intake.rejoin(this, self.owner, self.clock.now_ms())

    async def heard(self, turn_ids: Sequence[TurnId]) -> None:
        await self.store.intake.heard(turn_ids)

    async def go_on(self, turn_id: TurnId) -> bool:
        await self._owned_turn(turn_id)
        with contextlib.suppress(IllegalMove):
            await self.store.turns.resume(turn_id, self.clock.now_ms())
            return True
        return False

    async def entries(self, turn_id: TurnId) -> list[Entry]:
        await self._owned_turn(turn_id)
        return await self.store.journal.read_turn(turn_id)

    async def is_last(self, turn_id: TurnId) -> bool:
        turn = await self._owned_turn(turn_id)
        last = await self.store.turns.last(turn.session_id)
        return last is not None and last.id == turn.id

    async def transcript(
        self, session_id: SessionId, *, cursor: str | None = None, limit: int | None = None, newest: bool = False
    ) -> Transcript:
        await self._owned(session_id)
        # Whoever reads looks once more for what a lost node may have left behind.
        await self.engine.repair.retry(session_id)
        return await StoreReading.transcript(self, session_id, cursor=cursor, limit=limit, newest=newest)

    async def journal(self, session_id: SessionId, *, cursor: str | None = None, limit: int = 30) -> JournalPage:
        await self._owned(session_id)
        await self.engine.repair.retry(session_id)
        return await StoreReading.journal(self, session_id, cursor=cursor, limit=limit)

    async def open(self, opening: Opening) -> SessionView:
        for text in (opening.key or "", opening.channel, opening.title or ""):
            _refuse_odd(text)
        if looks_like_id(opening.key or ""):
            raise Rejected(f"a key cannot begin with {SESSION_PREFIX!r}, because the ids of sessions do")
        now = self.clock.now_ms()
        await self._leave(opening.previous_session_id, now)
        channel = opening.channel or Opening().channel
        key = opening.key or new_id(channel, now)
        session = await self.store.sessions.open(self.owner, key, channel, new_session_id(now), now)
        if opening.title:
            return await self.change(session.id, Change(title=opening.title))
        return await self.session(session.id)

    async def _leave(self, session_id: SessionId | None, now_ms: int) -> None:
        """Close off what the session that is left owes to memory; one that is gone, or not ours, is nobody's boundary."""
        with contextlib.suppress(NotFound):
            if session_id:
                await self._owned(session_id)
                await self.store.segments.seal(session_id, now_ms)

    async def send(
        self,
        session_id: SessionId,
        text: str,
        key: str | None = None,
        busy: Busy | None = None,
        images: Sequence[Image] = (),
    ) -> Receipt:
        if not text.strip():
            raise Rejected("the message is empty")
        pictures.check(images)
        session = await self._owned(session_id)
        if session.one_shot and session.state is not SessionState.OPEN:
            raise IllegalMove(session.id, session.state, "take another message")
        return await self.engine.inbox.accept(
            Inbound(
                conversation=session.key,
                text=text,
                channel=session.channel,
                owner=self.owner,
                source=session.source,
                # The same key from somebody else, or for another session, is another message.
                dedupe_key=f"message:{self.owner}:{session_id}:{key}" if key else None,
                sent_as=key,
                busy=busy,
                images=tuple(images),
            )
        )

    async def upload(self, name: str, content: bytes) -> Upload:
        if not trusts(self.owner, self.trusted_owners):
            raise NotTrusted("files are handed in to the workspace, which is for those whom the operator trusts with it")
        if self.uploads is None:
            raise Unavailable("this gateway has no workspace")
        return await self.uploads.keep(name, content)

    async def compact(self, session_id: SessionId) -> Receipt:
        session = await self._owned(session_id)
        if session.state is not SessionState.OPEN:
            # Its next message would begin another session, with nothing to summarise.
            raise IllegalMove(session.id, session.state, "be compacted")
        return await self.send(session_id, COMPRESS, busy=Busy.QUEUE)

    async def follow(self, session_id: SessionId, after: int = 0) -> AsyncGenerator[Entry]:
        await self._owned(session_id)
        async with contextlib.aclosing(self.engine.feed.follow(session_id, after)) as entries:
            async for entry in entries:
                yield entry

    async def watch(self) -> AsyncGenerator[SessionView | SessionDeleted | SessionsMissed]:
        async with contextlib.aclosing(self.engine.board.watch(self.owner)) as sights:
            async for sight in sights:
                yield await self._view(sight) if isinstance(sight, Glance) else sight

    async def change(self, session_id: SessionId, change: Change) -> SessionView:
        _refuse_odd(change.title or "")
        await self._owned(session_id)
        await self.store.sessions.change(session_id, title=change.title, pinned=change.pinned, archived=change.archived)
        return await self.session(session_id)

    async def end(self, session_id: SessionId) -> SessionView:
        await self._owned(session_id)
        await self.store.settlement.end_session(session_id, OPERATOR_ENDED, self.clock.now_ms())
        return await self.session(session_id)

    async def suspend(self, session_id: SessionId) -> SessionView:
        await self._owned(session_id)
        await self.store.settlement.suspend_session(session_id, self.clock.now_ms())
        return await self.session(session_id)

    async def fork(self, session_id: SessionId, through: TurnId | None = None, before: TurnId | None = None) -> SessionView:
        if through and before:
            raise Rejected("a fork ends with a turn or before one: name it as through or as before, and not both")
        now = self.clock.now_ms()
        origin = await self._owned(session_id)
        copy = Session(
            id=new_session_id(now),
            key=new_id("fork", now),
            channel=origin.channel,
            owner=self.owner,
            one_shot=False,
            created_at=now,
            updated_at=now,
            source=origin.source,
            title=origin.title,
        )
        await self.store.sessions.fork(session_id, copy, through, before)
        return await self.session(copy.id)

    async def delete(self, session_id: SessionId) -> None:
        await self._owned(session_id)
        await self.store.sessions.delete(session_id, self.clock.now_ms())

    async def prune(self, pruning: Pruning) -> Pruned:
        until_ms = self.clock.monotonic_ms() + PRUNING_MS
        before, pruned = self.clock.now_ms() - int(pruning.older_than_days * DAY_MS), 0
        async with contextlib.aclosing(self.store.sessions.pruning(pruning.channel, before)) as steps:
            async for gone in steps:
                pruned += gone
                if self.clock.monotonic_ms() >= until_ms:
                    return Pruned(pruned=pruned, more=True)
        while await self.store.give_back():
            if self.clock.monotonic_ms() >= until_ms:
                return Pruned(pruned=pruned, more=True)
        return Pruned(pruned=pruned)

    async def cancel(self, turn_id: TurnId) -> TurnView:
        host_id = await self._host(turn_id)
        try:
            await self.engine.cancel(host_id)
        except IllegalMove as error:
            if await self._host(turn_id) != host_id:
                # It joined another turn in this very moment.
                return await self.cancel(turn_id)
            if error.state != TurnState.CANCELLED:
                raise
        return await self.turn(turn_id)

    async def retry(self, turn_id: TurnId) -> TurnView:
        receipt = await self.engine.inbox.again(await self._owned_turn(turn_id))
        return await self.turn(receipt.turn_id)

    async def answer(self, turn_id: TurnId, text: str, question_id: str | None = None) -> TurnView:
        turn = await self._owned_turn(turn_id)
        host_id = turn.joined_to or turn.id
        host = await self.engine.answer(host_id, question_id or await self._asked(host_id), text)
        # As it was answered, though it may have gone on by now.
        return TurnView.of(turn, host, await self.store.turns.delivered_at(host_id))

    async def health(self) -> Health:
        phase = self.lifecycle.phase
        return Health(
            version=__version__,
            node=self.engine.node_id,
            pid=os.getpid(),
            state=phase,
            ready=phase is Phase.READY,
            problem=DAMAGED if self.store.damage else None,
        )

    async def ready(self) -> Health:
        health = await self.health()
        try:
            async with asyncio.timeout(STORE_PATIENCE_S):
                await self.store.nodes.probe(self.engine.node_id)
                if self.store.damage:
                    # Most damage is in old rows, and is met only there.
                    await self.store.intake.rehearse(self.clock.now_ms())
        except Damaged:
            return replace(health, ready=False, problem=DAMAGED)
        except Unavailable as error:
            return replace(health, ready=False, problem=str(error))
        except TimeoutError:
            return replace(health, ready=False, problem="the store does not answer")
        return health

    async def status(self) -> Status:
        life = self.lifecycle
        glance = Status(
            pid=os.getpid(),
            node=self.engine.node_id,
            version=__version__,
            home="",
            url=life.url,
            store="",
            state=life.phase,
            ready=life.phase is Phase.READY,
            started_at=life.started_at,
            uptime_s=life.uptime_s,
            running=0,
        )
        if self.owner != LOCAL:
            # How much others ask, and what this machine is like, is the operator's to know.
            return glance
        running, report = self.engine.running, self.engine.report
        return await self._with_counts(
            replace(
                glance,
                home=life.home,
                store=life.store,
                running=running,
                agent=self.describe(),
                boot=report.lines() if report else (),
                drain=life.drain(running),
                damage=tuple(self.store.damage),
            )
        )

    async def stop(self, stop: Stop) -> None:
        self.lifecycle.ask(stop)

    async def _with_counts(self, glance: Status) -> Status:
        try:
            tally = await self.store.turns.tally()
            await self.store.nodes.probe(self.engine.node_id)
            obligations, debt = await self.store.catalog.obligations(), await self.memories.debt()
            questions = await self.store.questions.open(self.owner, limit=pages.SIZE_MAX)
            at_work = await self.store.processes.list(self.owner, state=processes.ProcessState.RUNNING, limit=pages.SIZE_MAX)
            off = await self.store.nodes.clocks_off()
        except Unavailable as error:
            return replace(glance, ready=False, problem=str(error))
        accepted = sum(tally.values())
        in_flight = sum(count for state, count in tally.items() if state in IN_FLIGHT)
        return replace(
            glance,
            accepted=accepted,
            settled=accepted - in_flight,
            in_flight=in_flight,
            turns=tally,
            obligations=replace(obligations, segments=debt.unpaid),
            memory=debt,
            questions=len(questions),
            processes=len(at_work),
            clocks_off=[ClockOff(node=node, off_ms=off_ms) for node, off_ms in off.items()],
        )

    async def _host(self, turn_id: TurnId) -> TurnId:
        """Return the turn in which a message is answered: its own, or the one that it joined."""
        turn = await self._owned_turn(turn_id)
        return turn.joined_to or turn.id

    async def _asked(self, turn_id: TurnId) -> str:
        entries = await self.store.journal.read_turn(turn_id)
        asked = [entry.event.question_id for entry in entries if isinstance(entry.event, ApprovalAsked)]
        return asked[-1] if asked else ""


def _refuse_odd(name: str) -> None:
    if not name.isprintable() or len(name) > NAME_MAX:
        raise Rejected(f"a name has printable characters only, {NAME_MAX} at most")
