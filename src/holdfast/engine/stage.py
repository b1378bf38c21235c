"""The stage of a running turn: everything an agent shows is journalled first, in small batches, and shown second."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, replace
from typing import TypeAlias, TypeVar

from holdfast.clock import Clock
from holdfast.core.effects import Call
from holdfast.core.events import ContextCompacted, Note, Reasoning, Text, TokensUsed
from holdfast.core.journal import DraftEntry
from holdfast.core.questions import Question
from holdfast.core.redaction import RedactedStream, Redaction
from holdfast.core.turns import Turn
from holdfast.core.usage import Usage
from holdfast.engine.backlog import Backlog
from holdfast.engine.batching import Batcher
from holdfast.engine.calls import Calls, Moves
from holdfast.engine.feed import Feed
from holdfast.engine.resting import Resting
from holdfast.engine.spool import SpoolFile
from holdfast.engine.steering import Steering
from holdfast.errors import Rejected
from holdfast.ids import CallId, TurnId
from holdfast.ports import StageTool, Use
from holdfast.store.journal import JournalStore
from holdfast.store.questions import QuestionStore

T = TypeVar("T")
Words: TypeAlias = type[Text] | type[Reasoning]

# An agent that is faster than the disk waits for it.
BUFFER_MAX_CHARS = 64 * 1024


class TurnStage:
    """What one running turn offers its agent."""

    def __init__(
        self,
        turn: Turn,
        *,
        journal: JournalStore,
        feed: Feed,
        clock: Clock,
        redaction: Redaction,
        batcher: Batcher,
        owner: str,
        questions: QuestionStore,
        calls: Sequence[Call] = (),
        answers: Mapping[str, str] | None = None,
        begins: Mapping[TurnId, int] | None = None,
        resting: Resting | None = None,
        spool: SpoolFile | None = None,
        steering: Steering | None = None,
    ) -> None:
        self._clock = clock
        self._redaction = redaction
        self._batcher = batcher
        # Where each turn that the agent was given begins in the journal, in the order of the turns.
        self._begins = begins or {}
        # An empty one counts as false.
        self._resting = Resting() if resting is None else resting
        self._calls = Calls(
            turn, owner=owner, questions=questions, redaction=redaction, clock=clock, record=self._record, calls=calls,
            answers=answers,
        )  # fmt: skip
        self._drafts: list[DraftEntry] = []
        # Words come often and one by one, so they are processed once for each batch.
        self._words: list[str] = []
        self._voice: Words = Text
        self._chars = 0
        self._streams: dict[Words, RedactedStream] = {kind: RedactedStream(redaction) for kind in (Text, Reasoning)}
        self._steering = steering
        self._dirty = asyncio.Event()
        self.spoke = False
        # Whether a step has come to its end in this attempt.
        self.advanced = False
        self._writing = asyncio.Lock()
        self._backlog = Backlog(turn, journal=journal, feed=feed, clock=clock, file=spool, wake=self._dirty.set)

    @property
    def turn(self) -> Turn:
        """The turn as the store knows it; it moves with every write."""
        return self._backlog.turn

    async def say(self, text: str) -> None:
        self.spoke = True
        await self._stream(Text, text)

    async def think(self, text: str) -> None:
        await self._stream(Reasoning, text)

    async def heed(self) -> list[str]:
        if self._steering is None or self._backlog.is_behind() or not await self._steering.is_wanted(self.turn):
            return []
        async with self._writing:
            # What was said before the message stands before it, so the store must have it first.
            await self._backlog.put(self.take_rest())
            await self._backlog.caught_up()
            joined = await self._backlog.move(self._steering.join)
        return [await self._steering.heard(entry) for entry in joined]

    async def use(self, tool: StageTool, call_id: CallId, args: Mapping[str, object]) -> Call:
        return (await self.use_all([Use(tool=tool, call_id=call_id, args=args)]))[0]

    async def use_all(self, uses: Sequence[Use]) -> list[Call]:
        self.advanced = True
        return await self._calls.make(uses)

    async def ask(self, question: Question) -> str:
        return self._calls.answer(question)

    async def spend(self, used: Usage) -> None:
        self.advanced = True
        # Nothing waits for it: it is durable with the next write.
        self._gather()
        self._drafts.append(DraftEntry(at=self._clock.now_ms(), event=TokensUsed(**asdict(used))))
        self._dirty.set()

    async def note(self, text: str) -> None:
        note = Note(text=self._redaction.text(text))
        await self._record([DraftEntry(at=self._clock.now_ms(), event=note)])

    async def compact(self, summary: str, through: TurnId) -> None:
        turns = list(self._begins)
        if through not in turns[: turns.index(self.turn.id)]:
            raise Rejected(f"turn {through} is not before this one, so no summary can stand for it")
        after = self._begins[turns[turns.index(through) + 1]] - 1
        compacted = ContextCompacted(text=self._redaction.text(summary), through=through, after=after)
        await self._record([DraftEntry(at=self._clock.now_ms(), event=compacted)])

    def rest(self) -> AbstractAsyncContextManager[None]:
        return self._resting.rest(self.turn.id)

    async def keep_flushing(self) -> None:
        """Write the first entry at once and later ones in batches, until cancelled."""
        while True:
            await self._dirty.wait()
            if wait_ms := self._batcher.wait_ms(self._clock.monotonic_ms()):
                await self._clock.sleep_ms(wait_ms)
            await self.flush()
            self._batcher.wrote(self._clock.monotonic_ms())

    @asynccontextmanager
    async def at_rest(self) -> AsyncGenerator[None]:
        """Hold every write off: none is half done when this is entered, none begins before it is left."""
        async with self._writing:
            yield

    async def flush(self) -> None:
        """Make everything shown so far durable."""
        async with self._writing:
            durable = await self._backlog.put(self._take())
        if not durable:
            await self._backlog.caught_up()

    def take_rest(self) -> tuple[DraftEntry, ...]:
        """Return what is not written yet, with what might have become a secret; it belongs before the next entry."""
        self._gather()
        for kind, stream in self._streams.items():
            self._put(kind, stream.flush())
        return tuple(self._take())

    async def last_words(self) -> tuple[DraftEntry, ...]:
        """Return what is not written yet, which the store takes together with the end of the turn.

        Raises `DiskFull` where it had no room for something that belongs before that.
        """
        if self._backlog.is_behind():
            async with self._writing:
                await self._backlog.put(self.take_rest())
            await self._backlog.caught_up()
        rest = self.take_rest()
        self._backlog.hold(rest)
        return rest

    async def keep(self) -> None:
        """Keep the last words on our own disk: the store is away, and the end of the turn is repeated until it is back."""
        await self._backlog.keep()

    async def ended(self) -> None:
        """Forget the last words: the store has them, with the end of the turn."""
        await self._backlog.clear()

    async def rescue(self) -> None:
        """Let the store take everything said so far once it has room for it; it had none, and the agent has stopped."""
        await self._backlog.rescue(self.take_rest())

    async def leave(self) -> None:
        """Stop; what the store has not taken is left on disk, if there is a place for it."""
        await self._backlog.leave(self.take_rest())

    async def _stream(self, kind: Words, text: str) -> None:
        if not text:
            return
        if kind is not self._voice:
            self._gather()
            self._put(self._voice, self._streams[self._voice].flush())
            self._voice = kind
        self._words.append(text)
        self._chars += len(text)
        self._dirty.set()
        if self._chars > BUFFER_MAX_CHARS:
            await self.flush()

    def _gather(self) -> None:
        """Make an entry of the words that have come."""
        if self._words:
            text, self._words = "".join(self._words), []
            self._put(self._voice, self._streams[self._voice].feed(text))

    def _put(self, kind: Words, text: str) -> None:
        if not text:
            return
        last = self._drafts[-1] if self._drafts else None
        if last and isinstance(last.event, kind):
            self._drafts[-1] = replace(last, event=kind(text=f"{last.event.text}{text}"))
        else:
            self._drafts.append(DraftEntry(at=self._clock.now_ms(), event=kind(text=text)))
        self._dirty.set()

    def _take(self) -> list[DraftEntry]:
        self._gather()
        drafts, self._drafts = self._drafts, []
        self._chars = 0
        self._dirty.clear()
        return drafts

    async def _record(self, drafts: Sequence[DraftEntry], moves: Moves = ()) -> None:
        async with self._writing:
            durable = await self._backlog.put([*self.take_rest(), *drafts], moves)
        if not durable:
            await self._backlog.caught_up()
