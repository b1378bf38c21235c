"""How an attempt of a turn comes to rest: it finishes, waits for a person or for its model, or is interrupted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.core import notes
from holdfast.core.delivery import Delivery
from holdfast.core.ending import Ending
from holdfast.core.events import Note, TurnDeferred
from holdfast.core.journal import DraftEntry, Entry
from holdfast.core.outages import MODEL, retry_at
from holdfast.core.questions import Question
from holdfast.core.turns import Cause, Turn, TurnEvent
from holdfast.engine.calls import Parked
from holdfast.engine.feed import Feed
from holdfast.engine.node_context import NodeContext
from holdfast.engine.persistence import persist
from holdfast.engine.stage import TurnStage
from holdfast.errors import ModelUnavailable, Unavailable
from holdfast.ids import new_delivery_id, new_segment_id
from holdfast.ports import AskOperator, Bindings, Carrier, ask_nowhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Endings:
    """Brings attempts to rest in the store, with what is to be sent and remembered."""

    node: NodeContext
    feed: Feed
    carriers: Mapping[str, Carrier]
    memory: Bindings | None
    # Asks the operator what is asked in no chat.
    ask_operator: AskOperator = ask_nowhere
    # How long a turn waits for a model that cannot answer.
    model_wait_ms: int

    async def finish(self, stage: TurnStage, text: str) -> None:
        """Complete a turn with its answer."""
        await self._finish(stage, TurnEvent.FINISH, text=self.node.redaction.text(text))

    async def fail(self, stage: TurnStage, error: str, cause: Cause | None = None) -> None:
        """End a turn with what went wrong."""
        await self._finish(stage, TurnEvent.FAIL, error=error, cause=cause)

    async def park(self, stage: TurnStage, parked: Parked) -> None:
        """Let a turn wait for a person, and send the question."""
        draft, question, calls = parked.draft, parked.question, parked.calls
        said = [*await stage.last_words(), draft]
        asking = await self._asking(stage.turn, question)
        await self._end(stage, lambda: self.node.store.turns.park(stage.turn, said, question, calls, asking))

    async def wait_for_model(self, stage: TurnStage, error: ModelUnavailable, since: int | None) -> None:
        """Put the turn away until its model may answer, and say so once; or fail, where it has waited long enough."""
        now, limit_ms = self.node.clock.now_ms(), self.model_wait_ms
        reason = self.node.redaction.text(str(error))
        since = None if stage.advanced else since
        again_at = retry_at(stage.turn.mode, since, now, limit_ms, error.retry_after_s)
        if again_at is None:
            reason = notes.waited_in_vain(reason) if since is not None else reason
            await self.fail(stage, reason, Cause.MODEL_UNAVAILABLE)
            return
        note = Note(text=notes.waits_for_model(reason, limit_ms), waiting=MODEL)
        said = list(await stage.last_words())
        if since is None:
            said.append(DraftEntry(at=now, event=note))
        # Readers of the journal see each wait, and when it ends.
        said.append(DraftEntry(at=now, event=TurnDeferred(error=reason, retry_at=again_at)))
        await self._end(stage, lambda: self.node.store.turns.defer(stage.turn, said, again_at, now))

    async def interrupt(self, turn: Turn, cause: Cause) -> None:
        """Interrupt a turn whose worker cannot go on."""

        async def interrupted() -> None:
            now = self.node.clock.now_ms()
            await self.node.store.settlement.interrupt(self.node.id, [turn.id], cause, self.node.policy, now)

        await persist(self.node.clock, interrupted)

    async def _finish(
        self, stage: TurnStage, event: TurnEvent, *, text: str = "", error: str | None = None, cause: str | None = None
    ) -> None:
        now = self.node.clock.now_ms()
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
        await self._end(stage, lambda: self.node.store.settlement.finish(stage.turn, ending))

    async def _end(self, stage: TurnStage, write: Callable[[], Awaitable[tuple[Turn, list[Entry]]]]) -> None:
        """Let the store take the end of an attempt; while it is away, the last words are on the disk of this node."""
        try:
            _, entries = await write()
        except Unavailable:
            await stage.keep()
            _, entries = await persist(self.node.clock, write, has_failed=True)
        await stage.ended()
        self.feed.publish(entries)

    async def _asking(self, turn: Turn, question: Question) -> Sequence[Delivery]:
        """Return the messages of a question: to the chat of the turn, of the one that it works for, or to the operator."""
        heard = turn
        while heard.reply_to is None and heard.parent_turn_id is not None:
            parent = heard.parent_turn_id
            heard = await persist(self.node.clock, lambda parent=parent: self.node.store.turns.get(parent))
        now, asked = self.node.clock.now_ms(), ()
        if heard.reply_to is not None and heard.delivers_later:
            carrier = self.carriers.get(heard.reply_to.partition(":")[0])
            asked = carrier.ask(turn, question, heard.reply_to, now) if carrier else ()
        return asked or self.ask_operator(turn, question, now)

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
