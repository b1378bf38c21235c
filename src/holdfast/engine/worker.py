"""A worker takes one claimed turn from its start to its rest."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field, replace

from holdfast.core import notes
from holdfast.core.events import ApprovalAnswered, MessageJoined, TurnAccepted
from holdfast.core.intake import Image
from holdfast.core.journal import Entry, acceptance
from holdfast.core.outages import waiting_since
from holdfast.core.transcript import Role, cut_off_by, tool_unanswered
from holdfast.core.turns import Cause, Turn, TurnState
from holdfast.engine.batching import Batching
from holdfast.engine.calls import Parked
from holdfast.engine.endings import Endings
from holdfast.engine.feed import Feed
from holdfast.engine.histories import Histories, History
from holdfast.engine.node_context import NodeContext
from holdfast.engine.persistence import persist
from holdfast.engine.recall import Recall
from holdfast.engine.resting import Resting
from holdfast.engine.spool import Spool
from holdfast.engine.stage import TurnStage
from holdfast.engine.steering import Steering
from holdfast.engine.turn_notes import TurnNotes
from holdfast.errors import DiskFull, Fatal, HoldfastError, ModelUnavailable, Stale
from holdfast.ids import SessionId, TurnId
from holdfast.ports import Agent, Assignment
from holdfast.store.journal import Brief

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """Everything a turn needs while it runs."""

    node: NodeContext
    agent: Agent
    feed: Feed
    endings: Endings
    recall: Recall
    turn_notes: TurnNotes
    batching: Batching
    histories: Histories
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
            started, entries = await persist(
                self.node.clock, lambda: self.node.store.turns.start(turn, self.node.clock.now_ms())
            )
        except Stale:
            # Another turn of the session is live, or this one was taken away.
            await persist(self.node.clock, lambda: self.node.store.turns.release(turn))
            return None
        self.feed.publish(entries)
        return started, entries[0].seq

    async def _caught_up(self, reading: Awaitable[tuple[Brief, History]], turn: Turn, seq: int) -> tuple[Brief, History]:
        """Read again where something came in before the turn began and after it was read, such as an answer's last words."""
        brief, history = await reading
        newest = history.journal[-1].seq if history.journal else history.after
        return (brief, history) if newest >= seq - 1 else await self._read(turn)

    async def _read(self, turn: Turn) -> tuple[Brief, History]:
        return await persist(self.node.clock, lambda: self.histories.read(self.node.store.journal, turn))

    async def _go(self, turn: Turn, reading: Awaitable[tuple[Brief, History]]) -> None:
        try:
            await self._perform(turn, reading)
        except Stale as stale:
            log.info("turn %s was taken away: %s", turn.id, stale)
        except Fatal:
            raise
        except Exception:  # The edge of a turn: a bug in it is like a crash of its worker, and ends the same way.
            log.exception("turn %s crashed", turn.id)
            await self.endings.interrupt(turn, Cause.CRASH)

    async def _perform(self, turn: Turn, reading: Awaitable[tuple[Brief, History]]) -> None:
        brief, history = await reading
        entries = history.entries
        work = await self._assignment(turn, brief, history)
        stage = TurnStage(
            turn,
            journal=self.node.store.journal,
            feed=self.feed,
            clock=self.node.clock,
            redaction=self.node.redaction,
            batcher=(batcher := self.batching.join()),
            owner=work.session.owner,
            questions=self.node.store.questions,
            calls=work.calls,
            answers=_answers(turn, entries),
            begins=_begins(entries),
            resting=self.resting,
            steering=Steering(self.node.store, self.nudged, self.node.tuning.poll_ms, self.node.clock),
            spool=self.spool.file(self.node.id, turn, self.node.tuning.spool_max_bytes) if self.spool else None,
        )
        try:
            await self._play(work, stage, waiting_since(entries, turn.id))
        except DiskFull as full:
            log.warning("turn %s is interrupted: %s", turn.id, full)
            await stage.rescue()
            await self.endings.interrupt(turn, Cause.DISK_FULL)
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
            await self.endings.park(stage, parked)
        except (Stale, Fatal):
            raise
        except ModelUnavailable as error:
            await self.endings.wait_for_model(stage, error, since)
        except HoldfastError as error:
            await self.endings.fail(stage, self.node.redaction.text(str(error)))
        else:
            if not stage.spoke and not _spoke_before(work):
                # Only what is in the journal is in the transcript, also for an agent that does not stream.
                await stage.say(text)
            await self.endings.finish(stage, text)
            if work.turn.remembers:
                self.turn_notes.tell(work.session, work.turn.id)

    async def _repeat(self, turn_id: TurnId) -> str:
        """Answer a message with its own words."""
        return await persist(self.node.clock, lambda: self.node.store.turns.asked(turn_id))

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

    async def _assignment(self, turn: Turn, brief: Brief, history: History) -> Assignment:
        entries, items = history.entries, history.items
        accepted = acceptance(each for each in entries if each.turn_id == turn.id)
        text = accepted.text
        recalled = self.recall.ask(brief.session, turn, text)
        images = {turn_id: await self._images(turn_id) for turn_id in _pictured(entries, turn)}
        message = notes.before_message(
            notes.sent_long_ago(text, accepted.sent_at, self.node.clock.now_ms()),
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
        return tuple(await persist(self.node.clock, lambda: self.node.store.turns.images(turn_id)))


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
