"""A conversation that is cut off again and again, or that its operator does not want resumed, gives way to a new one."""

from __future__ import annotations

import signal

import pytest

from tests.blackbox.client import Client, client
from tests.blackbox.gateway import gateways
from tests.blackbox.history import SYSTEM_NOTE, Receipt


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
