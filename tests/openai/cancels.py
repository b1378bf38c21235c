"""Conversations whose answer is cancelled while the model speaks, and which then go on, as several readers see them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI
from tests.engine.world import until
from tests.openai.clients import MODEL, modelled
from tests.web.house import PATIENCE_S, House

# So fast that some words are never in the journal when the cancel comes.
_QUICK = "script: stream 4000 at 400"
# For longer than the pause between two looks for what workers have left on the disk.
_NEXT, NEXT_SAID = "script: stream 60 at 40", "".join(f" word{number}" for number in range(60))


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What readers got of one conversation: its two answers, and the events of its session in the order they came."""

    session_id: str
    # The turn that was cancelled.
    turn_id: str
    said: str
    said_next: str
    events: list[Any]


@contextlib.asynccontextmanager
async def cancelled_in_mid_stream(home: Path, count: int) -> AsyncIterator[tuple[House, AsyncOpenAI, list[Conversation]]]:
    """Lead so many conversations by each API at once; when they are over, nothing is left on the disk to be handed in."""
    async with modelled(home) as (house, client, _), asyncio.timeout(PATIENCE_S):
        both = [converse(house, client, each) for each in range(count) for converse in (_complete, _respond)]
        conversations = await asyncio.gather(*both)
        # The folder is made with the first words that a worker had to leave there.
        (folder,) = (home / "spool").iterdir()
        await until(lambda: not list(folder.iterdir()))
        yield house, client, conversations


async def _complete(house: House, client: AsyncOpenAI, number: int) -> Conversation:
    mine = client.with_options(default_headers={"X-Session-Key": f"chat {number}"})

    async def ask(text: str) -> Any:
        messages: Any = [{"role": "user", "content": text}]
        return await mine.chat.completions.create(model=MODEL, messages=messages, stream=True)

    async def words(stream: Any) -> AsyncIterator[str]:
        async for chunk in stream:
            yield chunk.choices[0].delta.content or ""

    first = await ask(_QUICK)
    session_id, turn_id = first.response.headers["x-session-id"], first.response.headers["x-turn-id"]
    async with _watching(house, session_id) as events:
        said = await _cut(house, turn_id, words(first))
        said_next = "".join([each async for each in words(await ask(_NEXT))])
    return Conversation(session_id=session_id, turn_id=turn_id, said=said, said_next=said_next, events=events)


async def _respond(house: House, client: AsyncOpenAI, _number: int) -> Conversation:
    async def words(stream: Any) -> AsyncIterator[str]:
        async for event in stream:
            if event.type == "response.output_text.delta":
                yield event.delta

    first = await client.responses.create(model=MODEL, input=_QUICK, stream=True)
    session_id, turn_id = first.response.headers["x-session-id"], first.response.headers["x-turn-id"]
    async with _watching(house, session_id) as events:
        said = await _cut(house, turn_id, words(first))
        goes_on = {"previous_response_id": f"resp_{turn_id}", "input": _NEXT}
        second: Any = await client.responses.create(model=MODEL, stream=True, **goes_on)
        said_next = "".join([each async for each in words(second)])
    return Conversation(session_id=session_id, turn_id=turn_id, said=said, said_next=said_next, events=events)


async def _cut(house: House, turn_id: str, words: AsyncIterator[str]) -> str:
    """Cancel a turn after its first words, and return everything that its stream says."""
    said = ""
    async for each in words:
        if each and not said:
            await house.post(f"/api/turns/{turn_id}/cancel")
        said += each
    return said


@contextlib.asynccontextmanager
async def _watching(house: House, session_id: str) -> AsyncIterator[list[Any]]:
    """Follow a session until its next answer is whole."""
    seen: list[Any] = []

    async def watch() -> None:
        async with house.events(session_id) as events:
            async for entry in events:
                seen.append(entry)
                if entry["kind"] == "turn.completed":
                    return

    async with asyncio.TaskGroup() as group:
        group.create_task(watch())
        yield seen
