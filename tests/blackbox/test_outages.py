"""A model that cannot answer for a while: turns wait for it, visibly, and none is lost."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2

from holdfast.core.events import TurnDeferred
from tests.blackbox.client import Client, client
from tests.blackbox.gateway import until
from tests.blackbox.models import Workshop, workshop

# Long enough for several rounds of the circuit, and for more than the retries of one request.
STORM_S = 6


async def run(somebody: Client, text: str) -> str:
    answer = await somebody.ask("POST", "/v1/runs", {"input": text})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["run_id"])


async def waits_for_the_model(somebody: Client, turn_id: str) -> dict[str, Any]:
    """Return the receipt of a turn once it says that it waits."""
    found: dict[str, Any] = {}

    async def waits() -> bool:
        found.update(await somebody.get(f"/api/turns/{turn_id}"))
        return found["state"] == "queued" and found["retry_at"] is not None

    await until(waits, "the turn waits for the model")
    return found


def asked(shop: Workshop) -> int:
    return sum("asked" in line for line in shop.model.lines)


async def test_a_storm_fails_no_run_and_is_not_multiplied() -> None:
    """A1, W4: thirty runs in a storm of 429 are all answered; one request at a time finds out whether it is over."""
    with workshop(script=f"storm {STORM_S}; echo") as shop:
        await shop.gateway.start()
        async with client(shop.gateway) as somebody:
            runs = await asyncio.gather(*(run(somebody, f"run {number}") for number in range(30)))
            for each in runs:

                async def is_over(each: str = each) -> bool:
                    return (await somebody.get(f"/v1/runs/{each}"))["status"] not in ("queued", "in_progress", "running")

                await until(is_over, "the run is over", patience_s=90)
            ended = [await somebody.get(f"/v1/runs/{each}") for each in runs]
            assert {each["status"] for each in ended} == {"completed"}, ended
            assert [each["error"] for each in ended] == [None] * 30
    # Those that were under way when the first was refused, and then about one a second.
    assert asked(shop) - 30 <= 30 + 2 * STORM_S, asked(shop)


async def test_a_conversation_that_waits_says_so_once_and_is_cancelled_at_once() -> None:
    """A1, J9: the person sees what it waits for, and need not wait with it."""
    with workshop(script="status 503", model__retries="0") as shop:
        await shop.gateway.start()
        async with client(shop.gateway) as somebody:
            turn = await somebody.send(await somebody.session(), "hello")
            await waits_for_the_model(somebody, turn.id)
            await until(lambda: asked(shop) >= 3, "it is asked again and again")
            items = (await somebody.get(f"/api/sessions/{turn.session_id}/messages"))["items"]
            (note,) = [item["text"] for item in items if item["role"] == "note"]
            assert note.startswith("Waiting for the model: openai:scripted: cannot answer now (HTTP 503)")
            waits: list[dict[str, Any]] = []

            async def waits_again() -> bool:
                entries = (await somebody.get(f"/api/sessions/{turn.session_id}/journal"))["entries"]
                waits[:] = [each for each in entries if each["kind"] == "turn.deferred"]
                return len(waits) >= 2

            await until(waits_again, "a reader of the journal sees that it waits again")
            assert all(each["data"]["retry_at"] > each["at"] and "503" in each["data"]["error"] for each in waits)
            # Other languages are told that it has this shape.
            assert all(each["data"].keys() == set(TurnDeferred.__struct_fields__) for each in waits)
            assert (await somebody.ask("POST", f"/api/turns/{turn.id}/cancel")).status_code == 200
            receipt = await somebody.get(f"/api/turns/{turn.id}")
            assert (receipt["state"], receipt["retry_at"]) == ("cancelled", None)


async def test_commands_say_that_a_turn_waits_and_when_it_is_tried_next() -> None:
    """A1: with a message in line behind it; an operator at a terminal sees the same as the page."""
    with workshop(script="status 429 retry-after 900") as shop:
        shop.gateway.environment["COLUMNS"] = "160"
        await shop.gateway.start()
        async with client(shop.gateway) as somebody:
            turn = await somebody.send(await somebody.session(), "hello")
            await waits_for_the_model(somebody, turn.id)
            await somebody.send(turn.session_id, "and another")
            said = {
                words: (await shop.gateway.run(*words.split()))
                for words in ("sessions list", f"sessions show {turn.session_id}", f"turns list {turn.session_id}", "status")
            }
        told = ("waiting for the model", "Waiting for the model. Next try at", "model; next try", "1 waiting for the model")
        for (words, output), expected in zip(said.items(), told, strict=True):
            assert expected in " ".join(output.split()), (words, output)


async def test_a_turn_that_waits_outlives_the_gateway() -> None:
    """A1, R10: it is a row with a time, so there is nothing to lose, and no strike for it."""
    with workshop(model__retries="0") as shop:
        await shop.gateway.start()
        shop.model.kill()
        async with client(shop.gateway) as somebody:
            turn = await somebody.send(await somebody.session(), "script: echo")
            await waits_for_the_model(somebody, turn.id)
            for _ in range(4):
                await shop.gateway.kill()
                await shop.gateway.start()
                await waits_for_the_model(somebody, turn.id)
            shop.model.start()
            assert (await somebody.comes_to(turn.id)).state == "completed"
            assert (await somebody.get(f"/api/turns/{turn.id}"))["retry_at"] is None
            await somebody.verify()


async def test_an_answer_that_broke_off_goes_on_after_the_outage() -> None:
    """J1: what was said stands, and the rest follows it."""
    with workshop(script="stream 20 at 0; first 4 cut", model__retries="0") as shop:
        await shop.gateway.start()
        async with client(shop.gateway) as somebody:
            turn = await somebody.send(await somebody.session(), "go on")
            assert (await somebody.comes_to(turn.id)).state == "completed"
            said = await somebody.said(turn, "assistant")
            assert "Failed" not in said


async def test_a_limit_ends_the_wait_and_a_refusal_is_not_waited_for() -> None:
    """A1: both fail with the reason; only the first has waited."""
    with workshop(model__retries="0", model__wait="2") as shop:
        await shop.gateway.start()
        async with client(shop.gateway) as somebody:
            # Before the outage, which would have it wait with all others.
            refused = await somebody.send(await somebody.session(), "script: status 401")
            assert (await somebody.comes_to(refused.id)).state == "failed"
            away = await somebody.send(await somebody.session(), "script: status 503")
            assert (await somebody.comes_to(away.id)).state == "failed"
            told = (await somebody.get(f"/api/turns/{away.id}"))["error"]
            assert told.endswith("the turn has waited as long as model.wait allows")
            assert shop.model.asked("script: status 401") == 1


async def test_a_client_that_waits_with_an_open_connection_is_told_at_once() -> None:
    """A3: it decides itself whether to come back."""
    with workshop(script="status 429 retry-after 1", model__retries="1") as shop:
        await shop.gateway.start()
        async with httpx2.AsyncClient(base_url=shop.gateway.url, verify=False, trust_env=False, timeout=30) as web:
            body = {"model": "holdfast", "messages": [{"role": "user", "content": "hello"}]}
            answer = await web.post("/v1/chat/completions", json=body)
        assert answer.status_code == 503, answer.text
        assert answer.json()["error"]["code"] == "model_unavailable"
        assert int(answer.headers["retry-after"]) > 0
