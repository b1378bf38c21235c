"""Responses with the official client: kept, read, followed, gone on from, cancelled and deleted, through restarts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import openai
from openai import AsyncOpenAI
from tests.openai.clients import MODEL, client_of, demonstrated, modelled, system, told
from tests.web.house import House

TERMINAL = {"response.completed", "response.failed", "response.incomplete"}


async def create(client: AsyncOpenAI, text: str, **more: Any) -> Any:
    return await client.responses.create(model=MODEL, input=text, **more)


async def settled(client: AsyncOpenAI, response_id: str) -> Any:
    """Follow a response to its end, and read it."""
    async for _ in await client.responses.retrieve(response_id, stream=True):
        pass
    return await client.responses.retrieve(response_id)


async def session_of(house: House, response: Any) -> Any:
    turn = await house.get(f"/api/turns/{response.id.removeprefix('resp_')}")
    return await house.get(f"/api/sessions/{turn['session_id']}")


async def test_a_response_is_answered_and_can_be_read_again(home: Path) -> None:
    async with modelled(home, "think hm; say hello; usage 120 7 100") as (_, client, server):
        response = await create(client, "hi", instructions="be brief", metadata={"a": "b"}, temperature=0.1)
        assert (response.status, response.output_text, response.error) == ("completed", "hello", None)
        assert (response.usage.input_tokens, response.usage.output_tokens, response.usage.total_tokens) == (120, 7, 127)
        assert response.usage.input_tokens_details.cached_tokens == 100
        assert (response.metadata, response.instructions, response.model) == ({"a": "b"}, "be brief", MODEL)
        reasoning, message = response.output
        assert (reasoning.type, reasoning.summary[0].text) == ("reasoning", "hm")
        assert (message.role, message.status) == ("assistant", "completed")
        assert await client.responses.retrieve(response.id) == response
        assert system(server).endswith("be brief")
        items = [each async for each in client.responses.input_items.list(response.id)]
        assert [(each.role, each.content[0].text) for each in items] == [("user", "hi")]  # type: ignore[union-attr]


async def test_the_events_of_a_stream(home: Path) -> None:
    async with modelled(home, "think hm; say one; say  two") as (_, client, _):
        events = [each async for each in await create(client, "hi", stream=True)]
        assert [each.sequence_number for each in events] == list(range(len(events)))
        assert [events[0].type, events[1].type, events[-1].type] == [
            "response.created",
            "response.in_progress",
            "response.completed",
        ]
        assert "".join(each.delta for each in events if each.type == "response.output_text.delta") == "one two"
        assert events[-1].response.output_text == "one two"
        assert await client.responses.retrieve(events[0].response.id) == events[-1].response
        replayed = [each async for each in await client.responses.retrieve(events[0].response.id, stream=True)]
        assert replayed == events


async def test_the_helpers_of_the_client_read_the_stream_as_well(home: Path) -> None:
    """They check that every item is begun, finished and the same at the end."""
    script = 'think hm; say Let me look.; call todo {"items":[]} | think so; say Done.'
    async with modelled(home, script) as (_, client, _):
        async with client.responses.stream(model=MODEL, input="hi") as stream:
            async for _ in stream:
                pass
            final = await stream.get_final_response()
        assert final.output_text == "Let me look.\n\nDone."
        assert [each.type for each in final.output] == ["reasoning", "message", "reasoning", "message"]
        async with client.responses.stream(response_id=final.id, starting_after=5) as resumed:
            numbers = [each.sequence_number async for each in resumed]
            assert numbers == list(range(6, 6 + len(numbers)))
            assert (await resumed.get_final_response()).output_text == final.output_text


async def test_a_response_goes_on_from_another_in_the_same_session(home: Path) -> None:
    async with modelled(home) as (house, client, server):
        first = await create(client, "my name is Ada", instructions="speak French")
        second = await create(client, "who am I?", previous_response_id=first.id)
        assert second.previous_response_id == first.id
        assert [role for role, _ in told(server)] == ["user", "assistant", "user"]
        assert told(server)[0] == ("user", "my name is Ada")
        assert "French" not in system(server)
        session = await session_of(house, second)
        assert session["id"] == (await session_of(house, first))["id"]
        assert (session["channel"], session["state"], session["turns"]) == ("responses", "open", 2)
        assert session["key"].startswith("resp_")


async def test_two_that_go_on_from_one_branch(home: Path) -> None:
    async with modelled(home) as (house, client, server):
        root = await create(client, "root")
        left = await create(client, "left", previous_response_id=root.id)
        right = await create(client, "right", previous_response_id=root.id)
        assert [text for role, text in told(server) if role == "user"] == ["root", "right"]
        assert (await session_of(house, left))["id"] != (await session_of(house, right))["id"]
        deeper = await create(client, "deeper", previous_response_id=right.id)
        assert [text for role, text in told(server) if role == "user"] == ["root", "right", "deeper"]
        assert (await session_of(house, deeper))["id"] == (await session_of(house, right))["id"]


async def test_two_that_go_on_from_one_in_the_same_moment_branch_too(home: Path) -> None:
    async with modelled(home, "stream 20 at 40") as (house, client, server):
        root = await create(client, "root")
        both = await asyncio.gather(*(create(client, text, previous_response_id=root.id) for text in ("left", "right")))
        assert len({(await session_of(house, each))["id"] for each in both}) == 2
        for request in server.requests[-2:]:
            said = [each["content"] for each in request.body["messages"] if each["role"] == "user"]
            assert said in (["root", "left"], ["root", "right"])


async def test_the_same_key_is_the_same_response_also_on_a_branch(home: Path) -> None:
    async with modelled(home) as (_, client, server):
        root = await create(client, "root", extra_headers={"Idempotency-Key": "k0"})
        assert (await create(client, "root", extra_headers={"Idempotency-Key": "k0"})).id == root.id
        for number, text in enumerate(("same session", "branch")):
            keyed: Any = {"previous_response_id": root.id, "extra_headers": {"Idempotency-Key": f"k{number + 1}"}}
            first = await create(client, text, **keyed)
            assert await create(client, text, **keyed) == first
            with pytest.raises(openai.UnprocessableEntityError):
                await create(client, "something else", **keyed)
        assert len(server.requests) == 3


async def test_twice_the_same_key_in_the_same_moment_is_one_response(home: Path) -> None:
    """Whichever comes second is told that the first is being answered, and leaves no branch behind."""
    async with modelled(home, "stream 20 at 40") as (house, client, server):
        root = await create(client, "root")
        keyed: Any = {"previous_response_id": root.id, "extra_headers": {"Idempotency-Key": "k1"}}
        twins = await asyncio.gather(*(create(client, "same", **keyed) for _ in range(20)), return_exceptions=True)
        (answered,) = [each for each in twins if not isinstance(each, BaseException)]
        for each in twins:
            assert each is answered or isinstance(each, openai.ConflictError)
        assert await create(client, "same", **keyed) == answered
        assert len(server.requests) == 2
        assert len((await house.get("/api/sessions"))["items"]) == 1


async def test_work_in_the_background_is_kept_at_once_and_followed_later(home: Path) -> None:
    async with demonstrated(home) as (_, client):
        response = await create(client, "count to 10", background=True)
        assert response.status in ("queued", "in_progress")
        assert (response.background, response.output_text, response.usage) == (True, "", None)
        done = await settled(client, response.id)
        assert (done.status, done.background) == ("completed", True)
        assert done.output_text.endswith("9 10.")
        assert done.completed_at >= done.created_at


async def test_a_stream_that_broke_is_resumed_across_a_restart_with_every_event_once(home: Path) -> None:
    """J8: none twice, none lost; R10: work in the background goes on by itself."""
    seen: list[Any] = []
    async with demonstrated(home, drain_timeout=0) as (house, client):
        stream = await create(client, "count to 40", background=True, stream=True)
        async for event in stream:
            seen.append(event)
            if len(seen) == 20:
                break
        await stream.close()
        response_id = seen[0].response.id
        stream = await client.responses.retrieve(response_id, stream=True, starting_after=seen[-1].sequence_number)
        async for event in stream:
            seen.append(event)
            if len(seen) == 25:
                break
        await stream.close()
        await house.stop(timeout=0)
    async with demonstrated(home) as (_, client):
        stream = await client.responses.retrieve(response_id, stream=True, starting_after=seen[-1].sequence_number)
        seen += [event async for event in stream]
        assert [each.sequence_number for each in seen] == list(range(len(seen)))
        assert seen[-1].type == "response.completed"
        text = "".join(each.delta for each in seen if each.type == "response.output_text.delta")
        assert text == seen[-1].response.output_text
        assert text.endswith(f"”. {' '.join(map(str, range(1, 41)))}.")
        assert [each async for each in await client.responses.retrieve(response_id, stream=True)] == seen


async def test_a_response_that_was_cut_off_is_incomplete_and_goes_on_under_its_key(home: Path) -> None:
    """R10: a synchronous request whose client is gone rests; the same one with its key continues it."""
    keyed = {"Idempotency-Key": "k1"}
    async with demonstrated(home, drain_timeout=0) as (house, client):
        stream = await create(client, "count to 40", stream=True, extra_headers=keyed)
        seen = [await anext(aiter(stream)) for _ in range(12)]
        await house.stop(timeout=0)
        await stream.close()
    async with demonstrated(home) as (_, client):
        cut = await client.responses.retrieve(seen[0].response.id)
        assert (cut.status, cut.output[-1].status) == ("incomplete", "in_progress")  # type: ignore[union-attr]
        again = [each async for each in await create(client, "count to 40", stream=True, extra_headers=keyed)]
        assert again[: len(seen)] == seen
        assert [each.type for each in again if each.type in TERMINAL] == ["response.completed"]
        assert again[-1].response.output_text.endswith("39 40.")
        assert len({each.sequence_number for each in again}) == len(again)


async def test_a_cancel_keeps_what_was_said_and_can_be_repeated(home: Path) -> None:
    """J9: cancel is explicit, and keeps the partial text."""
    async with demonstrated(home) as (_, client):
        stream = await create(client, "count to 200 slowly", background=True, stream=True)
        response_id, last = "", None
        async for event in stream:
            if event.type == "response.created":
                response_id = event.response.id
            if event.type == "response.content_part.added":
                cancelled = await client.responses.cancel(response_id)
                assert cancelled.status == "cancelled"
            last = event
        assert last is not None
        assert (last.type, last.response.status) == ("response.incomplete", "cancelled")
        assert last.response.output_text.startswith("I")
        assert (await client.responses.cancel(response_id)).status == "cancelled"
        assert (await client.responses.retrieve(response_id)).output_text == last.response.output_text


async def test_what_is_over_cannot_be_cancelled(home: Path) -> None:
    async with modelled(home) as (_, client, _):
        response = await create(client, "hi")
        with pytest.raises(openai.ConflictError) as refused:
            await client.responses.cancel(response.id)
        assert refused.value.body["state"] == "completed"  # type: ignore[index]
        assert refused.value.response.headers["x-should-retry"] == "false"


async def test_a_failure_is_a_response_that_failed(home: Path) -> None:
    async with modelled(home, "status 400") as (_, client, _):
        response = await create(client, "hi")
        assert (response.status, response.error.code) == ("failed", "server_error")
        assert response.error.message
        events = [each async for each in await create(client, "hi", stream=True)]
        assert (events[-1].type, events[-1].response.status) == ("response.failed", "failed")


async def test_a_deleted_response_is_gone(home: Path) -> None:
    async with modelled(home) as (house, client, _):
        first = await create(client, "one")
        session = await session_of(house, first)
        await client.responses.delete(first.id)
        with pytest.raises(openai.NotFoundError) as gone:
            await client.responses.retrieve(first.id)
        assert first.id in gone.value.message
        assert (await house.web.get(f"/api/sessions/{session['id']}")).status_code == 404
        with pytest.raises(openai.NotFoundError):
            await create(client, "two", previous_response_id=first.id)


async def test_what_others_build_upon_is_deleted_with_them_only(home: Path) -> None:
    async with modelled(home) as (house, client, _):
        root = await create(client, "root")
        left = await create(client, "left", previous_response_id=root.id)
        right = await create(client, "right", previous_response_id=root.id)
        with pytest.raises(openai.ConflictError) as refused:
            await client.responses.delete(root.id)
        assert refused.value.code == "in_conversation"
        assert (await session_of(house, root))["id"] in refused.value.body["hint"]  # type: ignore[index]
        await client.responses.delete(right.id)
        assert (await client.responses.retrieve(left.id)).output_text == left.output_text
        assert (await client.responses.retrieve(root.id)).output_text == root.output_text


async def test_what_is_not_to_be_stored_is_like_a_chat_completion(home: Path) -> None:
    """W4: a stateless request ends its session with `api_complete`."""
    async with modelled(home) as (house, client, _):
        response = await create(client, "hi", store=False)
        assert (response.status, response.store) == ("completed", False)
        session = await session_of(house, response)
        assert (session["channel"], session["end_reason"]) == ("api", "api_complete")
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(response.id)
        with pytest.raises(openai.NotFoundError):
            await create(client, "and?", previous_response_id=response.id)


async def test_only_responses_are_responses(home: Path) -> None:
    async with modelled(home) as (house, client, _):
        chat = await client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "hi"}])
        for odd in (f"resp_{chat.id.removeprefix('chatcmpl-')}", chat.id, "resp_", "resp_nothing", "x"):
            with pytest.raises(openai.NotFoundError):
                await client.responses.retrieve(odd)
            assert (await house.web.delete(f"/v1/responses/{odd}")).status_code == 404


async def test_what_is_not_finished_cannot_be_built_upon(home: Path) -> None:
    async with demonstrated(home) as (_, client):
        response = await create(client, "count to 100", background=True)
        with pytest.raises(openai.ConflictError) as refused:
            await create(client, "and?", previous_response_id=response.id)
        assert refused.value.code == "previous_in_flight"
        await client.responses.cancel(response.id)


async def test_a_response_that_waits_says_for_what(home: Path) -> None:
    async with demonstrated(home) as (house, client):
        response = await create(client, "ask me may I?", background=True)
        turn_id = response.id.removeprefix("resp_")
        await house.in_state(turn_id, "waiting")
        waiting: Any = await client.responses.retrieve(response.id)
        assert waiting.status == "in_progress"
        assert waiting.question["text"] == "may I?"
        await house.post(f"/api/turns/{turn_id}/answer", {"text": "certainly"})
        assert "certainly" in (await settled(client, response.id)).output_text
        with pytest.raises(openai.PermissionDeniedError) as refused:
            await create(client, "ask me may I?")
        assert refused.value.code == "approval_needed"


async def test_no_turn_of_a_response_can_deliver_later(home: Path) -> None:
    """A1, A3: the model is told so, in the background too."""
    async with modelled(home) as (_, client, server):
        first = await create(client, "hi")
        assert "cannot reach the person after this answer" in system(server)
        await settled(client, (await create(client, "hi", background=True, previous_response_id=first.id)).id)
        assert "cannot reach the person after this answer" in system(server)


async def test_refusals_of_responses(home: Path) -> None:
    async with demonstrated(home) as (_, client):
        for more in ({"store": False, "background": True}, {"conversation": "conv_1"}, {"tool_choice": "required"}):
            with pytest.raises(openai.BadRequestError) as refused:
                await create(client, "hi", **more)
            assert refused.value.code == "invalid_request"
        with pytest.raises(openai.NotFoundError):
            await client.responses.create(model="gpt-4", input="hi")
        with pytest.raises(openai.NotFoundError):
            await create(client, "hi", previous_response_id="resp_nothing")


async def test_the_items_of_a_response_by_pages(home: Path) -> None:
    async with modelled(home) as (_, client, _):
        said: Any = [
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "two"},
            {"role": "user", "content": "three"},
        ]
        response = await client.responses.create(model=MODEL, input=said, instructions="be brief")
        listed = client.responses.input_items.list
        assert [each.content[0].text async for each in listed(response.id, order="asc")] == ["one", "two", "three"]  # type: ignore[union-attr]
        assert [each.content[0].text async for each in listed(response.id, limit=1)] == ["three", "two", "one"]  # type: ignore[union-attr]
        with pytest.raises(openai.BadRequestError):
            await listed(response.id, after="nothing")


async def test_the_same_on_every_store(home: Path, store_url: str) -> None:
    async with demonstrated(home, store=store_url) as (house, client):
        root = await create(client, "root, count to 1", background=True)
        assert "root" in (await settled(client, root.id)).output_text
        left = await create(client, "left, count to 9", previous_response_id=root.id)
        right = await create(client, "right, count to 1", previous_response_id=root.id)
        assert len({(await session_of(house, each))["id"] for each in (root, left, right)}) == 2
        await client.responses.delete(right.id)
        stream = await client.responses.retrieve(left.id, stream=True, starting_after=3)
        numbers = [event.sequence_number async for event in stream]
        assert numbers == list(range(4, 4 + len(numbers)))


async def test_what_is_another_owners_is_not_there(home: Path) -> None:
    """SECURITY 5 and 14: neither a response nor an idempotency key is shared between owners."""
    async with demonstrated(home) as (house, client):
        made = await house.post("/api/keys", {"name": "bobs", "scopes": ["api"], "owner": "bob"}, 201)
        keyed = {"Idempotency-Key": "k1"}
        mine = await create(client, "count to 1", extra_headers=keyed)
        async with client_of(house, made["key"]) as bob:
            for attempt in (
                bob.responses.retrieve(mine.id),
                bob.responses.cancel(mine.id),
                bob.responses.delete(mine.id),
                create(bob, "and?", previous_response_id=mine.id),
            ):
                with pytest.raises(openai.NotFoundError):
                    await attempt
            his = await create(bob, "another, count to 1", extra_headers=keyed)
            assert his.id != mine.id
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(his.id)


async def test_what_no_database_likes_is_kept_or_refused(home: Path, store_url: str) -> None:
    """A NUL in what is said is kept as what stands for it; in what names something it names nothing."""
    odd = "be\x00fore \u2028 \U0001f600 count to 1"
    async with demonstrated(home, store=store_url) as (_, client):
        response = await create(client, odd, instructions=odd, metadata={"a": odd}, background=True)
        assert (await settled(client, response.id)).metadata == {"a": odd.replace("\x00", "\ufffd")}
        with pytest.raises(openai.NotFoundError):
            await create(client, "hi", previous_response_id="resp_\x00")
        answer = await client.chat.completions.create(
            model=MODEL, messages=[{"role": "system", "content": odd}, {"role": "user", "content": odd}]
        )
        assert "fore" in (answer.choices[0].message.content or "")
