"""Chat completions with the official client: whole, in chunks, in a session, again, and refused."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import httpx2
import pytest

import openai
from openai import AsyncOpenAI
from tests.engine.world import until
from tests.openai.clients import KEY, MODEL, client_of, demonstrated, modelled, system, told
from tests.web.house import House, open_house

PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"


def user(text: str) -> Any:
    return {"role": "user", "content": text}


async def ask(client: AsyncOpenAI, text: str, **more: Any) -> Any:
    return await client.chat.completions.create(model=MODEL, messages=[user(text)], **more)


async def said_in(stream: Any) -> str:
    return "".join([each.choices[0].delta.content or "" async for each in stream if each.choices])


async def test_a_whole_answer_with_its_usage(home: Path) -> None:
    async with modelled(home, "say hello; usage 120 7 100") as (_, client, server):
        answer = await ask(client, "hi", temperature=0.1, max_tokens=5, stop=["x"])
        assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("hello", "stop")
        assert (answer.object, answer.model, answer.choices[0].message.role) == ("chat.completion", MODEL, "assistant")
        assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (120, 7, 127)
        assert answer.usage.prompt_tokens_details.cached_tokens == 100
        assert told(server) == [("user", "hi")]


async def test_an_answer_in_chunks_with_reasoning_and_usage(home: Path) -> None:
    async with modelled(home, "think hm; say one; say  two; usage 120 7 0") as (_, client, _):
        stream = await ask(client, "hi", stream=True, stream_options={"include_usage": True})
        chunks = [each async for each in stream]
        assert chunks[0].choices[0].delta.role == "assistant"
        assert "".join(each.choices[0].delta.content or "" for each in chunks if each.choices) == "one two"
        assert "hm" in "".join(getattr(each.choices[0].delta, "reasoning_content", "") for each in chunks if each.choices)
        assert [each.choices[0].finish_reason for each in chunks if each.choices][-1] == "stop"
        assert (chunks[-1].choices, chunks[-1].usage.total_tokens) == ([], 127)
        assert len({each.id for each in chunks}) == 1


async def test_the_helpers_of_the_client_read_the_stream_as_well(home: Path) -> None:
    async with modelled(home, "think hm; say one; say  two") as (_, client, _):
        async with client.chat.completions.stream(model=MODEL, messages=[user("hi")]) as stream:
            async for _ in stream:
                pass
            final = await stream.get_final_completion()
        assert final.choices[0].message.content == "one two"


async def test_what_was_said_before_is_read_by_the_model_and_instructions_are_in_its_prompt(home: Path) -> None:
    async with modelled(home) as (_, client, server):
        await client.chat.completions.create(
            model="scripted",
            messages=[
                {"role": "system", "content": "Always answer in verse."},
                user("my name is Ada"),
                {"role": "assistant", "content": "hello Ada"},
                user("who am I?"),
            ],
        )
        assert told(server) == [("user", "my name is Ada"), ("assistant", "hello Ada"), ("user", "who am I?")]
        assert system(server).endswith("Always answer in verse.")


async def test_pictures_reach_the_model(home: Path) -> None:
    url = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    async with modelled(home) as (_, client, server):
        parts: Any = [{"type": "text", "text": "what is this?"}, {"type": "image_url", "image_url": {"url": url}}]
        await client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": parts}])
        ((_, content),) = told(server)
        assert content[1]["image_url"]["url"] == url


async def test_tools_of_the_client_are_not_offered_and_those_of_the_gateway_stay_inside(home: Path) -> None:
    tool: Any = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
    script = 'say Let me look.; call todo {"items":[]} | say Nothing to do.'
    async with modelled(home, script) as (_, client, server):
        answer = await ask(client, "hi", tools=[tool])
        assert answer.choices[0].message.content == "Let me look.\n\nNothing to do."
        assert answer.choices[0].message.tool_calls is None
        assert "weather" not in [each["function"]["name"] for each in server.requests[0].body.get("tools", [])]
        with pytest.raises(openai.BadRequestError, match="no tool of the client's"):
            await ask(client, "hi", tools=[tool], tool_choice="required")


async def test_a_request_has_a_session_of_its_own_that_ends_with_it(home: Path) -> None:
    """W4: end reason `api_complete`; A1, A2: the turn cannot deliver later."""
    async with modelled(home) as (house, client, server):
        raw = await client.chat.completions.with_raw_response.create(model=MODEL, messages=[user("hi")])
        session = await house.get(f"/api/sessions/{raw.headers['x-session-id']}")
        assert (session["state"], session["end_reason"], session["channel"]) == ("ended", "api_complete", "api")
        assert session["ended_at"] is not None
        assert raw.parse().id == f"chatcmpl-{raw.headers['x-turn-id']}"
        assert "cannot reach the person after this answer" in system(server)


async def test_a_failed_request_ends_its_session_too(home: Path) -> None:
    """W4: on failure alike."""
    async with modelled(home, "status 400") as (house, client, _):
        with pytest.raises(openai.InternalServerError) as failed:
            await ask(client, "hi")
        assert (failed.value.status_code, failed.value.code, failed.value.type) == (502, "turn_failed", "server_error")
        assert failed.value.response.headers["x-should-retry"] == "false"
        turn = await house.get(f"/api/turns/{failed.value.body['turn_id']}")  # type: ignore[index]
        session = await house.get(f"/api/sessions/{turn['session_id']}")
        assert (turn["state"], session["end_reason"]) == ("failed", "api_complete")


async def test_a_failed_turn_is_not_asked_again_by_the_client_itself(home: Path) -> None:
    async with modelled(home, "status 400") as (house, _, server):
        async with client_of(house, retries=2) as stubborn:
            with pytest.raises(openai.InternalServerError):
                await ask(stubborn, "hi")
        assert len(server.requests) == 1


async def test_a_failure_in_a_stream_is_raised(home: Path) -> None:
    async with modelled(home, "status 400") as (_, client, _):
        stream = await ask(client, "hi", stream=True)
        with pytest.raises(openai.APIError) as failed:
            await said_in(stream)
        assert failed.value.code == "turn_failed"


async def test_a_session_goes_on_and_takes_only_the_last_message(home: Path) -> None:
    async with modelled(home) as (house, client, server):
        mine = client.with_options(default_headers={"X-Session-Key": "work"})
        first = await mine.chat.completions.with_raw_response.create(model=MODEL, messages=[user("my name is Ada")])
        second = await mine.chat.completions.with_raw_response.create(
            model=MODEL,
            messages=[{"role": "system", "content": "be brief"}, user("something else"), user("who am I?")],
        )
        assert first.headers["x-session-id"] == second.headers["x-session-id"]
        assert [role for role, _ in told(server)] == ["user", "assistant", "user"]
        assert told(server)[0] == ("user", "my name is Ada")
        assert told(server)[-1] == ("user", "who am I?")
        session = await house.get(f"/api/sessions/{first.headers['x-session-id']}")
        assert (session["state"], session["key"], session["turns"]) == ("open", "work", 2)
        by_id = client.with_options(default_headers={"X-Session-Key": session["id"]})
        third = await by_id.chat.completions.with_raw_response.create(model=MODEL, messages=[user("and?")])
        assert third.headers["x-session-id"] == session["id"]


async def test_a_session_continued_elsewhere_can_deliver_again(home: Path) -> None:
    """A2: the capability belongs to the turn, never to the session."""
    async with modelled(home) as (house, client, server):
        mine = client.with_options(default_headers={"X-Session-Key": "work"})
        raw = await mine.chat.completions.with_raw_response.create(model=MODEL, messages=[user("hi")])
        assert "cannot reach the person" in system(server)
        receipt = await house.send(raw.headers["x-session-id"], "hello")
        await house.settled(receipt["turn_id"])
        assert "can reach the person later" in system(server)


async def test_the_same_key_is_the_same_request(home: Path) -> None:
    """A3 of the invariants: the same key and body is the same turn; another body is 422."""
    async with modelled(home) as (_, client, server):
        keyed = {"Idempotency-Key": "k1"}
        first = await ask(client, "hi", extra_headers=keyed)
        again = await ask(client, "hi", extra_headers=keyed)
        assert (again.id, again.choices[0].message.content) == (first.id, first.choices[0].message.content)
        streamed = await ask(client, "hi", extra_headers=keyed, stream=True)
        assert await said_in(streamed) == first.choices[0].message.content
        assert len(server.requests) == 1
        with pytest.raises(openai.UnprocessableEntityError) as refused:
            await ask(client, "something else", extra_headers=keyed)
        assert refused.value.code == "key_reused"
        other = await ask(client, "hi", extra_headers={**keyed, "X-Session-Key": "work"})
        assert other.id != first.id


async def test_the_same_key_in_flight_is_a_conflict_that_names_the_turn(home: Path) -> None:
    async with demonstrated(home) as (house, client):
        keyed = {"Idempotency-Key": "k1"}
        stream = await ask(client, "count to 100", extra_headers=keyed, stream=True)
        turn_id = (await anext(aiter(stream))).id.removeprefix("chatcmpl-")
        with pytest.raises(openai.ConflictError) as refused:
            await ask(client, "count to 100", extra_headers=keyed)
        assert refused.value.code == "in_flight"
        assert refused.value.body["turn_id"] == turn_id  # type: ignore[index]
        await stream.close()
        await house.post(f"/api/turns/{turn_id}/cancel")


async def test_who_leaves_cancels_nothing(home: Path) -> None:
    """J9: a disconnect is not a cancel, streamed or not."""
    async with demonstrated(home) as (house, client):
        stream = await ask(client, "count to 30", stream=True)
        turn_id = (await anext(aiter(stream))).id.removeprefix("chatcmpl-")
        await stream.close()
        assert (await house.settled(turn_id))["state"] == "completed"

        asking = asyncio.create_task(ask(client, "count to 30", extra_headers={"X-Session-Key": "left"}))

        async def session() -> Any:
            found = (await house.get("/api/sessions", key="left"))["items"]
            return found[0] if found else None

        opened = await until(session)
        asking.cancel()
        (turn,) = (await house.get("/api/turns", session=opened["id"]))["items"]
        assert (await house.settled(turn["id"]))["state"] == "completed"
        assert "30" in await house.said(opened["id"], turn["id"])


async def test_what_was_said_before_a_cancel_is_the_answer(home: Path) -> None:
    """J9: cancel is explicit and keeps the partial text."""
    async with demonstrated(home) as (house, client):
        stream = await ask(client, "count to 100 slowly", stream=True)
        pieces: list[str] = []
        cancelled = False
        async for chunk in stream:
            pieces.append(chunk.choices[0].delta.content or "")
            if "".join(pieces) and not cancelled:
                cancelled = True
                await house.post(f"/api/turns/{chunk.id.removeprefix('chatcmpl-')}/cancel")
        assert chunk.choices[0].finish_reason == "stop"
        assert "100." not in "".join(pieces)


async def test_a_request_that_was_cut_off_goes_on_under_its_key(home: Path) -> None:
    """R10: the same request with the same key continues it, and says nothing twice."""
    keyed = {"Idempotency-Key": "k1"}
    async with demonstrated(home, drain_timeout=0) as (house, client):
        stream = await ask(client, "count to 40", extra_headers=keyed, stream=True)
        early, noticed = "", asyncio.Event()

        async def read_until_cut() -> None:
            nonlocal early
            async for chunk in stream:
                early += chunk.choices[0].delta.content or ""
                if " 3 " in early:
                    noticed.set()

        async def stop() -> None:
            await noticed.wait()
            await house.stop(timeout=0)

        stopping = asyncio.create_task(stop())
        with pytest.raises(openai.APIError) as cut:
            await read_until_cut()
        assert cut.value.code in ("turn_interrupted", "cut_off")
        await stopping
    async with demonstrated(home) as (house, client):
        answer = await ask(client, "count to 40", extra_headers=keyed)
        text = answer.choices[0].message.content
        assert text.startswith(early)
        assert text.endswith(f"”. {' '.join(map(str, range(1, 41)))}.")


async def test_a_request_that_its_conversation_has_passed_by_is_not_sent_again_for_ever(home: Path) -> None:
    """R10: what waited behind it was answered meanwhile, so it cannot go on; its client is told so, and to stop."""

    def asking(house: House, text: str, key: str) -> asyncio.Task[httpx2.Response]:
        body = {"model": "holdfast", "messages": [user(text)]}
        headers = {"Idempotency-Key": key, "X-Session-Key": "work"}
        return asyncio.create_task(house.web.post("/v1/chat/completions", json=body, headers=headers))

    async def turns(house: House) -> dict[str, int]:
        return (await house.get("/api/status"))["turns"]

    async with demonstrated(home, drain_timeout=0) as (house, _):
        first = asking(house, "wait 60 seconds", "k1")
        await until(lambda: _holds(turns(house), "running"))
        behind = asking(house, "count to 1", "k2")
        await until(lambda: _holds(turns(house), "queued"))
        await house.stop(timeout=0)
        cut = await first
        assert (cut.status_code, cut.headers["x-should-retry"]) == (502, "true")
        await asyncio.wait([behind])
    async with demonstrated(home) as (house, _):
        assert (await asking(house, "count to 1", "k2")).status_code in (200, 409)
        await until(lambda: _holds(turns(house), "completed"))
        passed = await asking(house, "wait 60 seconds", "k1")
        assert (passed.status_code, passed.headers["x-should-retry"]) == (502, "false")
        told = passed.json()["error"]
        assert (told["code"], "does not go on" in told["hint"]) == ("turn_interrupted", True)


async def _holds(found: Awaitable[dict[str, int]], state: str) -> bool:
    return bool((await found).get(state))


async def test_consent_is_asked_for_with_a_refusal_or_with_patience(home: Path) -> None:
    """Without a stream the client is told; in one it waits.  Either way the answer comes once somebody has decided."""
    async with demonstrated(home) as (house, client):
        keyed = {"Idempotency-Key": "k1"}
        with pytest.raises(openai.PermissionDeniedError) as refused:
            await ask(client, "ask me may I?", extra_headers=keyed)
        assert refused.value.code == "approval_needed"
        assert "may I?" in refused.value.message
        turn_id = refused.value.body["turn_id"]  # type: ignore[index]
        with pytest.raises(openai.PermissionDeniedError):
            await ask(client, "ask me may I?", extra_headers=keyed)
        stream = await ask(client, "ask me may I?", extra_headers=keyed, stream=True)
        listening = asyncio.create_task(said_in(stream))
        await house.post(f"/api/turns/{turn_id}/answer", {"text": "certainly"})
        assert "certainly" in await listening
        answer = await ask(client, "ask me may I?", extra_headers=keyed)
        assert "certainly" in answer.choices[0].message.content


async def test_the_models_that_may_be_asked_for(home: Path) -> None:
    async with modelled(home) as (_, client, _):
        assert [each.id async for each in client.models.list()] == ["holdfast", "openai:scripted", "scripted"]
        assert (await client.models.retrieve("openai:scripted")).id == "openai:scripted"
        with pytest.raises(openai.NotFoundError):
            await client.models.retrieve("gpt-4")
        with pytest.raises(openai.NotFoundError) as refused:
            await client.chat.completions.create(model="gpt-4", messages=[user("hi")])
        assert refused.value.code == "model_not_found"
        assert refused.value.body["hint"] == "use one of: holdfast, openai:scripted, scripted"  # type: ignore[index]


async def test_refusals_are_the_exceptions_that_the_client_knows(home: Path) -> None:
    async with open_house(home, api_key=KEY) as house:
        async with client_of(house, "wrong") as stranger:
            with pytest.raises(openai.AuthenticationError) as unknown:
                await ask(stranger, "hi")
            assert unknown.value.code == "unauthorized"
        async with client_of(house) as client:
            for body in ({"messages": []}, {"messages": [user("hi")], "n": 2}, {"messages": [user("hi")], "stream": "yes"}):
                with pytest.raises(openai.BadRequestError) as refused:
                    await client.post("/chat/completions", body={"model": MODEL, **body}, cast_to=httpx2.Response)
                assert refused.value.message
                assert refused.value.code in ("invalid_request", "bad_json")
            with pytest.raises(openai.NotFoundError):
                await ask(client, "hi", extra_headers={"X-Session-Key": "ses_nowhere"})


async def raw(house: House, body: object) -> tuple[int, Any]:
    answer = await house.web.post("/v1/chat/completions", json=body)
    return answer.status_code, answer.json()["error"]


async def test_every_refusal_has_the_shape_that_clients_of_openai_know(home: Path) -> None:
    """Also what never reaches the route: a wrong key, an address that is none, what was never there."""
    async with open_house(home) as house:
        wrong_key = await house.web.get("/v1/models", headers={"Authorization": "Bearer hf_wrong"})
        nowhere = await house.web.post("/v1/embeddings", json={})
        wrong_method = await house.web.delete("/v1/models")
        absent = await house.web.get("/v1/responses/resp_none")
        answers = {401: wrong_key, 404: nowhere, 405: wrong_method}
        assert {status: each.status_code for status, each in answers.items()} == {status: status for status in answers}
        for each in (*answers.values(), absent):
            error = each.json()["error"]
            assert (error["type"], error["message"].endswith(f"; {error['hint']}")) == ("invalid_request_error", True)
        # Elsewhere the two stand side by side.
        assert "; " not in (await house.web.get("/api/turns/none")).json()["error"]["message"]


async def test_an_error_says_what_to_do_instead(home: Path) -> None:
    async with open_house(home) as house:
        status, error = await raw(house, {"model": MODEL, "messages": []})
        assert (status, error["code"], error["type"]) == (400, "invalid_request", "invalid_request_error")
        assert error["hint"] == "send at least one message with the role user"
        # Most clients show people the message alone.
        assert error["message"] == f"messages is empty; {error['hint']}"
        status, error = await raw(house, {"messages": [user("hi")]})
        assert (status, error["code"]) == (400, "bad_json")
        assert "model" in error["message"]
