"""The official client against the real process, which is killed without warning in the middle of what it says."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import openai
from openai import AsyncOpenAI
from tests.blackbox.gateway import PATIENCE_S, Gateway, gateways
from tests.openai.clients import KEY, MODEL

COUNTED = " ".join(map(str, range(1, 61))) + "."


@contextlib.asynccontextmanager
async def client_of(gateway: Gateway) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=KEY, max_retries=0, timeout=PATIENCE_S) as client:
        yield client


async def read(stream: Any, seen: list[Any], enough: int) -> None:
    """Read events until there are enough, or until the other side is gone."""
    with contextlib.suppress(openai.APIConnectionError):
        async for event in stream:
            seen.append(event)
            if len(seen) >= enough:
                break
    await stream.close()


async def test_a_stream_is_resumed_after_kills_with_every_event_exactly_once() -> None:
    """J8, R10: work in the background goes on by itself, and its reader misses nothing and reads nothing twice."""
    seen: list[Any] = []
    with gateways(server__api_key=KEY) as (gateway,):
        await gateway.start()
        async with client_of(gateway) as client:
            await read(
                await client.responses.create(model=MODEL, input="count to 60", background=True, stream=True), seen, 15
            )
        response_id = seen[0].response.id
        # Twice, because a third time would be the last (R8).
        for enough in (25, 10_000):
            await gateway.kill()
            await gateway.start()
            async with client_of(gateway) as client:
                after = seen[-1].sequence_number
                await read(await client.responses.retrieve(response_id, stream=True, starting_after=after), seen, enough)
        async with client_of(gateway) as client:
            assert [event.sequence_number for event in seen] == list(range(len(seen)))
            assert seen[-1].type == "response.completed"
            text = "".join(event.delta for event in seen if event.type == "response.output_text.delta")
            assert text == seen[-1].response.output_text
            assert text.endswith(f"”. {COUNTED}")
            assert [event async for event in await client.responses.retrieve(response_id, stream=True)] == seen


async def test_a_completion_that_a_kill_cut_off_goes_on_under_its_key() -> None:
    """R10: a synchronous request whose client is gone rests; the same one with the same key says the rest, once."""
    keyed = {"Idempotency-Key": "k1"}
    asked: Any = [{"role": "user", "content": "count to 60"}]
    early = ""
    with gateways(server__api_key=KEY) as (gateway,):
        await gateway.start()
        async with client_of(gateway) as client:
            stream = await client.chat.completions.create(
                model=MODEL, messages=asked, stream=True, extra_headers=keyed
            )  # fmt: skip
            killing: asyncio.Task[None] | None = None
            with contextlib.suppress(openai.APIConnectionError):
                async for chunk in stream:
                    early += chunk.choices[0].delta.content or ""
                    if " 5 " in early and killing is None:
                        killing = asyncio.create_task(gateway.kill())
            assert killing is not None
            await killing
        await gateway.start()
        async with client_of(gateway) as client:
            answer = await client.chat.completions.create(model=MODEL, messages=asked, extra_headers=keyed)
            text = answer.choices[0].message.content or ""
            assert text.startswith(early)
            assert text.endswith(f"”. {COUNTED}")
            assert len(early) < len(text)
