"""The retries that the official client makes by itself: one turn and one effect, whatever becomes of the tries."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Literal

import pytest

from openai import AsyncOpenAI
from tests.blackbox.gateway import gateways, until
from tests.engine.world import until as settled
from tests.line import line
from tests.openai.clients import KEY, MODEL, client_of
from tests.web.house import PATIENCE_S, House, open_house

API = Literal["chat", "responses"]
APIS: list[API] = ["chat", "responses"]
NOTED = "wait 1.5 seconds then note: done"
# What the client sends with its second try and its third.
SECOND = {"X-Stainless-Retry-Count": "1"}
THIRD = {"X-Stainless-Retry-Count": "2"}

each_api = pytest.mark.parametrize("api", APIS)
whole_or_not = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


async def ask(client: AsyncOpenAI, api: API, text: str, *, stream: bool = False, **more: Any) -> tuple[str, str]:
    """Return the id of an answer and what it says."""
    if api == "chat":
        asked: Any = {"model": MODEL, "messages": [{"role": "user", "content": text}], **more}
        if not stream:
            whole = await client.chat.completions.create(**asked)
            return whole.id, whole.choices[0].message.content or ""
        chunks = [each async for each in await client.chat.completions.create(**asked, stream=True)]
        return chunks[0].id, "".join(each.choices[0].delta.content or "" for each in chunks)
    if not stream:
        response = await client.responses.create(model=MODEL, input=text, **more)
        return response.id, response.output_text
    events: Any = [each async for each in await client.responses.create(model=MODEL, input=text, stream=True, **more)]
    assert events[-1].type == "response.completed"
    return events[-1].response.id, events[-1].response.output_text


async def accepted(house: House) -> int:
    return (await house.get("/api/status"))["accepted"]


def notes(home: Path) -> list[str]:
    written = home / "demonstration-notes.txt"
    return written.read_text().splitlines() if written.exists() else []


def house_on(home: Path, store_url: str) -> Any:
    return open_house(home, api_key=KEY, store=store_url)


def authorised(house: House) -> None:
    house.web.headers["Authorization"] = f"Bearer {KEY}"


@each_api
async def test_a_client_with_a_short_timeout_gets_the_answer_of_one_turn(home: Path, store_url: str, api: API) -> None:
    """V12, J9: each try waits with the first, and the turn is not cancelled when a client leaves."""
    async with house_on(home, store_url) as house:
        authorised(house)
        hasty = AsyncOpenAI(base_url=f"{house.url}/v1", api_key=KEY, timeout=0.8, max_retries=8)
        async with hasty:
            _, said = await ask(hasty, api, NOTED)
        assert said.endswith("I kept your note.")
        assert (await accepted(house), len(notes(home))) == (1, 1)


@each_api
@whole_or_not
async def test_a_retry_joins_a_turn_that_runs_and_one_that_is_over(
    home: Path, store_url: str, api: API, stream: bool
) -> None:
    """A stream is told from its beginning, and no try is refused because another one waits."""
    async with house_on(home, store_url) as house, client_of(house) as client:
        authorised(house)
        first = asyncio.create_task(ask(client, api, NOTED, stream=stream))
        await settled(lambda: _is(house, 1))
        assert not first.done()
        second = await ask(client, api, NOTED, stream=stream, extra_headers=SECOND)
        assert second == await first
        assert await ask(client, api, NOTED, stream=stream, extra_headers=THIRD) == second
        assert (await accepted(house), len(notes(home))) == (1, 1)


async def _is(house: House, count: int) -> bool:
    return await accepted(house) == count


@each_api
async def test_the_same_words_from_the_same_client_are_another_request(home: Path, store_url: str, api: API) -> None:
    async with house_on(home, store_url) as house, client_of(house) as client:
        authorised(house)
        answers = [await ask(client, api, "note: once") for _ in range(2)]
        answers += await asyncio.gather(*(ask(client, api, "note: once") for _ in range(2)))
        assert len({each for each, _ in answers}) == len(notes(home)) == 4


@each_api
async def test_another_body_key_endpoint_or_tenant_never_joins(home: Path, store_url: str, api: API) -> None:
    async with house_on(home, store_url) as house, client_of(house) as client:
        authorised(house)
        made = [await house.post("/api/keys", body, 201) for body in ({"name": "mine"}, {"name": "hers", "owner": "ada"})]
        # Its client leaves before the answer, so that the turn is there to be joined.
        leaving = asyncio.create_task(ask(client, api, "count to 2"))
        await settled(lambda: _is(house, 1))
        leaving.cancel()
        others = {
            (await ask(client, api, "count to 2.", extra_headers=SECOND))[0],
            (await ask(client, api, "count to 2", extra_body={"temperature": 0.5}, extra_headers=SECOND))[0],
            (await ask(client, "chat" if api == "responses" else "responses", "count to 2", extra_headers=SECOND))[0],
            (await ask(client, "chat", "count to 2", extra_headers={**SECOND, "X-Session-Key": "work"}))[0],
        }
        for key in made:
            async with client_of(house, key["key"]) as other:
                others.add((await ask(other, api, "count to 2", extra_headers=SECOND))[0])
        assert len(others) == 6
        assert await accepted(house) == 7
        assert (await ask(client, api, "count to 2", extra_headers=SECOND))[0] not in others
        assert await accepted(house) == 7


async def test_a_retry_with_a_key_waits_with_the_first_instead_of_being_refused(home: Path) -> None:
    async with house_on(home, "sqlite") as house, client_of(house) as client:
        authorised(house)
        keyed = {"Idempotency-Key": "k"}
        first = asyncio.create_task(ask(client, "chat", NOTED, extra_headers=keyed))
        await settled(lambda: _is(house, 1))
        assert await ask(client, "chat", NOTED, extra_headers={**keyed, **SECOND}) == await first
        assert (await accepted(house), len(notes(home))) == (1, 1)


async def test_a_retry_of_a_response_that_goes_on_from_another_makes_no_branch(home: Path, store_url: str) -> None:
    async with house_on(home, store_url) as house, client_of(house) as client:
        authorised(house)
        before, _ = await ask(client, "responses", "count to 1")
        more: Any = {"previous_response_id": before}
        first = asyncio.create_task(ask(client, "responses", NOTED, **more))
        await settled(lambda: _is(house, 2))
        again = await ask(client, "responses", NOTED, **more, extra_headers=SECOND)
        assert again == await first
        assert await ask(client, "responses", NOTED, **more, extra_headers=THIRD) == again
        assert len((await house.get("/api/sessions", channel="responses"))["items"]) == 1
        assert (await accepted(house), len(notes(home))) == (2, 1)


async def test_a_run_that_is_handed_in_again_is_one_run(home: Path) -> None:
    async with house_on(home, "sqlite") as house:
        authorised(house)
        first = await house.post("/v1/runs", {"input": NOTED}, 202)
        again = await house.post("/v1/runs", {"input": NOTED}, 202, **SECOND)
        other = await house.post("/v1/runs", {"input": NOTED}, 202)
        assert first["run_id"] == again["run_id"] != other["run_id"]


async def test_a_client_that_has_read_its_answer_asks_something_new(home: Path, store_url: str) -> None:
    """A call whose first try was lost on its way is not taken for a retry of an earlier call with the same words."""
    async with house_on(home, store_url) as house, client_of(house) as client:
        authorised(house)
        first, _ = await ask(client, "chat", "count to 1")
        for number in range(1, 1_000):
            again, _ = await ask(client, "chat", "count to 1", extra_headers={"X-Stainless-Retry-Count": str(number)})
            if again != first:
                break
        assert again != first


@pytest.mark.parametrize("store_url", ["sqlite", pytest.param("postgres", marks=pytest.mark.long)], indirect=True)
@each_api
@whole_or_not
async def test_a_kill_in_the_middle_of_a_request_leaves_one_turn_and_one_effect(
    store_url: str, api: API, stream: bool
) -> None:
    """V12, R10, X1: the client with its default retries, and a gateway that is killed behind the effect of its tool."""
    text = "note: done then wait 2 seconds then count to 3"
    with gateways(server__api_key=KEY, store__url=store_url) as (gateway,):
        await gateway.start()
        async with (
            line(gateway) as wire,
            AsyncOpenAI(base_url=f"{wire.url}/v1", api_key=KEY, timeout=3 * PATIENCE_S) as client,
        ):
            # What has begun to arrive is not repeated by the client, so nothing of the first try may.
            wire.lose_answer(b"POST /v1/")
            asking = asyncio.create_task(ask(client, api, text, stream=stream))
            await until(gateway.notes.exists, "the tool has done its work")
            await gateway.kill()
            wire.drop()
            await gateway.start()
            wire.restore()
            answer_id, said = await asyncio.wait_for(asking, 2 * PATIENCE_S)
            assert said.endswith("1 2 3.")
            assert len(gateway.notes.read_text().splitlines()) == 1
            # Another one with the same words is done as well.
            other_id, _ = await ask(client, api, text, stream=stream)
            assert answer_id != other_id
            assert len(gateway.notes.read_text().splitlines()) == 2
