"""A provider that wants to hears of each turn as soon as it has ended, and nobody waits for that."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

import pytest

from holdfast.agent.scripted import Fail, Say, ScriptedAgent
from holdfast.clock import SystemClock
from holdfast.core.redaction import Redaction
from holdfast.core.segments import SegmentState
from holdfast.core.turns import TurnState
from holdfast.engine.turn_notes import WAITING_MAX, TurnNotes
from holdfast.errors import Rejected, Unavailable
from holdfast.ids import SessionId, TurnId
from holdfast.memory.bindings import MemoryBindings
from tests.engine.oracle import Deaf, Oracle
from tests.engine.world import FAST, Hang, Open, answered, opened, running_engine, until

SECRET = "open-sesame-42"


def talker() -> ScriptedAgent:
    return ScriptedAgent(lambda work: [Say(f"you said {work.message}")])


def heard(oracle: Oracle) -> list[list[str]]:
    return [[each.text for each in messages] for _, _, messages in oracle.noted]


async def test_each_turn_is_told_once_it_has_ended_and_in_order(open_it: Open) -> None:
    """M1: hearing of a turn commits nothing."""
    async with opened(open_it) as store:
        oracle = Oracle(mirrors=True)
        async with running_engine(store, talker(), memory=oracle) as engine:
            turns = [await answered(engine, store, text) for text in ("one", "two", "three")]
            await until(lambda: len(oracle.noted) == 3)
        assert heard(oracle) == [[text, f"you said {text}"] for text in ("one", "two", "three")]
        owed = await store.segments.of_session(turns[0].session_id)
        assert {segment.id for _, segment, _ in oracle.noted} == {each.id for each in owed}
        assert {session.id for session, _, _ in oracle.noted} == {turns[0].session_id}
        assert [each.state for each in owed] == [SegmentState.OPEN]
        assert oracle.committed == []


async def test_what_is_not_remembered_is_not_told(open_it: Open) -> None:
    """M1 M13: neither a turn that failed nor one that is to leave nothing behind."""
    async with opened(open_it) as store:
        oracle = Oracle(mirrors=True)
        script = ScriptedAgent(lambda work: [Fail("no") if work.message == "fail" else Say(work.message)])
        async with running_engine(store, script, memory=oracle) as engine:
            assert (await answered(engine, store, "fail")).state is TurnState.FAILED
            assert (await answered(engine, store, "in passing", remembers=False)).state is TurnState.COMPLETED
            await answered(engine, store, "remember")
            await until(lambda: oracle.noted)
        assert heard(oracle) == [["remember", "remember"]]


async def test_a_provider_that_does_not_mirror_is_told_nothing_before_the_commit(open_it: Open) -> None:
    async with opened(open_it) as store:
        oracle = Oracle(mirrors=False)
        async with running_engine(store, talker(), memory=oracle) as engine:
            await answered(engine, store)
            await answered(engine, store)
        assert oracle.noted == []


async def test_a_provider_that_hangs_delays_no_reply(open_it: Open) -> None:
    """M10: all turns are answered while it has not even heard of the first."""
    async with opened(open_it) as store:
        hang = Hang()
        oracle = Oracle(mirrors=True, notes=[hang])
        async with running_engine(store, talker(), memory=oracle) as engine:
            turns = [await answered(engine, store, text) for text in "abcd"]
            assert {turn.state for turn in turns} == {TurnState.COMPLETED}
            await until(lambda: oracle.noted)
            assert len(oracle.noted) == 1
            hang.release()
            await until(lambda: len(oracle.noted) == 4)


async def test_one_that_fails_is_left_alone_for_a_while_and_it_is_only_logged(
    open_it: Open, caplog: pytest.LogCaptureFixture
) -> None:
    """K1: the commit has every turn, so nothing is lost with it."""
    caplog.set_level(logging.INFO)
    async with opened(open_it) as store:
        oracle = Oracle(mirrors=True, notes=[Unavailable(f"{SECRET} is wrong")])
        async with running_engine(store, talker(), memory=oracle, redaction=Redaction([SECRET])) as engine:
            await answered(engine, store, "one")
            await until(lambda: "hears of no turn" in caplog.text)
            turn = await answered(engine, store, "two")
            await store.settlement.end_session(turn.session_id, "over", 1)
            await until(lambda: oracle.committed)
        assert heard(oracle) == [["one", "you said one"]]
        assert [each.text for each in oracle.committed[0]] == ["one", "you said one", "two", "you said two"]
        assert SECRET not in caplog.text


async def test_one_whom_memory_refuses_keeps_no_other_turn_from_it(open_it: Open) -> None:
    async with opened(open_it) as store:
        oracle = Oracle(mirrors=True, notes=[Rejected("only the operator is remembered there"), None])
        async with running_engine(store, talker(), memory=oracle) as engine:
            await answered(engine, store, "one")
            await until(lambda: oracle.noted)
            await answered(engine, store, "two")
            await until(lambda: len(oracle.noted) == 2)


async def test_one_that_does_not_answer_in_time_is_given_up(open_it: Open, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with opened(open_it) as store:
        oracle = Oracle(mirrors=True, notes=[Hang()])
        async with running_engine(store, talker(), memory=oracle, tuning=replace(FAST, note_timeout_ms=1_000)) as engine:
            await answered(engine, store, "one")
            await until(lambda: "no answer in time" in caplog.text)
        assert oracle.cancelled == 1


@pytest.mark.parametrize("answer", [SystemExit(1), asyncio.CancelledError(), KeyError("x")])
async def test_whatever_a_provider_does_with_a_note_the_gateway_goes_on(open_it: Open, answer: BaseException) -> None:
    async with opened(open_it) as store:
        oracle = Oracle(mirrors=True, notes=[answer])
        async with running_engine(store, talker(), memory=oracle) as engine:
            await answered(engine, store, "one")
            await until(lambda: oracle.noted)
            await answered(engine, store, "two")


async def test_one_that_does_not_stop_when_told_to_keeps_no_gateway_from_stopping(open_it: Open) -> None:
    async with opened(open_it) as store:
        hang = Hang()
        deaf = Deaf(mirrors=True, notes=[hang])
        async with running_engine(store, talker(), memory=deaf) as engine:
            await answered(engine, store, "one")
            await until(lambda: deaf.noted)
        hang.release()


async def test_no_more_than_so_many_wait_to_be_told(open_it: Open, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with opened(open_it) as store:
        oracle = Oracle(mirrors=True)
        mirror = TurnNotes(store, MemoryBindings(oracle), FAST, Redaction(), SystemClock())
        session = await store.sessions.open("local", "k", "telegram", SessionId("ses_1"), 1)
        for number in range(WAITING_MAX + 3):
            mirror.tell(session, TurnId(f"trn_{number}"))
        assert len([each for each in caplog.records if "too many wait" in each.message]) == 3
