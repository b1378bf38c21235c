"""The stage of a running turn: everything an agent shows is journalled first, in small batches, and shown second."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeVar

import msgspec

from holdfast.clock import Clock
from holdfast.core import effects
from holdfast.core.effects import Call
from holdfast.core.journal import Draft, Kind
from holdfast.core.redaction import RedactedStream, Redaction
from holdfast.core.turns import Turn
from holdfast.engine.backlog import Backlog
from holdfast.engine.feed import Feed
from holdfast.engine.spool import SpoolFile
from holdfast.engine.steering import Steering
from holdfast.errors import HoldfastError
from holdfast.ids import CallId
from holdfast.ports import Journal, Tool

log = logging.getLogger(__name__)

T = TypeVar("T")

# An agent that is faster than the disk waits for it.
BUFFER_MAX_CHARS = 64 * 1024


class Parked(Exception):
    """The agent asked a person; the turn is put away until they answer."""

    def __init__(self, draft: Draft) -> None:
        super().__init__("waiting for an answer")
        self.draft = draft


class TurnStage:
    """What one running turn offers its agent."""

    def __init__(
        self,
        turn: Turn,
        *,
        journal: Journal,
        feed: Feed,
        clock: Clock,
        redaction: Redaction,
        batch_ms: int,
        calls: Sequence[Call] = (),
        answers: Mapping[str, str] | None = None,
        spool: SpoolFile | None = None,
        steering: Steering | None = None,
    ) -> None:
        self._clock = clock
        self._redaction = redaction
        self._batch_ms = batch_ms
        self._calls = {call.id: call for call in calls}
        self._answers = answers or {}
        self._drafts: list[Draft] = []
        self._chars = 0
        self._streams = {kind: RedactedStream(redaction) for kind in (Kind.TEXT, Kind.REASONING)}
        self._steering = steering
        self._dirty = asyncio.Event()
        self.spoke = False
        self._writing = asyncio.Lock()
        self._backlog = Backlog(turn, journal=journal, feed=feed, clock=clock, file=spool, wake=self._dirty.set)

    @property
    def turn(self) -> Turn:
        """The turn as the store knows it; it moves with every write."""
        return self._backlog.turn

    async def say(self, text: str) -> None:
        self.spoke = True
        await self._stream(Kind.TEXT, text)

    async def think(self, text: str) -> None:
        await self._stream(Kind.REASONING, text)

    async def heed(self) -> list[str]:
        if self._steering is None or self._backlog.is_behind() or not await self._steering.is_wanted(self.turn):
            return []
        async with self._writing:
            # What was said before the message stands before it, so the store must have it first.
            await self._backlog.put(self.take_rest())
            await self._backlog.caught_up()
            joined = await self._backlog.move(self._steering.join)
        return [str(entry.data.get("text", "")) for entry in joined]

    async def use(self, tool: Tool, call_id: CallId, args: Mapping[str, object]) -> Call:
        call = self._calls.get(call_id) or self._plan(tool, call_id, args)
        if call.state in effects.ENDED:
            return call
        started = call.on(effects.Event.START)
        card = {"call_id": call.id, "name": call.name}
        await self._record(Kind.TOOL_STARTED, {**card, "args": self._redaction.value(args)}, call, started)
        ended = await self._run(tool, args, started)
        result = {**card, "outcome": ended.state.value, "result": ended.result}
        await self._record(Kind.TOOL_FINISHED, result, started, ended)
        return ended

    async def ask(self, question_id: str, text: str) -> str:
        if (answer := self._answers.get(question_id)) is not None:
            return answer
        data = {"question_id": question_id, "text": self._redaction.text(text)}
        raise Parked(Draft(kind=Kind.APPROVAL_ASKED, at=self._clock.now_ms(), data=data))

    async def keep_flushing(self) -> None:
        """Write the first entry at once and later ones in batches, until cancelled."""
        while True:
            await self._dirty.wait()
            await self.flush()
            await self._clock.sleep_ms(self._batch_ms)

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

    def take_rest(self) -> tuple[Draft, ...]:
        """Return what is not written yet, with what might have become a secret; it belongs before whatever comes next."""
        for kind, stream in self._streams.items():
            self._put(kind, stream.flush())
        return tuple(self._take())

    async def settle(self, write: Callable[[tuple[Draft, ...]], Awaitable[T]]) -> T:
        """Let the store take the end of the turn, with what is not written yet before it."""
        if self._backlog.is_behind():
            async with self._writing:
                await self._backlog.put(self.take_rest())
            await self._backlog.caught_up()
        rest = self.take_rest()
        return await self._backlog.settle(rest, lambda: write(rest))

    async def leave(self) -> None:
        """Stop; what the store has not taken is left on disk, if there is a place for it."""
        await self._backlog.leave(self.take_rest())

    async def _stream(self, kind: Kind, text: str) -> None:
        for other, stream in self._streams.items():
            if other is not kind:
                self._put(other, stream.flush())
        self._put(kind, self._streams[kind].feed(text))
        if self._chars > BUFFER_MAX_CHARS:
            await self.flush()

    def _put(self, kind: Kind, text: str) -> None:
        if not text:
            return
        self._chars += len(text)
        if self._drafts and self._drafts[-1].kind is kind:
            last = self._drafts[-1]
            self._drafts[-1] = replace(last, data={"text": f"{last.data['text']}{text}"})
        else:
            self._drafts.append(Draft(kind=kind, at=self._clock.now_ms(), data={"text": text}))
        self._dirty.set()

    def _take(self) -> list[Draft]:
        drafts, self._drafts = self._drafts, []
        self._chars = 0
        self._dirty.clear()
        return drafts

    async def _record(self, kind: Kind, data: Mapping[str, object], before: Call, after: Call) -> None:
        async with self._writing:
            drafts = [*self.take_rest(), Draft(kind=kind, at=self._clock.now_ms(), data=data)]
            durable = await self._backlog.put(drafts, [(before, after)])
        if not durable:
            await self._backlog.caught_up()
        self._calls[after.id] = after

    def _plan(self, tool: Tool, call_id: CallId, args: Mapping[str, object]) -> Call:
        return Call(
            id=call_id,
            turn_id=self.turn.id,
            session_id=self.turn.session_id,
            name=tool.name,
            effect=tool.effect,
            args=msgspec.json.encode(self._redaction.value(args)).decode(),
        )

    async def _run(self, tool: Tool, args: Mapping[str, object], started: Call) -> Call:
        try:
            result = await tool.run(args, f"{started.turn_id}:{started.id}")
        except HoldfastError as error:
            return replace(started.on(effects.Event.FAIL), result=self._redaction.text(str(error)))
        except Exception:  # The edge to a tool, which may be a plugin: its bug is a failed call, not a failed turn.
            log.exception("tool %s failed", tool.name)
            return replace(started.on(effects.Event.FAIL), result=f"{tool.name} failed; see the gateway's log")
        return replace(started.on(effects.Event.SUCCEED), result=self._redaction.text(result))
