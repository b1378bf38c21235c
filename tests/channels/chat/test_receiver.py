"""Receiving: what a platform reports becomes durable once, whatever happens to the connection, the node and the account."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from holdfast.channels.chat.account import ChatServices
from holdfast.channels.chat.port import MenuEntry
from holdfast.channels.chat.receiver import Receiver, Timing
from holdfast.clock import SystemClock
from holdfast.core.chats import AccountRecord, AccountState, ChatMessage, Lease
from holdfast.core.intake import Inbound, Receipt
from holdfast.errors import AccountRefused, AccountTaken, Rejected, Unavailable
from holdfast.ids import NodeId, new_node_id
from holdfast.store.store import Store
from tests.channels.chat.platform import ACCOUNT, ScriptedPlatform, account_of, beside, closed, until
from tests.conformance.scenes import on_postgres
from tests.conformance.test_channels import chat_message

Open = Callable[[], Awaitable[Store]]
QUICK = Timing(deaf_ms=400, call_ms=2_000, taken_first_ms=30, look_again_ms=60, back_off_first_ms=5, lease_ms=20)


async def _refuse(message: Inbound) -> Receipt:
    raise NotImplementedError


async def _no_press(account: object, pressed: object) -> None:
    raise NotImplementedError


async def wait_forever(lease: Lease) -> None:
    await asyncio.Event().wait()


def services(store: Store, node_id: NodeId, menu: tuple[MenuEntry, ...] = ()) -> ChatServices:
    return ChatServices(
        store=store,
        clock=SystemClock(),
        node_id=node_id,
        accept=_refuse,
        press=_no_press,
        menu=menu,
    )


async def joined(store: Store) -> NodeId:
    node_id = new_node_id(0)
    await store.nodes.join(node_id, 0)
    return node_id


async def record(store: Store) -> AccountRecord:
    found = await store.channels.find(ACCOUNT)
    return found or AccountRecord(name=ACCOUNT, kind="")


async def staged(store: Store) -> list[str]:
    events = [each.event for each in await store.channels.staged(ACCOUNT)]
    return [event.message_id for event in events if isinstance(event, ChatMessage)]


def receiving(store: Store, node_id: NodeId, platform: ScriptedPlatform, timing: Timing = QUICK, **settings: object):
    receiver = Receiver(account_of(platform, **settings), services(store, node_id), timing)
    return beside(receiver.run(wait_forever))


async def test_a_batch_is_durable_before_it_is_acknowledged(open_it: Open) -> None:
    """A2: the platform is told only after the commit."""
    store, platform, seen = await open_it(), ScriptedPlatform(), list[list[str]]()

    async def look() -> None:
        seen.append(await staged(store))

    platform.before_acknowledge = look
    platform.report(chat_message("1"), chat_message("2"))
    async with closed(store), receiving(store, await joined(store), platform):
        await until(lambda: platform.acknowledged == 2)
        assert seen[0] == ["1", "2"]
        assert await store.channels.position(ACCOUNT) == "2"
        found = await record(store)
        assert (found.state, found.bot_id, found.bot_name) == (AccountState.CONNECTED, "1000", "holdfast_bot")


async def test_what_is_reported_again_is_staged_once(open_it: Open) -> None:
    store, platform = await open_it(), ScriptedPlatform(forgets_position=True)
    async with closed(store), receiving(store, await joined(store), platform):
        platform.report(chat_message("1"), chat_message("2"))
        await until(lambda: platform.acknowledged == 2)
        platform.drop()
        await until(lambda: platform.connects == 2)
        platform.report(chat_message("3"))
        await until(lambda: platform.acknowledged == 3)
        assert await staged(store) == ["1", "2", "3"]


async def test_a_batch_without_events_is_evidence(open_it: Open) -> None:
    store, platform = await open_it(), ScriptedPlatform()
    async with closed(store), receiving(store, await joined(store), platform):
        await until(lambda: _received(store))
        first = (await record(store)).last_receive_at
        assert first
        await until(lambda: _received(store, first))


async def _received(store: Store, after: int = 0) -> bool:
    return ((await record(store)).last_receive_at or 0) > after


async def test_a_second_consumer_is_waited_for_once_and_then_named(open_it: Open, caplog: pytest.LogCaptureFixture) -> None:
    store, platform = await open_it(), ScriptedPlatform()
    platform.refusals += [AccountTaken("terminated by other getUpdates request") for _ in range(3)]
    platform.report(chat_message("1"))
    async with closed(store), receiving(store, await joined(store), platform):
        await until(lambda: _state(store, AccountState.TAKEN))
        assert "another program receives its messages" in (await record(store)).problem
        assert [each.levelno for each in caplog.records if "another program" in each.message].count(logging.ERROR) >= 1
        await until(lambda: platform.acknowledged == 1)
        assert await _state(store, AccountState.CONNECTED)
        assert (await record(store)).problem == ""


async def test_one_conflict_is_no_alert(open_it: Open, caplog: pytest.LogCaptureFixture) -> None:
    """The request of a client that died runs on for half a minute."""
    store, platform = await open_it(), ScriptedPlatform()
    platform.report_error(AccountTaken("terminated by other getUpdates request"))
    platform.report(chat_message("1"))
    async with closed(store), receiving(store, await joined(store), platform):
        await until(lambda: platform.acknowledged == 1)
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


async def test_a_refused_account_says_why_and_is_looked_at_again(open_it: Open) -> None:
    store, platform = await open_it(), ScriptedPlatform()
    platform.refusals += [AccountRefused("Unauthorized"), AccountRefused("Unauthorized")]
    platform.report(chat_message("1"))
    async with closed(store), receiving(store, await joined(store), platform):
        await until(lambda: _state(store, AccountState.REFUSED))
        assert (await record(store)).problem == "Unauthorized"
        await until(lambda: platform.acknowledged == 1)


async def test_a_platform_that_says_when_is_asked_then(open_it: Open) -> None:
    store, platform, slept = await open_it(), ScriptedPlatform(), list[float]()

    class Noting(SystemClock):
        async def sleep_ms(self, duration_ms: float) -> None:
            slept.append(duration_ms)

    platform.refusals += [Unavailable("flood", 0), Rejected("bad"), Unavailable("flood", retry_after_s=7)]
    platform.report(chat_message("1"))
    node_id = await joined(store)
    parts = services(store, node_id)
    receiver = Receiver(account_of(platform), ChatServices(**{**_fields(parts), "clock": Noting()}), QUICK)  # type: ignore[arg-type]
    async with closed(store), beside(receiver.run(wait_forever)):
        await until(lambda: platform.acknowledged == 1)
    assert slept[:3] == [5, 10, 7_000]


def _fields(parts: ChatServices) -> dict[str, object]:
    return {name: getattr(parts, name) for name in parts.__slots__}


async def test_an_acknowledgement_that_fails_loses_nothing(open_it: Open) -> None:
    store, platform = await open_it(), ScriptedPlatform()
    failures = [Unavailable("away")]

    async def fail() -> None:
        if failures:
            raise failures.pop()

    platform.before_acknowledge = fail
    platform.report(chat_message("1"))
    async with closed(store), receiving(store, await joined(store), platform):
        await until(lambda: platform.connects == 2)
        await until(lambda: platform.acknowledged == 1)
        assert await staged(store) == ["1"]


async def test_the_menu_is_offered_when_it_changed(open_it: Open) -> None:
    store, platform = await open_it(), ScriptedPlatform()
    node_id = await joined(store)
    for menu in [(MenuEntry(name="new", text="begin"),)] * 2 + [(MenuEntry(name="new", text="begin anew"),)]:
        before = platform.connects
        receiver = Receiver(account_of(platform), services(store, node_id, menu), QUICK)
        async with beside(receiver.run(wait_forever)):
            await until(lambda before=before: platform.connects > before)
    await store.close()
    assert [menu[0].text for menu in platform.offered] == ["begin", "begin anew"]


async def test_stopping_gives_the_lease_back(open_it: Open) -> None:
    store, platform = await open_it(), ScriptedPlatform()
    async with closed(store):
        async with receiving(store, await joined(store), platform):
            await until(lambda: _state(store, AccountState.CONNECTED))
        found = await record(store)
        assert (found.node_id, found.state) == (None, AccountState.STOPPED)


@on_postgres
async def test_the_node_that_lives_goes_on_where_the_dead_one_stopped(open_it: Open) -> None:
    """Two nodes, one account: never two listeners, and nothing is lost or staged twice."""
    first, second, platform, others = await open_it(), await open_it(), ScriptedPlatform(), ScriptedPlatform()
    others.events = platform.events
    dead, alive = await joined(first), await joined(second)
    async with closed(first), closed(second), receiving(second, alive, others):
        await until(lambda: _state(second, AccountState.CONNECTED))
        async with receiving(first, dead, platform):
            others.report(chat_message("1"))
            await until(lambda: others.acknowledged == 1)
            await asyncio.sleep(0.1)
            assert platform.connects == 0
            # The others declare it dead, while it only was silent.
            assert await first.nodes.bury(alive, (await first.nodes.beats())[alive])
            platform.report(chat_message("2"))
            await until(lambda: platform.acknowledged == 2)
            assert (await record(first)).node_id == dead
            # What the silent one receives now moves nothing: its lease is gone.
            others.report()
            await asyncio.sleep(0.7)
            assert await first.channels.position(ACCOUNT) == "2"
            assert await staged(first) == ["1", "2"]
            connects = others.connects
            await asyncio.sleep(0.2)
            assert others.connects == connects


async def _state(store: Store, state: AccountState) -> bool:
    return (await record(store)).state is state
