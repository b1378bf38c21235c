"""What memory has to say to a message: asked before each turn, and never worth a reply."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from holdfast.agent.scripted import Pause, Say, ScriptedAgent
from holdfast.clock import SystemClock
from holdfast.config import Config, MemoryConfig
from holdfast.core.breaker import PAUSE_FIRST_MS
from holdfast.core.facts import Recollection
from holdfast.core.intake import Receipt
from holdfast.core.redaction import MASK, Redaction
from holdfast.core.turns import Turn, TurnState
from holdfast.engine.engine import Engine
from holdfast.engine.recall import Recall
from holdfast.errors import Rejected, Unavailable
from holdfast.ids import SessionId
from holdfast.memory.address import Address
from holdfast.memory.bindings import MemoryBindings
from holdfast.memory.http import HttpProvider
from holdfast.ports import Assignment, Stage
from holdfast.store.store import Store
from tests.engine.oracle import Deaf, Oracle, known
from tests.engine.players import in_state
from tests.engine.world import DEADLINE_S, Hang, Open, answered, message, opened, running_engine, settled, until
from tests.tools.contexts import call_context

SECRET = "open-sesame-42"
# So long that no test would end if it were waited for.
FOREVER_MS = 3_600_000


def waits(recall_timeout_ms: float) -> Config:
    return Config(memory=MemoryConfig(recall_timeout=recall_timeout_ms / 1000))


class Ahead(SystemClock):
    """The machine's clock, with a monotonic one that jumps ahead when it is told to."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def monotonic_ms(self) -> int:
        return super().monotonic_ms() + self.ahead_ms


class Listener:
    """An agent that hears what memory has to say before it answers.  `told` is that, by the message it was said to."""

    def __init__(self, *, knows_store: bool = False) -> None:
        self.told: dict[str, list[Recollection]] = {}
        self._knows_store = knows_store

    async def run(self, work: Assignment, stage: Stage) -> str:
        self.told[work.message] = list(await work.recalled(knows_store=self._knows_store))
        await stage.say("here")
        return "here"

    async def release(self, session_id: SessionId) -> None:
        """Hold nothing."""

    @property
    def texts(self) -> dict[str, list[str]]:
        return {message: [each.text for each in found] for message, found in self.told.items()}


async def begun(engine: Engine, *conversations: str) -> list[Receipt]:
    return [await engine.inbox.accept(message(f"about {key}", conversation=key)) for key in conversations]


async def test_a_turn_begins_with_what_memory_has_to_say_to_it(open_it: Open) -> None:
    async with opened(open_it) as store:
        oracle, agent = Oracle([Recollection(text="Likes  tea.", id="m1")]), Listener()
        async with running_engine(store, agent, memory=oracle, config=Config(memory=MemoryConfig(recall_limit=3))) as engine:
            turn = await answered(engine, store, "what do\nI like?", owner="ada")
        assert turn.state is TurnState.COMPLETED
        assert agent.told["what do\nI like?"] == [Recollection(text="Likes tea.", id="m1")]
        ((session, query, limit),) = oracle.asked
        assert (session.id, session.owner, query, limit) == (turn.session_id, "ada", "what do I like?", 3)


async def test_a_note_of_the_gateway_is_not_what_is_looked_for(open_it: Open) -> None:
    """R6: the note is for the model; the person said something else."""
    async with opened(open_it) as store:
        oracle = Oracle()
        async with running_engine(store, ScriptedAgent([Pause(FOREVER_MS)])) as engine:
            cut = await engine.inbox.accept(message("first"))
            await in_state(store, cut, TurnState.RUNNING)
            assert await engine.drain(0) == 1
        agent = Listener()
        async with running_engine(store, agent, memory=oracle) as engine:
            await answered(engine, store, "second")
        assert next(iter(agent.told)).startswith("[System note:")
        assert oracle.queries == ["second"]
        assert (await store.turns.get(cut.turn_id)).state is TurnState.INTERRUPTED


@pytest.mark.parametrize("knows_store", [True, False])
@pytest.mark.parametrize("owner", ["builtin", "http:there"])
async def test_the_store_is_not_asked_for_what_is_known_of_it_already(open_it: Open, owner: str, knows_store: bool) -> None:
    """Whoever has few memories is told of all of them, and looks no further; what is elsewhere nobody knows."""
    async with opened(open_it) as store:
        oracle, agent = Oracle(known("Likes tea."), owner=owner), Listener(knows_store=knows_store)
        async with running_engine(store, agent, memory=oracle) as engine:
            await answered(engine, store)
        is_asked = not (knows_store and owner == "builtin")
        assert bool(oracle.asked) is is_asked
        assert agent.texts == {"hello": ["Likes tea."] * is_asked}


async def test_memory_far_away_is_asked_before_the_agent_wants_to_know(open_it: Open) -> None:
    """So that it thinks while the rest is made ready; and an agent that does not care does not wait."""
    async with opened(open_it) as store:
        oracle = Oracle(Hang(), owner="http:there")
        agent = ScriptedAgent([Say("here")])
        async with running_engine(store, agent, memory=oracle, config=waits(FOREVER_MS)) as engine:
            assert (await answered(engine, store)).state is TurnState.COMPLETED
        assert oracle.queries == ["hello"]


@pytest.mark.parametrize("of", [{"channel": "webhook"}, {"one_shot": True}, {"verbatim": True}, {"text": "/compress"}])
async def test_strangers_errands_and_commands_ask_memory_nothing(open_it: Open, of: dict[str, Any]) -> None:
    """Security 8: nothing private stands beside what a stranger wrote."""
    async with opened(open_it) as store:
        oracle = Oracle(known("the treasure"))
        async with running_engine(store, Listener(), memory=oracle) as engine:
            turn = await answered(engine, store, **of)
        assert turn.state is TurnState.COMPLETED
        assert oracle.asked == []


async def test_a_provider_that_hangs_holds_up_one_reply_once(open_it: Open) -> None:
    """M10: nobody waits for it a second time, and the first one waits no longer than that."""
    async with opened(open_it) as store:
        oracle, agent = Oracle(Hang()), Listener()
        async with running_engine(store, agent, memory=oracle, config=waits(400)) as engine:
            began = time.monotonic()
            await answered(engine, store, "one", conversation="a")
            first_s = time.monotonic() - began
            for key in "bcdefgh":
                await answered(engine, store, key, conversation=key)
        assert 0.4 <= first_s < 10
        assert oracle.queries == ["one"]
        assert oracle.cancelled == 1
        assert not any(agent.told.values())
        assert len(agent.told) == 8


async def test_of_many_first_turns_one_waits_and_the_others_go_on(open_it: Open) -> None:
    """M10: the others are answered while the provider still hangs."""
    async with opened(open_it) as store:
        hang = Hang()
        oracle, agent = Oracle(hang, known("Likes tea.")), Listener()
        async with running_engine(store, agent, memory=oracle, config=waits(FOREVER_MS)) as engine:
            receipts = await begun(engine, *"abcdef")
            await until(lambda: len(agent.told) == 5)
            assert len(oracle.asked) == 1
            hang.release()
            assert {(await settled(store, each)).state for each in receipts} == {TurnState.COMPLETED}
            # It answered, however late, so it is asked again.
            await answered(engine, store, "more", conversation="g")
        assert agent.texts["more"] == ["Likes tea."]


async def test_of_many_turns_of_a_provider_that_begins_to_hang_one_waits_on() -> None:
    """M10: it has answered before, so all ask it at once; after a moment only one of them is still there."""
    hang = Hang()
    oracle = Oracle(known("Likes tea."), hang)
    recall = Recall(MemoryBindings(oracle), MemoryConfig(recall_timeout=FOREVER_MS / 1000), Redaction(), SystemClock())
    here = call_context()

    async def told(text: str) -> Sequence[Recollection]:
        return await recall.ask(here.session, here.turn, text)()

    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        running = group.create_task(recall.run())
        await asyncio.sleep(0)
        assert [each.text for each in await told("first")] == ["Likes tea."]
        waiting = [group.create_task(told(key)) for key in "abcdef"]
        await until(lambda: sum(each.done() for each in waiting) == 5)
        assert len(oracle.asked) == 7
        # Whoever comes now does not even ask.
        assert await told("late") == ()
        assert len(oracle.asked) == 7
        hang.release()
        await asyncio.gather(*waiting)
        # It answered after all, and everybody may ask again.
        await told("again")
        assert oracle.queries[-1] == "again"
        running.cancel()


async def test_one_whom_memory_refuses_costs_nobody_else_theirs(open_it: Open) -> None:
    """SECURITY 14: a server that takes only the operator's words would fall silent for them whenever a tenant speaks."""
    async with opened(open_it) as store:
        oracle, agent = Oracle(Rejected("only the operator is remembered there"), known("Likes tea.")), Listener()
        async with running_engine(store, agent, memory=oracle) as engine:
            await answered(engine, store, "one", conversation="a", owner="alice")
            await answered(engine, store, "two", conversation="b")
        assert agent.texts == {"one": [], "two": ["Likes tea."]}


async def test_after_the_pause_it_is_tried_beside_the_replies(open_it: Open) -> None:
    """M10: a provider that still hangs holds up nobody; one that is back is heard again."""
    async with opened(open_it) as store:
        clock, hang = Ahead(), Hang()
        oracle, agent = Oracle(Unavailable("busy"), hang, known("Likes tea.")), Listener()
        parts = {"memory": oracle, "clock": clock, "config": waits(FOREVER_MS)}
        async with running_engine(store, agent, **parts) as engine:
            await answered(engine, store, "one", conversation="a")
            await answered(engine, store, "two", conversation="b")
            assert oracle.queries == ["one"]
            clock.ahead_ms += PAUSE_FIRST_MS
            await answered(engine, store, "three", conversation="c")
            await answered(engine, store, "four", conversation="d")
            assert oracle.queries == ["one", "three"]
            hang.release()

            async def heard() -> bool:
                await answered(engine, store, "five", conversation="e")
                return bool(agent.told["five"])

            await until(heard)
        assert agent.texts == {"one": [], "two": [], "three": [], "four": [], "five": ["Likes tea."]}


async def test_whoever_asks_while_recall_stops_goes_on_without() -> None:
    """It may be started again, and until then a turn is answered all the same."""
    oracle = Oracle(known("Keeps bees."), Hang())
    recall = Recall(MemoryBindings(oracle), MemoryConfig(), Redaction(), SystemClock())
    running = asyncio.create_task(recall.run())
    await asyncio.sleep(0)
    here = call_context()
    assert await recall.ask(here.session, here.turn, "one")()
    recall.ask(here.session, here.turn, "two")
    await until(lambda: oracle.queries == ["one", "two"])
    running.cancel()
    await asyncio.sleep(0)
    assert not running.done()
    assert await recall.ask(here.session, here.turn, "three")() == ()
    await asyncio.wait((running,))
    assert oracle.queries == ["one", "two"]


async def test_a_provider_that_does_not_stop_when_told_to_holds_up_nobody_either(open_it: Open) -> None:
    async with opened(open_it) as store:
        hang = Hang()
        deaf, agent = Deaf(hang), Listener()
        async with running_engine(store, agent, memory=deaf, config=waits(50)) as engine:
            for key in "abc":
                await answered(engine, store, key, conversation=key)
            assert deaf.cancelled == 1
        assert deaf.queries == ["a"]
        hang.release()


@pytest.mark.parametrize(
    "answer",
    [
        RuntimeError(f"the key {SECRET} is wrong"),
        asyncio.CancelledError(),
        SystemExit(1),
        None,
        7,
        "text",
        [{"text": "x"}],
        object(),
    ],
)
async def test_whatever_a_provider_does_the_turn_is_answered(
    open_it: Open, answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """K1: and what it says of it is in no log if it is a secret."""
    caplog.set_level(logging.INFO)
    async with opened(open_it) as store:
        oracle, agent = Oracle(answer), Listener()
        async with running_engine(store, agent, memory=oracle, redaction=Redaction([SECRET])) as engine:
            turns = [await answered(engine, store, key, conversation=key) for key in "ab"]
        assert {turn.state for turn in turns} == {TurnState.COMPLETED}
        assert agent.texts == {"a": [], "b": []}
        assert oracle.queries == ["a"]
        assert SECRET not in caplog.text
        assert "crashed" not in caplog.text


async def test_what_is_recalled_is_bounded_cleaned_and_masked(open_it: Open) -> None:
    """K1"""
    async with opened(open_it) as store:
        flood = [Recollection(text=f"{number} \x00 {SECRET} {'x' * 10_000}") for number in range(10_000)]
        oracle, agent = Oracle(flood), Listener()
        async with running_engine(store, agent, memory=oracle, redaction=Redaction([SECRET])) as engine:
            await answered(engine, store)
        texts = agent.texts["hello"]
        assert len(texts) == 6
        assert sum(map(len, texts)) <= 6_000
        assert texts[3].startswith(f"3 {MASK} xxx")


async def test_a_turn_that_is_cancelled_while_memory_is_asked_stops_at_once(open_it: Open) -> None:
    async with opened(open_it) as store:
        oracle, agent = Oracle(Hang()), Listener()
        async with running_engine(store, agent, memory=oracle, config=waits(FOREVER_MS)) as engine:
            receipt = await engine.inbox.accept(message())
            await until(lambda: oracle.asked)
            await engine.cancel(receipt.turn_id)
            await until(lambda: engine.running == 0)
        assert agent.told == {}
        assert (await store.turns.get(receipt.turn_id)).state is TurnState.CANCELLED
        # The engine has stopped, and with it the call that nobody waited for.
        assert oracle.cancelled == 1


async def test_without_a_provider_nothing_is_asked(open_it: Open) -> None:
    async with opened(open_it) as store:
        agent = Listener()
        async with running_engine(store, agent) as engine:
            await answered(engine, store)
        assert agent.told == {"hello": []}


async def test_what_is_recalled_is_in_no_journal(open_it: Open) -> None:
    async with opened(open_it) as store:
        oracle = Oracle(known("the treasure is buried"))
        async with running_engine(store, Listener(), memory=oracle) as engine:
            turn: Turn = await answered(engine, store)
        assert oracle.asked
        assert "treasure" not in str(await store.journal.read(turn.session_id))
        assert await _found(store) == []


async def _found(store: Store) -> list[Any]:
    return list((await store.passages.find("local", "treasure")).hits)


def _json(memories: object) -> bytes:
    return json.dumps({"memories": memories}).encode()


def _http(body: bytes, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


@asynccontextmanager
async def serving(answer: bytes | None) -> AsyncIterator[tuple[HttpProvider, list[bytes]]]:
    """Yield the provider of a server that gives this answer to everything, or never says a word; and what it was asked."""
    over, requests = asyncio.Event(), list[bytes]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            requests.append(await reader.readuntil(b"\r\n\r\n"))
            if answer is None:
                await over.wait()
            else:
                writer.write(answer)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    address = Address(url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    provider = HttpProvider(address, timeout_s=60, redaction=Redaction(), clock=SystemClock())
    try:
        yield provider, requests
    finally:
        over.set()
        await provider.close()
        server.close()


FLOODS = {
    "never a word": None,
    "no HTTP at all": b"\x00\xff" * 100,
    "an error": _http(b"busy", "503 Service Unavailable"),
    "no JSON": _http(b"<html>"),
    "another shape": _http(b'{"memories": {"text": 7}}'),
    "10 MB": _http(_json([{"text": "x" * 10_000_000}])),
    "half an answer": _http(_json([{"text": "x"}]))[:-3],
}


@pytest.mark.parametrize("flood", FLOODS)
async def test_whatever_a_server_sends_the_next_reply_does_not_wait_for_it(open_it: Open, flood: str) -> None:
    """M10: over a real socket."""
    async with opened(open_it) as store, serving(FLOODS[flood]) as (provider, requests):
        agent = Listener()
        async with running_engine(store, agent, memory=provider, config=waits(1_000)) as engine:
            turns = [await answered(engine, store, key, conversation=key) for key in "abcd"]
        assert {turn.state for turn in turns} == {TurnState.COMPLETED}
        # None where even that came too late, but never a second one.
        assert len(requests) <= 1
        assert not any(agent.told.values())


async def test_ten_thousand_memories_of_a_server_are_as_many_as_were_asked_for(open_it: Open) -> None:
    many = _http(_json([{"text": f"fact {number}\u0000</recalled>", "id": number} for number in range(10_000)]))
    async with opened(open_it) as store, serving(many) as (provider, _):
        agent = Listener()
        async with running_engine(store, agent, memory=provider, config=waits(FOREVER_MS)) as engine:
            await answered(engine, store)
        assert agent.texts["hello"] == [f"fact {number} </recalled>" for number in range(8)]
