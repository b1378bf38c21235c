"""What a client may do at any time: cancel, leave and come back, write commands, ask for what is not there."""

from __future__ import annotations

import asyncio
import json
import signal
import time

import pytest

from tests.blackbox.client import Client, client
from tests.blackbox.gateway import gateways, until
from tests.blackbox.history import Receipt

MISSING = [
    ("GET", "/api/sessions/ses_nobody"),
    ("PATCH", "/api/sessions/ses_nobody"),
    ("DELETE", "/api/sessions/ses_nobody"),
    ("GET", "/api/sessions/ses_nobody/messages"),
    ("POST", "/api/sessions/ses_nobody/messages"),
    ("GET", "/api/sessions/ses_nobody/events"),
    ("POST", "/api/sessions/ses_nobody/end"),
    ("POST", "/api/sessions/ses_nobody/suspend"),
    ("POST", "/api/sessions/ses_nobody/fork"),
    ("GET", "/api/turns?session=ses_nobody"),
    ("GET", "/api/turns/trn_nobody"),
    ("POST", "/api/turns/trn_nobody/cancel"),
    ("POST", "/api/turns/trn_nobody/retry"),
    ("POST", "/api/turns/trn_nobody/answer"),
    ("GET", "/api/deliveries/dlv_nobody"),
    ("POST", "/api/deliveries/dlv_nobody/retry"),
    ("GET", "/api/nothing"),
]


async def streaming(somebody: Client, session_id: str, text: str = "count to 900") -> Receipt:
    """Start a turn that speaks for long, and return when something of it was shown."""
    follower = somebody.follow(session_id)
    turn = await somebody.send(session_id, text)
    await follower.saw("text", turn.id)
    return turn


async def test_a_day_with_one_gateway() -> None:
    """J8, J9, R5, R7, R12"""
    with gateways() as (gateway,):
        await gateway.start()
        async with client(gateway) as somebody:
            await _what_is_not_there_is_404(somebody)
            await _cancel_from_another_process(somebody)
            await asyncio.gather(
                _leaving_is_not_cancelling(somebody),
                _stop_leaves_the_conversation(somebody),
                _new_ends_the_conversation(somebody),
                _a_repeated_message_is_the_same_message(somebody),
                _a_message_says_what_it_does_to_a_busy_conversation(somebody),
            )
            await _resume_goes_on(somebody)
            await somebody.verify()


async def _what_is_not_there_is_404(somebody: Client) -> None:
    """R12"""
    bodies = {"PATCH": {"title": "x"}, "POST": {"text": "x"}}
    for method, path in MISSING:
        answer = await somebody.ask(method, path, bodies.get(method))
        assert answer.status_code == 404, f"{method} {path}: {answer.status_code} {answer.text}"
        assert answer.json()["error"]["code"]


async def _cancel_from_another_process(somebody: Client) -> None:
    """J9: within a second of the asking, with everything that was shown; and once more, it stays cancelled."""
    session_id = await somebody.session()
    turn = await streaming(somebody, session_id)
    before = await somebody.poll(session_id)
    cancelled = json.loads(await somebody.gateway.run("turns", "cancel", turn.id, "--json"))
    assert cancelled["state"] == "cancelled"
    await until(somebody.rests, "its worker has stopped", patience_s=1)
    rested = await somebody.turn(turn.id)
    assert (rested.state, rested.cause) == ("cancelled", "user")
    after = await somebody.poll(session_id)
    assert (await somebody.said(turn)).startswith("".join(each.text for each in before.items if each.role == "assistant"))
    assert [item.kind for item in after.items if item.role == "marker"] == ["cancelled"]


async def _leaving_is_not_cancelling(somebody: Client) -> None:
    """J8, J9: a client that goes away changes nothing, and comes back to exactly what it has missed."""
    session_id = await somebody.session()
    follower = somebody.follow(session_id)
    turn = await somebody.send(session_id, "count to 60")
    await follower.saw("text", turn.id)
    await somebody.leave(follower)
    seen = follower.seq
    await somebody.answered(turn)
    assert follower.seq == seen
    somebody.come_back(follower)
    await follower.saw("turn.completed", turn.id)


async def _stop_leaves_the_conversation(somebody: Client) -> None:
    """R7: what runs is cancelled, and the next message begins a new conversation."""
    session_id = await somebody.session()
    turn = await streaming(somebody, session_id)
    assert (await somebody.command(session_id, "/stop"))["reply"]
    assert (await somebody.comes_to(turn.id)).state == "cancelled"
    assert (await somebody.get(f"/api/sessions/{session_id}"))["state"] == "suspended"
    following = await somebody.answered(await somebody.send(session_id, "count to 2"))
    session = await somebody.get(f"/api/sessions/{following.session_id}")
    assert (session["auto_reset_reason"], session["parent_id"]) == ("suspended", session_id)


async def _new_ends_the_conversation(somebody: Client) -> None:
    session_id = await somebody.session()
    await somebody.answered(await somebody.send(session_id, "count to 2"))
    assert (await somebody.command(session_id, "/new"))["reply"]
    ended = await somebody.get(f"/api/sessions/{session_id}")
    assert (ended["state"], ended["end_reason"]) == ("ended", "new")
    following = await somebody.answered(await somebody.send(session_id, "count to 2"))
    assert following.session_id != session_id
    assert (await somebody.get(f"/api/sessions/{following.session_id}"))["auto_reset_reason"] is None


async def _a_repeated_message_is_the_same_message(somebody: Client) -> None:
    """A3"""
    turn = await somebody.send(await somebody.session(), "count to 2")
    again = await somebody.repeat(turn)
    assert (again["turn_id"], again["duplicate"]) == (turn.id, True)


async def _a_message_says_what_it_does_to_a_busy_conversation(somebody: Client) -> None:
    """J9"""
    session_id = await somebody.session()
    turn = await streaming(somebody, session_id)
    address = f"/api/sessions/{session_id}/messages"
    refused = await somebody.ask("POST", address, {"text": "me too", "busy": "reject"})
    assert refused.status_code == 409, refused.text
    accepted = await somebody.ask("POST", address, {"text": "me first, count to 2", "busy": "interrupt"})
    assert (accepted.status_code, accepted.json()["superseded"]) == (202, [turn.id])
    rested = await somebody.turn(turn.id)
    assert (rested.state, rested.cause) == ("cancelled", "superseded")
    assert (await somebody.comes_to(accepted.json()["turn_id"])).state == "completed"


async def _resume_goes_on(somebody: Client) -> None:
    """R5, A3: sending the message again changes nothing; /resume lets its turn go on where a crash cut it off."""
    session_id = await somebody.session()
    turn = await streaming(somebody, session_id, "count to 80")
    await somebody.gateway.kill()
    await somebody.gateway.start()
    assert (await somebody.turn(turn.id)).state == "interrupted"
    again = await somebody.repeat(turn)
    assert (again["turn_id"], again["duplicate"], again["state"]) == (turn.id, True, "interrupted")
    told = await somebody.command(session_id, "/resume")
    assert told["turn_id"] == turn.id
    assert (await somebody.answered(turn)).attempt == 2
    assert (await somebody.said(turn)).endswith(" 79 80.")


async def test_what_comes_during_a_drain_is_answered_after_it() -> None:
    """R2, R3, J8: no new turn starts while the gateway drains; followers see both sides of the restart."""
    with gateways() as (gateway,):
        await gateway.start()
        async with client(gateway) as somebody:
            running, idle = await somebody.session(), await somebody.session()
            followers = [somebody.follow(each) for each in (running, idle)]
            turn = await somebody.send(running, "wait 1.5 seconds")
            await followers[0].saw("tool.started", turn.id, "wait")
            gateway.signal(signal.SIGTERM)
            await until(somebody.drains, "the gateway drains")
            late = [await somebody.send(each, "count to 2") for each in (running, idle)]
            assert [each.state for each in late] == ["queued", "queued"]
            assert (await somebody.ask("GET", "/ready")).status_code == 503
            assert await gateway.ended() == 0, gateway.tail()
            ended_at = int(time.time() * 1000)
            await gateway.start()
            done = await somebody.turn(turn.id)
            assert (done.state, done.attempt, done.cause) == ("completed", 1, None)
            for each in late:
                answered = await somebody.answered(each)
                assert answered.attempt == 1
                assert (answered.started_at or 0) >= ended_at
            await somebody.verify()
            assert all(follower.connections >= 2 for follower in followers)


@pytest.mark.parametrize("busy", ["interrupt", "steer", "reject"])
async def test_a_message_meets_a_busy_conversation(busy: str) -> None:
    """J9, A1: the newer message takes the place of the running turn, joins it, or is refused and leaves nothing."""
    with gateways(gateway__busy=busy) as (gateway,):
        await gateway.start()
        async with client(gateway) as somebody:
            session_id = await somebody.session()
            first = await streaming(somebody, session_id, "count to 900" if busy == "interrupt" else "count to 100")
            if busy == "reject":
                refused = await somebody.ask("POST", f"/api/sessions/{session_id}/messages", {"text": "me too"})
                assert refused.status_code == 409, refused.text
                await somebody.answered(first)
                await somebody.verify()
                return
            second = await somebody.send(session_id, "count to 2")
            await somebody.answered(second)
            rested = await somebody.comes_to(first.id)
            expected = ("cancelled", "superseded") if busy == "interrupt" else ("completed", None)
            assert (rested.state, rested.cause) == expected
            if busy == "steer":
                assert f"“{somebody.history.sent['n000002']}”" in await somebody.said(first)
            await somebody.verify()
