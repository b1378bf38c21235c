"""PostgreSQL goes away under requests of the official client: each gets its answer, or an honest end."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

import openai
from openai import AsyncOpenAI
from tests import scratch
from tests.engine.world import until
from tests.openai.clients import KEY, MODEL, client_of
from tests.postgres import Server
from tests.web.house import House, open_house

ASKED = "note: done then wait 3 seconds then count to 2"
MESSAGES: Any = [{"role": "user", "content": ASKED}]
UNCOUNTED = {"X-Stainless-Retry-Count": openai.Omit()}


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(durable=True, parent=scratch.parent()) as server:
        yield server


@contextlib.asynccontextmanager
async def opened(home: Path, server: Server, retries: int = 0) -> AsyncIterator[tuple[House, AsyncOpenAI]]:
    async with (
        open_house(home, api_key=KEY, store=server.create_database("lost")) as house,
        client_of(house, retries=retries) as client,
    ):
        house.web.headers["Authorization"] = f"Bearer {KEY}"
        yield house, client


async def has_noted(home: Path) -> bool:
    return (home / "demonstration-notes.txt").exists()


async def completed(house: House, home: Path) -> None:
    """Require that there was one turn with one effect, which came to its end."""

    async def over() -> bool:
        answer = await house.web.get("/api/status")
        return answer.status_code == 200 and (answer.json()["accepted"], answer.json()["settled"]) == (1, 1)

    await until(over)
    assert len((home / "demonstration-notes.txt").read_text().splitlines()) == 1


async def test_a_client_with_its_retries_gets_the_answer_of_one_turn(home: Path, server: Server) -> None:
    """V12: a try that is refused while the store is away is no new request."""
    async with opened(home, server, retries=20) as (house, client):
        asking = asyncio.create_task(client.chat.completions.create(model=MODEL, messages=MESSAGES))
        await until(lambda: has_noted(home))
        await asyncio.to_thread(server.stop, "immediate")
        await asyncio.to_thread(server.start)
        answer = await asking
        assert (answer.choices[0].message.content or "").endswith("1 2.")
        await completed(house, home)


@pytest.mark.parametrize("counted", [True, False])
async def test_what_was_accepted_is_not_asked_for_again(home: Path, server: Server, counted: bool) -> None:
    """A2: a refusal behind the acceptance names the turn, and lets only those try again who will be known again."""
    async with opened(home, server) as (house, client):
        headers: Any = {} if counted else UNCOUNTED
        asking = asyncio.create_task(
            client.chat.completions.create(model=MODEL, messages=MESSAGES, extra_headers=headers)
        )  # fmt: skip
        await until(lambda: has_noted(home))
        await asyncio.to_thread(server.stop, "immediate")
        with pytest.raises(openai.InternalServerError) as refused:
            await asking
        await asyncio.to_thread(server.start)
        assert (refused.value.status_code, refused.value.code) == (503, "store_away")
        assert refused.value.response.headers["x-should-retry"] == ("true" if counted else "false")
        body: Any = refused.value.body
        await completed(house, home)
        turn = await house.get(f"/api/turns/{body['turn_id']}")
        assert (turn["state"], turn["session_id"]) == ("completed", body["session_id"])


async def test_what_was_not_accepted_can_be_sent_again(home: Path, server: Server) -> None:
    async with opened(home, server) as (house, client):
        await asyncio.to_thread(server.stop, "immediate")
        with pytest.raises(openai.InternalServerError) as refused:
            await client.chat.completions.create(model=MODEL, messages=MESSAGES)
        assert refused.value.status_code == 503
        assert "nothing was lost; send the same request again" in str(refused.value)
        await asyncio.to_thread(server.start)
        async with client_of(house, retries=20) as patient:
            await patient.chat.completions.create(model=MODEL, messages=MESSAGES)
        await completed(house, home)


# The commit of what a request brings takes so long that it can be cut off in the middle.
SLOW_COMMIT = """
    CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(8); RETURN NULL; END';
    CREATE CONSTRAINT TRIGGER lingers AFTER INSERT ON turns DEFERRABLE INITIALLY DEFERRED
       FOR EACH ROW EXECUTE FUNCTION linger()
"""
CUT_COMMIT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'COMMIT%' AND state = 'active'"


@pytest.mark.parametrize("counted", [True, False])
async def test_a_commit_that_was_cut_off_is_told_as_what_it_is(home: Path, server: Server, counted: bool) -> None:
    """A2: the request may have been accepted, so that only a client that is known again may send it again."""
    async with opened(home, server) as (house, client):
        headers: Any = {} if counted else UNCOUNTED
        other = await asyncpg.connect(server.url("lost"))
        try:
            await other.execute(SLOW_COMMIT)
            asking = asyncio.create_task(
                client.chat.completions.create(model=MODEL, messages=MESSAGES, extra_headers=headers)
            )  # fmt: skip
            await until(lambda: other.fetch(CUT_COMMIT))
            await other.execute("DROP TRIGGER lingers ON turns")
        finally:
            await other.close()
        with pytest.raises(openai.InternalServerError) as refused:
            await asking
        assert (refused.value.status_code, refused.value.code) == (503, "unconfirmed")
        assert refused.value.response.headers["x-should-retry"] == ("true" if counted else "false")
        sent = await house.web.post(f"/api/sessions/{await house.session()}/messages", json={"text": "hello"})
        assert sent.status_code == 202


async def lines(house: House, path: str, body: object) -> list[str]:
    """Return everything that a stream sends until it ends."""
    async with house.web.stream("POST", path, json=body) as response:
        assert response.status_code == 200
        return [line async for line in response.aiter_lines() if line]


async def test_a_chat_stream_ends_with_an_error_and_its_last_line(home: Path, server: Server) -> None:
    async with opened(home, server) as (house, _):
        body = {"model": MODEL, "messages": MESSAGES, "stream": True}
        reading = asyncio.create_task(lines(house, "/v1/chat/completions", body))
        await until(lambda: has_noted(home))
        await asyncio.to_thread(server.stop, "immediate")
        *_, error, done = await reading
        await asyncio.to_thread(server.start)
        assert done == "data: [DONE]"
        told = json.loads(error.removeprefix("data: "))["error"]
        assert (told["code"], told["type"]) == ("cut_off", "server_error")
        await completed(house, home)


async def test_a_response_stream_ends_with_an_error_event_and_is_resumed_behind_it(home: Path, server: Server) -> None:
    async with opened(home, server) as (house, client):

        async def read(stream: Any) -> list[Any]:
            return [each async for each in stream]

        stream = await client.responses.create(model=MODEL, input=ASKED, stream=True)
        reading = asyncio.create_task(read(stream))
        await until(lambda: has_noted(home))
        await asyncio.to_thread(server.stop, "immediate")
        *seen, error = await reading
        await asyncio.to_thread(server.start)
        assert (error.type, error.code) == ("error", "cut_off")
        await completed(house, home)
        response_id = seen[0].response.id
        after = error.sequence_number
        assert after == seen[-1].sequence_number
        rest = await read(await client.responses.retrieve(response_id, stream=True, starting_after=after))
        assert [each.sequence_number for each in [*seen, *rest]] == list(range(len(seen) + len(rest)))
        assert rest[-1].type == "response.completed"
