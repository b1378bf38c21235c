"""Two gateways on one PostgreSQL: one is killed, frozen or stopped while the other goes on."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest

from holdfast.clock import SystemClock
from holdfast.config import GatewayConfig, SessionsConfig
from holdfast.core.intake import Inbound
from holdfast.core.redaction import Redaction
from holdfast.core.turns import Mode
from holdfast.engine.inbox import Inbox
from holdfast.store.opening import open_store
from tests.blackbox.client import Client, client
from tests.blackbox.gateway import Gateway, gateways, until
from tests.blackbox.history import SYSTEM_NOTE
from tests.postgres import Server

_names = itertools.count(1)
ONE, OTHER = 0, 1


@pytest.fixture
def url(postgres: Server) -> Iterator[str]:
    name = f"blackbox_{next(_names)}"
    yield postgres.create_database(name)
    postgres.drop_database(name)


@contextlib.asynccontextmanager
async def two(url: str, **settings: str) -> AsyncIterator[tuple[Gateway, Gateway, Client]]:
    """Two homes on one store.  Only the first is started, so that it is the one that takes up what is sent."""
    with gateways(2, store__url=url, **settings) as (one, other):
        await one.start()
        async with client(one, other) as somebody:
            yield one, other, somebody


async def send_webhook(url: str, home: Path) -> str:
    """Accept what nobody will follow up, as a webhook does; no route of the gateway brings one in yet."""
    store = await open_store(url, home)
    try:
        message = Inbound(
            conversation="hook", text="n9 wait 4 seconds", channel="webhook", mode=Mode.DETACHED, one_shot=True
        )
        return (await Inbox(store, GatewayConfig(), SessionsConfig(), Redaction(), SystemClock()).accept(message)).turn_id
    finally:
        await store.close()


@pytest.mark.long
async def test_what_nobody_follows_up_goes_on_when_its_node_is_killed(url: str, tmp_path: Path) -> None:
    """R9, R10, W4: a conversation rests until its next message; a detached turn goes on elsewhere, and ends its session."""
    async with two(url) as (one, other, somebody):
        session_id = await somebody.session()
        followers = [somebody.follow(session_id), somebody.follow(session_id, via=OTHER)]
        turn = await somebody.send(session_id, "count to 900")
        hook = await send_webhook(url, tmp_path)
        await followers[ONE].saw("text", turn.id)
        await somebody.comes_to(hook, "running")
        await other.start()
        await one.kill()
        rested = await somebody.comes_to(turn.id, "interrupted", via=OTHER)
        assert rested.cause == "crash"
        done = await somebody.comes_to(hook, via=OTHER)
        assert (done.state, done.attempt) == ("completed", 2)
        hooked = await somebody.get(f"/api/sessions/{done.session_id}", OTHER)
        assert (hooked["state"], hooked["end_reason"]) == ("ended", "webhook_complete")
        following = await somebody.send(session_id, "count to 2", via=OTHER)
        await somebody.answered(following, via=OTHER)
        assert following.session_id == session_id
        assert (await somebody.said(following, "reasoning", OTHER)).count(SYSTEM_NOTE) == 1
        # The follower of the one that was killed comes back to it, and has missed nothing.
        await one.start()
        await somebody.verify(via=OTHER)


async def test_a_zombie_changes_nothing_and_begins_anew(url: str) -> None:
    """T4, R10, J1: frozen past its lease, it finds its turns taken over; what it still says stands above the marker."""
    async with two(url, gateway__resume="auto") as (one, other, somebody):
        texts = {"streaming": "count to 150", "tool": "wait 4 seconds", "queued": "wait 4 seconds"}
        sessions = {name: await somebody.session() for name in texts}
        followers = {name: somebody.follow(each) for name, each in sessions.items()}
        turns = {name: await somebody.send(sessions[name], text) for name, text in texts.items()}
        behind = await somebody.send(sessions["queued"], "count to 2")
        for name, turn in turns.items():
            await followers[name].saw("text", turn.id)
        await asyncio.gather(*(followers[name].saw("tool.started", turns[name].id, "wait") for name in ("tool", "queued")))
        zombie = await one.node()
        one.signal(signal.SIGSTOP)
        await other.start()
        others = [somebody.follow(each, via=OTHER) for each in sessions.values()]
        for name, turn in turns.items():
            again = await somebody.comes_to(turn.id, "running", via=OTHER)
            await until(lambda: somebody.has_attempt(turn.id, 2, OTHER), f"{name} goes on elsewhere")  # noqa: B023 - Awaited.
            assert again.session_id == sessions[name]
        one.signal(signal.SIGCONT)
        await one.begins_anew(zombie)
        for turn in (*turns.values(), behind):
            await somebody.answered(turn, via=OTHER)
        outcome = await somebody.verify(via=OTHER)
        for turn in turns.values():
            cut = [each.data.get("cause") for each in outcome.journals[turn.session_id] if each.kind == "turn.interrupted"]
            assert cut == ["crash"]
        assert all(follower.connections for follower in others)


async def test_a_node_that_is_frozen_while_it_stops_still_stops(url: str) -> None:
    """R2, T4: what it ran is taken over, and it does not begin anew in the place of the end that it was asked for."""
    async with two(url, gateway__resume="auto", gateway__drain_timeout="60") as (one, other, somebody):
        session_id = await somebody.session()
        follower = somebody.follow(session_id)
        turn = await somebody.send(session_id, "wait 30 seconds")
        await follower.saw("tool.started", turn.id, "wait")
        one.signal(signal.SIGTERM)
        await one.says("Stopping")
        one.signal(signal.SIGSTOP)
        await other.start()
        await until(lambda: somebody.has_attempt(turn.id, 2, OTHER), "it goes on elsewhere")
        one.signal(signal.SIGCONT)
        assert await one.ended() == 0, one.tail()


async def test_one_node_stops_while_the_other_serves_the_same_conversation(url: str) -> None:
    """R2, R4, J8: the stream of the other shows every word, the cause and the next answer without a break."""
    async with two(url, gateway__drain_timeout="0.5") as (one, other, somebody):
        session_id = await somebody.session()
        own = somebody.follow(session_id)
        turn = await somebody.send(session_id, "count to 900")
        await own.saw("text", turn.id)
        await other.start()
        watching = somebody.follow(session_id, via=OTHER)
        await watching.saw("text", turn.id)
        one.signal(signal.SIGTERM)
        assert await one.ended() == 0, one.tail()
        cut = await watching.saw("turn.interrupted", turn.id)
        assert cut.data["cause"] == "shutdown_timeout"
        following = await somebody.send(session_id, "count to 2", via=OTHER)
        await somebody.answered(following, via=OTHER)
        thought = await somebody.said(following, "reasoning", OTHER)
        assert (thought.count(SYSTEM_NOTE), thought.count("gateway shutdown")) == (1, 1)
        assert watching.connections == 1
        await one.start()
        await somebody.verify(via=OTHER)


async def test_a_gateway_that_closes_refuses_what_it_has_not_answered(url: str) -> None:
    """R12, A2: a message that hangs in the store when its gateway closes is refused as one that may be sent again."""
    with gateways(store__url=url) as (gateway,):
        await gateway.start()
        async with client(gateway) as somebody:
            session_id = await somebody.session()
            holder = await asyncpg.connect(url)
            try:
                await holder.execute("BEGIN; SELECT id FROM sessions FOR UPDATE")
                message = {"text": "n1 hello"}
                sending = asyncio.create_task(somebody.ask("POST", f"/api/sessions/{session_id}/messages", message))
                await until(lambda: _waits_for_a_lock(url), "the message waits")
                gateway.signal(signal.SIGTERM)
                refused = await sending
            finally:
                await holder.close()
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "closing")
            assert await gateway.ended() == 0, gateway.tail()
            assert "Traceback" not in gateway.log.read_text()


async def _waits_for_a_lock(url: str) -> bool:
    watcher = await asyncpg.connect(url)
    try:
        return bool(await watcher.fetchval("SELECT COUNT(*) FROM pg_locks WHERE NOT granted"))
    finally:
        await watcher.close()
