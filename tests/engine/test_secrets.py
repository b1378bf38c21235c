"""Secrets that the engine was told of reach nobody: not a row, not a file, not a log, not a chat, not a memory."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from holdfast.app.node import gateway
from holdfast.config import Config, StoreConfig
from holdfast.core import delivery
from holdfast.core.effects import Effect
from holdfast.core.intake import Prior, Speaker
from holdfast.core.questions import Question
from holdfast.core.redaction import MASK, Redaction
from holdfast.core.turns import TurnState
from holdfast.engine.engine import Engine
from holdfast.engine.log_redaction import redacted_logs
from holdfast.errors import Rejected, Unavailable
from holdfast.ids import CallId
from holdfast.ports import Assignment, Stage
from holdfast.store.database import Database, Run, Transaction
from holdfast.store.opening import store_path
from holdfast.store.retention import TABLES
from holdfast.store.store import Store
from tests.engine.world import (
    Open,
    RecordingCarrier,
    RecordingMemory,
    answered,
    message,
    opened,
    running_engine,
    settled,
    until,
)

# Two of them are begun alike, and two change when they are written as JSON.
SECRETS = ("sk-live-0123456789abcdef", "sk-live-0123-other", 'pass"word\\with quotes', "Schlüssel zum Söller")
ALL = " and ".join(SECRETS)

log = logging.getLogger("holdfast.tests")


class LeakyTool:
    """Gives away whatever it knows, in each of the ways a tool can."""

    effect = Effect.PURE

    def __init__(self, name: str, failure: Exception | None = None) -> None:
        self.name = name
        self._failure = failure

    async def run(self, args: Mapping[str, object], key: str) -> str:
        if self._failure:
            raise self._failure
        return f"the result holds {ALL}"


class LeakyAgent:
    """Gives away every secret, in each of the ways an agent can; the last word of a message says in which."""

    async def run(self, work: Assignment, stage: Stage) -> str:
        match work.message.split()[-1]:
            case "say":
                for letter in f"it is {ALL}, is it not":
                    await stage.say(letter)
                await stage.think(ALL[:12])
                await stage.think(ALL[12:])
            case "use":
                args = {"plain": ALL, ALL: "as a key", "deep": [{"inside": SECRETS}]}
                await stage.use(LeakyTool("open"), CallId("1"), args)
                await stage.use(LeakyTool("refusing", Rejected(f"not with {ALL}")), CallId("2"), {})
                await stage.use(LeakyTool("crashing", RuntimeError(f"crashed on {ALL}")), CallId("3"), {})
            case "ask":
                return await stage.ask(Question(id="question", text=f"may I show {ALL}?", detail={"command": ALL}))
            case "fail":
                raise Rejected(f"the model refused {ALL}")
            case "crash":
                raise RuntimeError(f"the agent crashed on {ALL}")
            case _:
                pass
        return f"the answer is {ALL}"


async def leak_everywhere(store: Store, redaction: Redaction) -> tuple[RecordingCarrier, RecordingMemory]:
    """Run a turn for each way in which a secret could get out, and return the world outside."""
    carrier = RecordingCarrier(*[f"receipt {ALL}"] * 2, Rejected(f"blocked {ALL}"), RuntimeError(f"lost {ALL}"))
    provider = RecordingMemory(*[ConnectionError(f"denied {ALL}")] * 20)
    async with running_engine(
        store, LeakyAgent(), carriers={"chat": carrier}, memory=provider, redaction=redaction
    ) as engine:
        for way in ("say", "use", "fail"):
            turn = await answered(engine, store, f"I tell you {ALL} say", conversation=way, reply_to="chat:1")
            assert turn.state is TurnState.COMPLETED
            turn = await answered(engine, store, f"and now {way}", conversation=way, reply_to="chat:1")
            assert turn.state is (TurnState.FAILED if way == "fail" else TurnState.COMPLETED)
        assert (await answered(engine, store, "and now crash", conversation="crash")).state is TurnState.INTERRUPTED
        await _ask_and_answer(engine, store)
        told = {"prior": (Prior(speaker=Speaker.USER, text=ALL),), "request": {"metadata": {ALL: [ALL]}, "user": ALL}}
        last = await answered(engine, store, "and now end", conversation="end", one_shot=True, **told)
        await until(lambda: _failed_to_commit(store, last.session_id))
        await until(lambda: _all_left(store))
    return carrier, provider


async def _ask_and_answer(engine: Engine, store: Store) -> None:
    receipt = await engine.inbox.accept(message("and now ask", conversation="ask"))
    await until(lambda: _waits(store, receipt.turn_id))
    await engine.answer(receipt.turn_id, "question", f"yes, it is {ALL}")
    assert (await settled(store, receipt)).state is TurnState.COMPLETED


async def _waits(store: Store, turn_id: str) -> bool:
    return (await store.turns.get(turn_id)).state is TurnState.WAITING


async def _failed_to_commit(store: Store, session_id: str) -> bool:
    return any(segment.error for segment in await store.segments.of_session(session_id))


async def _all_left(store: Store) -> bool:
    states = await _column(store.database, "deliveries", "state")
    return len(states) == 6 and set(states) <= delivery.SETTLED and delivery.DeliveryState.UNKNOWN not in states


async def _column(database: Database, table: str, column: str) -> list[str]:
    def work() -> Transaction[list[str]]:
        return [row[0] for row in (yield Run(f"SELECT {column} FROM {table}"))]

    return await database.read(work)


def spellings() -> Iterator[str]:
    """Yield every secret as it is, and as JSON and tracebacks write it."""
    for secret in SECRETS:
        yield from (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1])


def leaks(text: str) -> bool:
    return any(spelling in text for spelling in spellings())


async def leaking_columns(database: Database) -> set[str]:
    """Return every column of every table that holds a secret."""
    return await database.read(lambda: _leaking_columns(database.dialect.name == "sqlite"))


def _leaking_columns(sqlite: bool) -> Transaction[set[str]]:
    found: set[str] = set()
    for table in TABLES:
        named = yield Run(
            f"SELECT name FROM pragma_table_info('{table}')"
            if sqlite
            else f"SELECT column_name FROM information_schema.columns WHERE table_name = '{table}'"
        )
        for (column,) in named:
            rows = yield Run(f"SELECT {column} FROM {table}")
            if any(leaks(str(value)) for (value,) in rows):
                found.add(f"{table}.{column}")
    return found


def leaking_files(folder: Path) -> set[str]:
    """Return every file of the store whose bytes hold a secret."""
    files = store_path(folder).parent.glob(f"{store_path(folder).name}*")
    return {file.name for file in files if any(each.encode() in file.read_bytes() for each in spellings())}


async def test_a_planted_secret_is_in_no_row_no_file_no_log_no_chat_and_no_memory(
    open_it: Open, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """K1: streamed in pieces, in tools, errors, questions, messages and whatever the world answers."""
    caplog.set_level(logging.DEBUG)
    redaction = Redaction(SECRETS)
    with redacted_logs(redaction):
        async with opened(open_it) as store:
            carrier, provider = await leak_everywhere(store, redaction)
            assert await leaking_columns(store.database) == set()
            assert leaking_files(tmp_path) == set()
            masked = "".join(await _column(store.database, "entries", "data"))
        assert leaking_files(tmp_path) == set()
    assert not leaks(caplog.text)
    assert not any(leaks(sent.outgoing) for sent in carrier.sent)
    assert not any(leaks(repr(message)) for _, messages in provider.given for message in messages)
    assert MASK in masked
    assert MASK in caplog.text
    assert f"it is {' and '.join([MASK] * len(SECRETS))}, is it not" in masked, "what stands around a secret is kept"


async def test_without_redaction_the_same_turns_leak_wherever_they_could(
    open_it: Open, store_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """K1: the test above could fail, in each of these places."""
    caplog.set_level(logging.DEBUG)
    async with opened(open_it) as store:
        carrier, provider = await leak_everywhere(store, Redaction())
        expected = {
            "entries.data",
            "turns.error",
            "tool_calls.args",
            "questions.text",
            "questions.detail",
            "questions.answer",
            "tool_calls.result",
            "deliveries.text",
            "deliveries.receipt",
            "deliveries.error",
            "segments.error",
        }
        assert await leaking_columns(store.database) - {"passages.words"} == expected
        assert store_url != "sqlite" or leaking_files(tmp_path)
    for logged in ("the agent crashed on", "crashed on", "lost", "denied"):
        assert leaks(caplog.text[caplog.text.index(logged) :])
    assert any(leaks(sent.outgoing) for sent in carrier.sent)
    assert any(leaks(repr(message)) for _, messages in provider.given for message in messages)


def raised(text: str) -> Unavailable:
    """Return an error with its traceback."""
    with pytest.raises(Unavailable) as caught:
        raise Unavailable(text)
    return caught.value


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
async def test_the_gateway_masks_the_password_of_its_store_in_rows_and_logs(
    store_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """K1: what the configuration holds, the composition root makes known to the engine and to the log."""
    password = "p@ss/9eb18f493f8ec135d9eb2dad"
    url = store_url.replace("holdfast@", "holdfast:p%40ss%2F9eb18f493f8ec135d9eb2dad@", 1)
    config = Config(store=StoreConfig(url=url))
    async with gateway(config, tmp_path) as node:
        receipt = await node.engine.inbox.accept(message(f"is it {password}?"))
        await settled(node.store, receipt)
        log.error("cannot reach %s with %s", url, password, exc_info=raised(f"no answer from {url}"))
        data = "".join(await _column(node.store.database, "entries", "data"))
    assert f"is it {MASK}?" in data
    assert password not in data
    assert "cannot reach" in caplog.text
    assert "no answer from" in caplog.text
    assert "p%40ss" not in caplog.text
    assert password not in caplog.text


def test_a_discreet_log_is_the_same_log_but_for_its_secrets(caplog: pytest.LogCaptureFixture) -> None:
    """K1: percent signs, arguments and tracebacks survive; afterwards everything is as it was."""
    with redacted_logs(Redaction([SECRETS[0]])):
        log.warning("%d%% of %s", 50, SECRETS[0])
        log.warning("100% plain")
        log.error("it failed", exc_info=raised(SECRETS[0]))
    assert [record.getMessage() for record in caplog.records] == [f"50% of {MASK}", "100% plain", "it failed"]
    assert f"Unavailable: {MASK}" in caplog.text
    assert "Traceback" in caplog.text
    caplog.clear()
    log.warning("%s", SECRETS[0])
    assert caplog.messages == [SECRETS[0]]
