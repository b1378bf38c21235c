"""A worker takes one claimed turn from its start to its rest."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from holdfast.clock import Clock
from holdfast.core import notes
from holdfast.core.delivery import Delivery
from holdfast.core.ending import Ending
from holdfast.core.events import ApprovalAnswered, MessageJoined, Note, TurnAccepted, TurnDeferred
from holdfast.core.intake import Image
from holdfast.core.journal import DraftEntry, Entry, acceptance
from holdfast.core.outages import MODEL, retry_at, waiting_since
from holdfast.core.questions import Question
from holdfast.core.redaction import Redaction
from holdfast.core.transcript import Role, cut_off_by, tool_unanswered
from holdfast.core.turns import Cause, Policy, Turn, TurnEvent, TurnState
from holdfast.engine.batching import Batching
from holdfast.engine.calls import Parked
from holdfast.engine.feed import Feed
from holdfast.engine.histories import Histories, History
from holdfast.engine.persistence import persist
from holdfast.engine.recall import Recall
from holdfast.engine.resting import Resting
from holdfast.engine.spool import Spool
from holdfast.engine.stage import TurnStage
from holdfast.engine.steering import Steering
from holdfast.engine.tuning import Tuning
from holdfast.engine.turn_notes import TurnNotes
from holdfast.errors import DiskFull, Fatal, HoldfastError, ModelUnavailable, Stale, Unavailable
from holdfast.ids import NodeId, SessionId, TurnId, new_delivery_id, new_segment_id
from holdfast.ports import Agent, AskOperator, Assignment, Bindings, Carrier, ask_nowhere
from holdfast.store.journal import Brief
from holdfast.store.store import Store

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """Everything a turn needs while it runs."""

    node_id: NodeId
    store: Store
    agent: Agent
    feed: Feed
    carriers: Mapping[str, Carrier]
    memory: Bindings | None
    recall: Recall
    turn_notes: TurnNotes
    policy: Policy
    # How long a turn waits for a model that cannot answer.
    model_wait_ms: int
    tuning: Tuning
    redaction: Redaction
    clock: Clock
    batching: Batching
    histories: Histories
    ask_operator: AskOperator = ask_nowhere
    spool: Spool | None = None
    # Sessions whose running turn should look for messages that want to join it.
    nudged: set[SessionId] = field(default_factory=set[SessionId])
    resting: Resting = field(default_factory=Resting)

    async def run(self, turn: Turn) -> None:
        """Run a claimed turn.  It always ends in a state that its user can see, or is queued again."""
        if turn.state is not TurnState.QUEUED:
            await self._go(turn, self._read(turn))
            return
        # Both at once, because the store may be far away.  The attempt that begins is the one behind the last.
        reading = asyncio.create_task(self._read(replace(turn, attempt=turn.attempt + 1)))
        try:
            if (started := await self._start(turn)) is not None:
                await self._go(started[0], self._caught_up(reading, *started))
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _start(self, turn: Turn) -> tuple[Turn, int] | None:
        """Begin a claimed turn; returns it with its place in the journal, None when it is not our time."""
        try:
            started, entries = await persist(self.clock, lambda: self.store.turns.start(turn, self.clock.now_ms()))
        except Stale:
            # Another turn of the session is live, or this one was taken away.
            await persist(self.clock, lambda: self.store.turns.release(turn))
            return None
        self.feed.publish(entries)
        return started, entries[0].seq

    async def _caught_up(self, reading: Awaitable[tuple[Brief, History]], turn: Turn, seq: int) -> tuple[Brief, History]:
        """Read again where something came in before the turn began and after it was read, such as an answer's last words."""
        brief, history = await reading
        newest = history.journal[-1].seq if history.journal else history.after
        return (brief, history) if newest >= seq - 1 else await self._read(turn)

    async def _read(self, turn: Turn) -> tuple[Brief, History]:
        return await persist(self.clock, lambda: self.histories.read(self.store.journal, turn))

    async def _go(self, turn: Turn, reading: Awaitable[tuple[Brief, History]]) -> None:
        try:
            await self._perform(turn, reading)
        except Stale as stale:
            log.info("turn %s was taken away: %s", turn.id, stale)
        except Fatal:
            raise
        except Exception:  # The edge of a turn: a bug in it is like a crash of its worker, and ends the same way.
            log.exception("turn %s crashed", turn.id)
            await persist(self.clock, lambda: self._interrupt(turn, Cause.CRASH))

    async def _perform(self, turn: Turn, reading: Awaitable[tuple[Brief, History]]) -> None:
        brief, history = await reading
        entries = history.entries
        work = await self._assignment(turn, brief, history)
        stage = TurnStage(
            turn,
            journal=self.store.journal,
            feed=self.feed,
            clock=self.clock,
            redaction=self.redaction,
            batcher=(batcher := self.batching.join()),
            owner=work.session.owner,
            questions=self.store.questions,
            calls=work.calls,
            answers=_answers(turn, entries),
            begins=_begins(entries),
            resting=self.resting,
            steering=Steering(self.store.turns, self.nudged, self.tuning.poll_ms, self.clock),
            spool=self.spool.file(self.node_id, turn, self.tuning.spool_max_bytes) if self.spool else None,
        )
        try:
            await self._play(work, stage, waiting_since(entries, turn.id))
        except DiskFull as full:
            log.warning("turn %s is interrupted: %s", turn.id, full)
            await stage.rescue()
            await persist(self.clock, lambda: self._interrupt(turn, Cause.DISK_FULL))
        finally:
            batcher.leave()
            await stage.leave()

    async def _play(self, work: Assignment, stage: TurnStage, since: int | None) -> None:
        """Let the agent act, and bring the turn to the end that it calls for; it waits for its model `since` then.

        Raises `DiskFull` where the store had no room for what it said: such a turn has no end yet.
        """
        try:
            text = await (self._repeat(work.turn.id) if work.turn.verbatim else self._act(work, stage))
        except Parked as parked:
            draft, question, calls = parked.draft, parked.question, parked.calls
            said = [*await stage.last_words(), draft]
            asking = await self._asking(stage.turn, question)
            await self._end(stage, lambda: self.store.turns.park(stage.turn, said, question, calls, asking))
        except (Stale, Fatal):
            raise
        except ModelUnavailable as error:
            await self._wait_for_model(stage, error, since)
        except HoldfastError as error:
            await self._finish(stage, TurnEvent.FAIL, error=self.redaction.text(str(error)))
        else:
            if not stage.spoke and not _spoke_before(work):
                # Only what is in the journal is in the transcript, also for an agent that does not stream.
                await stage.say(text)
            await self._finish(stage, TurnEvent.FINISH, text=self.redaction.text(text))
            if work.turn.remembers:
                self.turn_notes.tell(work.session, work.turn.id)

    async def _wait_for_model(self, stage: TurnStage, error: ModelUnavailable, since: int | None) -> None:
        """Put the turn away until its model may answer, and say so once; or fail, where it has waited long enough."""
        now, limit_ms, reason = self.clock.now_ms(), self.model_wait_ms, self.redaction.text(str(error))
        since = None if stage.advanced else since
        again_at = retry_at(stage.turn.mode, since, now, limit_ms, error.retry_after_s)
        if again_at is None:
            reason = notes.waited_in_vain(reason) if since is not None else reason
            await self._finish(stage, TurnEvent.FAIL, error=reason, cause=Cause.MODEL_UNAVAILABLE)
            return
        note = Note(text=notes.waits_for_model(reason, limit_ms), waiting=MODEL)
        said = list(await stage.last_words())
        if since is None:
            said.append(DraftEntry(at=now, event=note))
        # Readers of the journal see each wait, and when it ends.
        said.append(DraftEntry(at=now, event=TurnDeferred(error=reason, retry_at=again_at)))
        await self._end(stage, lambda: self.store.turns.defer(stage.turn, said, again_at, now))

    async def _asking(self, turn: Turn, question: Question) -> Sequence[Delivery]:
        """Return the messages of a question: to the chat of the turn, of the one that it works for, or to the operator."""
        heard = turn
        while heard.reply_to is None and heard.parent_turn_id is not None:
            parent = heard.parent_turn_id
            heard = await persist(self.clock, lambda parent=parent: self.store.turns.get(parent))
        now, asked = self.clock.now_ms(), ()
        if heard.reply_to is not None and heard.delivers_later:
            carrier = self.carriers.get(heard.reply_to.partition(":")[0])
            asked = carrier.ask(turn, question, heard.reply_to, now) if carrier else ()
        return asked or self.ask_operator(turn, question, now)

    async def _repeat(self, turn_id: TurnId) -> str:
        """Answer a message with its own words."""
        return await persist(self.clock, lambda: self.store.turns.asked(turn_id))

    async def _act(self, work: Assignment, stage: TurnStage) -> str:
        """Let the agent act while what it shows is written behind it; either failing ends both."""
        flushing = asyncio.create_task(stage.keep_flushing())
        acting = asyncio.create_task(self.agent.run(work, stage))
        try:
            await asyncio.wait((flushing, acting), return_when=asyncio.FIRST_COMPLETED)
            if flushing.done():
                await flushing
            # A write cut in half could be durable without our knowing: let it end before the flushing does.
            async with stage.at_rest():
                if not flushing.cancel():
                    # The last words were refused, so the answer is not whole.
                    await flushing
            return await acting
        finally:
            for task in (acting, flushing):
                task.cancel()
            await asyncio.gather(acting, flushing, return_exceptions=True)

    async def _finish(
        self, stage: TurnStage, event: TurnEvent, *, text: str = "", error: str | None = None, cause: str | None = None
    ) -> None:
        now = self.clock.now_ms()
        ending = Ending(
            event=event,
            at=now,
            text=text,
            error=error,
            cause=cause,
            drafts=await stage.last_words(),
            deliveries=self._deliveries(stage.turn, text if error is None else notes.failed(error), now),
            memory_owner=self.memory.current.owner if self.memory and self.memory.current else None,
            segment_id=new_segment_id(now),
        )
        await self._end(stage, lambda: self.store.settlement.finish(stage.turn, ending))

    async def _end(self, stage: TurnStage, write: Callable[[], Awaitable[tuple[Turn, list[Entry]]]]) -> None:
        """Let the store take the end of an attempt; while it is away, the last words are on the disk of this node."""
        try:
            _, entries = await write()
        except Unavailable:
            await stage.keep()
            _, entries = await persist(self.clock, write, has_failed=True)
        await stage.ended()
        self.feed.publish(entries)

    def _deliveries(self, turn: Turn, text: str, now_ms: int) -> tuple[Delivery, ...]:
        if turn.reply_to is None:
            return ()
        carrier = self.carriers.get(turn.reply_to.partition(":")[0])
        parts = carrier.split(text) if carrier else [text]
        return tuple(
            Delivery(
                id=new_delivery_id(now_ms),
                turn_id=turn.id,
                session_id=turn.session_id,
                target=turn.reply_to,
                part=number,
                text=part,
                created_at=now_ms,
                due_at=now_ms,
            )
            for number, part in enumerate(parts, 1)
        )

    async def _interrupt(self, turn: Turn, cause: Cause) -> None:
        now = self.clock.now_ms()
        await self.store.settlement.interrupt(self.node_id, [turn.id], cause, self.policy, now)

    async def _assignment(self, turn: Turn, brief: Brief, history: History) -> Assignment:
        entries, items = history.entries, history.items
        accepted = acceptance(each for each in entries if each.turn_id == turn.id)
        text = accepted.text
        recalled = self.recall.ask(brief.session, turn, text)
        images = {turn_id: await self._images(turn_id) for turn_id in _pictured(entries, turn)}
        message = notes.before_message(
            notes.sent_long_ago(text, accepted.sent_at, self.clock.now_ms()),
            interrupted_by=cut_off_by(entries),
            tool_unanswered=tool_unanswered(items, turn.id),
        )
        return Assignment(
            session=brief.session,
            turn=turn,
            message=message,
            history=items,
            calls=brief.calls,
            images=images.pop(turn.id, ()),
            earlier_images=images,
            recalled=recalled,
        )

    async def _images(self, turn_id: TurnId) -> tuple[Image, ...]:
        return tuple(await persist(self.clock, lambda: self.store.turns.images(turn_id)))


# Pictures are large, and what is asked about one is asked soon.
PICTURED_TURNS_MAX = 3


def _spoke_before(work: Assignment) -> bool:
    return any(item.turn_id == work.turn.id and item.role is Role.ASSISTANT for item in work.history)


def _pictured(entries: Sequence[Entry], turn: Turn) -> list[TurnId]:
    """Return the last turns up to this one whose message, or one that joined it, came with pictures."""
    joined = {entry.event.turn_id: entry.turn_id for entry in entries if isinstance(entry.event, MessageJoined)}
    accepted = [(entry.turn_id, entry.event) for entry in entries if isinstance(entry.event, TurnAccepted)]
    order = [turn_id for turn_id, _ in accepted]
    found = {joined.get(turn_id, turn_id) for turn_id, event in accepted if event.images}
    return [turn_id for turn_id in order[: order.index(turn.id) + 1] if turn_id in found][-PICTURED_TURNS_MAX:]


def _begins(entries: Sequence[Entry]) -> dict[TurnId, int]:
    return {entry.turn_id: entry.seq for entry in entries if isinstance(entry.event, TurnAccepted)}


def _answers(turn: Turn, entries: Sequence[Entry]) -> dict[str, str]:
    return {
        entry.event.question_id: entry.event.text
        for entry in entries
        if entry.turn_id == turn.id and isinstance(entry.event, ApprovalAnswered)
    }
