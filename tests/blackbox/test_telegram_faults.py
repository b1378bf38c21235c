"""What Telegram does to a bot: floods, blocked chats, groups that move, second consumers and silent connections."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

import httpx2
import pytest

from holdfast.drill.telegram.server import TOKEN, BotApiServer, Way
from tests.blackbox.gateway import until
from tests.blackbox.telegram import PATIENCE_S, scene

# A request for updates of a client that died may be held for so long, and a silent one is given up after it.
A_WHILE_S = 90.0


@pytest.mark.parametrize("stream", [pytest.param("status", marks=pytest.mark.long), "edit"])
async def test_a_flooded_chat_is_left_alone_and_answered_in_full_afterwards(stream: str) -> None:
    """D1: a 429 holds back every call to the chat, typing and edits too, and to no other chat."""
    async with scene(stream=stream) as here:
        team = here.there.group(-77, "Team")
        await here.gateway.start()
        here.asks_to_count(60, 20)
        await until(lambda: any(each.is_quiet or "w001" in each.text for each in here.hers.of_bot()), "its work is shown")
        here.there.flood(here.hers, 4)
        await here.answered(here.writes("@holdfast_bot meanwhile", team))
        assert here.hers.flooded_until > time.monotonic(), "the other chat was answered meanwhile"
        await here.verify()
        assert len(here.hers.calls_while_flooded) == 1, here.hers.calls_while_flooded


async def test_a_chat_that_cannot_be_written_to_holds_up_no_other() -> None:
    """D1: blocked, and deactivated; who comes back is answered again."""
    async with scene(allow=["1001", "2002", "3003"]) as here:
        bob, cid = here.there.person(2002, "Bob"), here.there.person(3003, "Cid")
        his, theirs = here.there.private(bob), here.there.private(cid)
        await here.gateway.start()
        bob.has_blocked, cid.is_deactivated = True, True
        here.there.says(his, bob, "one")
        here.there.says(theirs, cid, "two")
        await here.answered(here.writes())
        await until(lambda: len(here.model.requests) == 3, "all were answered", PATIENCE_S)
        await here.rests()
        assert (his.texts, theirs.texts) == ([], [])
        assert "blocked by the user" in await here.gateway.run("deliveries", "list", "--json")
        bob.has_blocked = False
        await here.answered(here.writes("again", his, bob))
        await here.verify()


async def test_a_group_that_becomes_a_supergroup_keeps_its_conversation() -> None:
    """It moves while it is being answered, or asked: the answer follows it, and the conversation goes on."""
    async with scene() as here:
        group, other = here.there.group(-500, "Team"), here.there.group(-600, "Others")
        await here.gateway.start()
        here.there.says(other, here.ann, '@holdfast_bot script: call ask_user {"question": "Which colour?"} | result')
        await here.sees("Which colour?", other)
        others = here.there.migrates(other)
        here.there.says(others, here.ann, "@holdfast_bot blue")
        await here.sees("blue", others)
        asked = len(here.model.requests)
        here.there.says(group, here.ann, "@holdfast_bot n00000 before")
        await here.sees("n00000", group)
        # The speaker's name stands before a script, so the model repeats it.
        here.model.script = "pings 10 every 0.1; echo"
        here.there.says(group, here.ann, "@holdfast_bot n00001 while it moves")
        await until(lambda: len(here.model.requests) == asked + 2, "it is being answered", PATIENCE_S)
        moved = here.there.migrates(group)
        await here.sees("n00001", moved)
        here.there.says(moved, here.ann, "@holdfast_bot n00002 after")
        await here.sees("n00002", moved)
        assert not any("n00001" in each for each in group.texts)
        said = str(here.model.requests[-1].body["messages"])
        assert all(nonce in said for nonce in ("n00000", "n00001", "n00002")), "it is one conversation"


@pytest.mark.long
async def test_a_second_consumer_is_named_and_left_alone() -> None:
    """It is told apart from a request that a dead gateway left behind, which is over after half a minute."""
    async with scene() as here:
        await here.gateway.start()
        await here.answered(here.writes())
        async with _another_consumer(here.there):
            await until(lambda: here.there.bot.conflicts, "the two meet", PATIENCE_S)

            async def is_taken() -> bool:
                return (await here.accounts())["telegram"]["state"] == "taken"

            await until(is_taken, "the second consumer is named", A_WHILE_S)
            assert "another program receives its messages" in (await here.accounts())["telegram"]["problem"]
        await here.gateway.run("restart")
        await here.gateway.ready()
        await here.answered(here.writes())
        await here.verify()


@contextlib.asynccontextmanager
async def _another_consumer(there: BotApiServer) -> AsyncIterator[None]:
    """Ask for updates again and again, and confirm none."""

    async def poll() -> None:
        async with httpx2.AsyncClient(timeout=60, trust_env=False) as web:
            while True:
                await web.post(f"{there.url}/bot{TOKEN}/getUpdates", json={"timeout": 50})

    polling = asyncio.create_task(poll())
    try:
        yield
    finally:
        polling.cancel()
        await asyncio.wait({polling})


@pytest.mark.long
async def test_a_connection_that_says_nothing_is_given_up() -> None:
    """It looks open for ever: the message that waits behind it is answered once the gateway asks anew."""
    async with scene() as here:
        await here.gateway.start()
        await here.answered(here.writes())
        here.there.fail(Way.SILENT_BEFORE, "getUpdates")
        # This answers the request that is held, and the next one is never answered.
        await here.answered(here.writes())
        unheard = here.writes("into the void")
        await here.sees(unheard.nonce, patience_s=A_WHILE_S)
        await here.verify()
