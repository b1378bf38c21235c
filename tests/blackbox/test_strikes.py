"""A conversation that is cut off again and again, or that its operator does not want resumed, gives way to a new one."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator

import pytest

from tests.blackbox.client import Client, client
from tests.blackbox.gateway import LOOK_S, Gateway, gateways, until
from tests.blackbox.history import SYSTEM_NOTE, Receipt
from tests.blackbox.models import Workshop, workshop
from tests.blackbox.test_nodes import url

__all__ = ["url"]


async def running(somebody: Client, session_id: str) -> Receipt:
    """Start a turn that does not end by itself."""
    turn = await somebody.send(session_id, "wait 300 seconds")
    return await somebody.comes_to(turn.id, "running")


async def judge_successor(somebody: Client, session_id: str) -> None:
    """R7: the next message of the same conversation has a new session, which says why, and begins without a note."""
    next_turn = await somebody.answered(await somebody.send(session_id, "count to 2"))
    assert next_turn.session_id != session_id
    session = await somebody.get(f"/api/sessions/{next_turn.session_id}")
    assert (session["auto_reset_reason"], session["parent_id"]) == ("suspended", session_id)
    assert SYSTEM_NOTE not in await somebody.said(next_turn, "reasoning")


async def test_the_third_crash_in_a_row_gives_a_turn_up() -> None:
    """R7, R8, R9: it goes on by itself twice; then its session is suspended, and the next message begins anew."""
    with gateways(gateway__resume="auto") as (gateway,):
        await gateway.start()
        async with client(gateway) as somebody:
            session_id = await somebody.session()
            somebody.follow(session_id)
            turn = await running(somebody, session_id)
            for strikes in (1, 2, 3):
                await gateway.kill()
                await gateway.start()
                if strikes < 3:
                    again = await somebody.comes_to(turn.id, "running")
                    assert again.attempt == strikes + 1
                    assert (await somebody.get(f"/api/sessions/{session_id}"))["state"] == "open"
            given_up = await somebody.turn(turn.id)
            assert (given_up.state, given_up.cause, given_up.attempt) == ("interrupted", "crash", 3)
            session = await somebody.get(f"/api/sessions/{session_id}")
            assert (session["state"], session["resume_pending"]) == ("suspended", False)
            report = (await somebody.get("/api/status"))["boot"]
            assert any("given up" in line and turn.id in line for line in report), report
            await judge_successor(somebody, session_id)
            outcome = await somebody.verify()
            cut = [entry.data.get("cause") for entry in outcome.journals[session_id] if entry.kind == "turn.interrupted"]
            assert cut == ["crash"] * 3


@pytest.mark.long
async def test_an_answer_takes_all_strikes_away() -> None:
    """R8: two crashes, an answer, two crashes: the conversation is still the same one."""
    with gateways() as (gateway,):
        await gateway.start()
        async with client(gateway) as somebody:
            session_id = await somebody.session()
            for _ in range(2):
                for _ in range(2):
                    await running(somebody, session_id)
                    await gateway.kill()
                    await gateway.start()
                turn = await somebody.answered(await somebody.send(session_id, "count to 2"))
                assert turn.session_id == session_id
            await somebody.verify()


async def test_an_operator_may_have_crashed_conversations_suspended() -> None:
    """R7, R9: on_crash = suspend suspends what a crash cut off, but never what was resume pending already."""
    with gateways(gateway__on_crash="suspend", gateway__drain_timeout="0.2") as (gateway,):
        await gateway.start()
        async with client(gateway) as somebody:
            pending, fresh = await somebody.session(), await somebody.session()
            stopped = await running(somebody, pending)
            gateway.signal(signal.SIGTERM)
            assert await gateway.ended() == 0, gateway.tail()
            await gateway.start()
            assert (await somebody.turn(stopped.id)).cause == "shutdown_timeout"
            cut = [await running(somebody, each) for each in (pending, fresh)]
            await gateway.kill()
            await gateway.start()
            for turn in cut:
                rested = await somebody.turn(turn.id)
                assert (rested.state, rested.cause) == ("interrupted", "crash")
            assert (await somebody.get(f"/api/sessions/{fresh}"))["state"] == "suspended"
            session = await somebody.get(f"/api/sessions/{pending}")
            assert (session["state"], session["resume_pending"]) == ("open", True)
            await judge_successor(somebody, fresh)
            following = await somebody.answered(await somebody.send(pending, "count to 2"))
            assert following.session_id == pending
            assert (await somebody.said(following, "reasoning")).count(SYSTEM_NOTE) == 1
            await somebody.verify()


async def test_the_turn_that_kills_the_gateway_is_found_and_the_others_are_answered() -> None:
    """S2, R7, R8, A1: however often it takes them down with it, only the killer is given up, and says why."""
    with workshop(gateway__resume="auto") as shop:
        await shop.gateway.start()
        async with client(shop.gateway) as somebody, started_again(shop) as crashes:
            held = [await somebody.send(await somebody.session(), f"script: {_held(word)}") for word in ("one", "two")]
            behind = [await somebody.send(each.session_id, "script: echo") for each in held]
            await shop.has_begun("one", "two")
            killer = await somebody.send(await somebody.session(), f"script: {_KILLS}")
            behind.append(await somebody.send(killer.session_id, "script: echo"))
            await somebody.comes_to(killer.id, "interrupted")
            assert 3 <= len(crashes) <= 6, crashes
            shop.open_gate()
            for turn in (*held, *behind):
                assert (await somebody.comes_to(turn.id)).state == "completed", shop.gateway.tail()
            await judge_killer(somebody, killer)
            shop.model.check()
            await somebody.verify()


@pytest.mark.long
async def test_two_nodes_find_the_turn_that_kills_them(url: str) -> None:
    """S2, R7, R8, A1: it goes from node to node, and takes nothing with it that is not its own."""
    with workshop(2, store__url=url, gateway__resume="auto") as shop:
        for each in shop.nodes:
            await each.start()
        async with client(*shop.nodes) as somebody, started_again(shop) as crashes:
            held = [await somebody.send(await somebody.session(), f"script: {_held(word)}") for word in ("one", "two")]
            await shop.has_begun("one", "two")
            killer = await somebody.send(await somebody.session(), f"script: {_KILLS}")
            await until(lambda: len(crashes) >= 3, "it has killed three times", patience_s=90)
            await somebody.comes_to(killer.id, "interrupted")
            assert len(crashes) <= 9, crashes
            shop.open_gate()
            for turn in held:
                assert (await somebody.comes_to(turn.id)).state == "completed"
            await judge_killer(somebody, killer)


_KILLS = 'call probe_pure {"word": "killer", "kills": true} | say I should not be here'


def _held(word: str) -> str:
    return f'call probe_pure {{"word": "{word}", "waits": true}} | echo'


@contextlib.asynccontextmanager
async def started_again(shop: Workshop) -> AsyncIterator[list[str]]:
    """Start every gateway again that is killed, as a service manager does; yields a line for each time."""
    crashes: list[str] = []

    async def keep_up(node: Gateway) -> None:
        while True:
            if node.process.poll() is not None:
                crashes.append(f"{node.home.name}: {node.process.returncode}")
                # The turn that kills it may do so before it answers.
                node.launch()
            await asyncio.sleep(LOOK_S)

    tasks = [asyncio.create_task(keep_up(node)) for node in shop.nodes]
    try:
        yield crashes
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def judge_killer(somebody: Client, killer: Receipt) -> None:
    session = await somebody.get(f"/api/sessions/{killer.session_id}")
    assert session["state"] == "suspended"
    turn = await somebody.get(f"/api/turns/{killer.id}")
    assert "given up after 3 interruptions" in turn["error"]
    page = await somebody.get(f"/api/sessions/{killer.session_id}/messages")
    markers = [item["text"] for item in page["items"] if item["turn_id"] == killer.id and item["role"] == "marker"]
    assert "given up after 3 interruptions" in markers[-1]
