"""Commands: what every channel may say to the gateway itself."""

from __future__ import annotations

import pytest

from holdfast.agent.scripted import Say, ScriptedAgent
from holdfast.core import sessions
from holdfast.core.intake import Cursor, Receipt
from holdfast.core.transcript import Role, fold
from holdfast.core.turns import Cause, Mode, Policy, TurnState
from holdfast.engine.engine import Engine
from holdfast.ids import SessionId
from holdfast.store.database import Run, Transaction
from holdfast.store.store import Store
from tests.engine.players import Witness
from tests.engine.test_drain import HeldAgent, running
from tests.engine.world import TARGET, Open, RecordingCarrier, answered, message, opened, running_engine, settled


def echo() -> ScriptedAgent:
    return ScriptedAgent(lambda work: [Say(f"you said {work.message.rpartition(']')[2].strip()}")])


async def said(store: Store, session_id: SessionId) -> list[tuple[str, str]]:
    items = fold(await store.journal.read(session_id))
    return [(item.role.value, item.text) for item in items if item.role in (Role.USER, Role.ASSISTANT)]


async def command(engine: Engine, text: str) -> Receipt:
    receipt = await engine.inbox.accept(message(text))
    assert receipt.reply
    return receipt


async def test_new_ends_the_conversation_and_the_next_message_begins_another(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, echo()) as engine:
        first = await answered(engine, store, "one")
        receipt = await command(engine, "/new")
        # Nobody remembers here, so nothing is said of memory.
        assert receipt.reply == "A new conversation begins with your next message."
        old = await store.sessions.get(first.session_id)
        assert (old.state, old.end_reason) == (sessions.SessionState.ENDED, "new")
        second = await answered(engine, store, "two")
        assert second.session_id != first.session_id
        assert (await store.sessions.get(second.session_id)).auto_reset_reason is None


async def test_stop_cancels_and_suspends_and_the_next_message_is_told_why(open_it: Open) -> None:
    """R7, J9"""
    async with opened(open_it) as store:
        agent = HeldAgent(store, "one")
        async with running_engine(store, agent) as engine:
            accepted = await engine.inbox.accept(message("one"))
            await running(store, accepted)
            await command(engine, "/stop")
            turn = await settled(store, accepted)
            assert (turn.state, turn.cause) == (TurnState.CANCELLED, "session_suspended")
            successor = await answered(engine, store, "two")
            session = await store.sessions.get(successor.session_id)
            assert (session.auto_reset_reason, session.parent_id) == ("suspended", accepted.session_id)
            assert ("assistant", "working on it") in await said(store, accepted.session_id)


async def test_undo_leaves_the_last_exchange_out_of_what_the_agent_sees(open_it: Open) -> None:
    async with opened(open_it) as store:
        witness = Witness(echo())
        async with running_engine(store, witness) as engine:
            await answered(engine, store, "one")
            await answered(engine, store, "two")
            assert "two" in (await command(engine, "/undo")).reply
            await answered(engine, store, "three")
    history = [item.text for item in witness.work[-1].history if item.role is Role.USER]
    assert history == ["one", "three"]


async def test_retry_answers_the_last_message_anew(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, echo()) as engine:
        first = await answered(engine, store, "one")
        again = await settled(store, await command(engine, "/retry"))
        assert again.id != first.id
        assert await said(store, first.session_id) == [("user", "one"), ("assistant", "you said one")]


async def test_resume_goes_on_with_what_was_cut_off(open_it: Open) -> None:
    """R10, R5"""
    async with opened(open_it) as store:
        agent = HeldAgent(store, "one")
        async with running_engine(store, agent) as engine:
            accepted = await engine.inbox.accept(message("one"))
            await running(store, accepted)
            await store.settlement.interrupt(
                engine.node_id, [accepted.turn_id], Cause.RESTART_TIMEOUT, Policy(), accepted.accepted_at
            )
        async with running_engine(store, echo()) as engine:
            resumed = await command(engine, "/resume")
            assert resumed.turn_id == accepted.turn_id
            assert (await settled(store, resumed)).state is TurnState.COMPLETED
            assert "Nothing" in ((await command(engine, "/resume")).reply or "")


async def test_title_and_status_speak_of_this_conversation(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, echo()) as engine:
        turn = await answered(engine, store, "one")
        await command(engine, "/title a walk")
        assert (await store.sessions.get(turn.session_id)).title == "a walk"
        status = (await command(engine, "/status")).reply or ""
        assert "a walk" in status
        assert turn.session_id in status


async def test_where_there_is_no_conversation_a_command_says_so(open_it: Open) -> None:
    """R12"""
    async with opened(open_it) as store, running_engine(store, echo()) as engine:
        for text in ("/new", "/stop", "/status", "/resume", "/retry", "/undo", "/title x", "/help"):
            assert (await command(engine, text)).turn_id == ""


@pytest.mark.parametrize("text", ["/undo", "/retry", "/new", "/stop", "/resume", "/title x", "/status"])
async def test_a_command_that_is_sent_twice_is_done_once(open_it: Open, text: str) -> None:
    """A3: its answer was lost, or the gateway restarted before the channel had read on."""
    async with opened(open_it) as store, running_engine(store, echo()) as engine:
        await answered(engine, store, "one")
        second = await answered(engine, store, "two")
        once = message(text, dedupe_key="k", cursor=Cursor(channel="telegram", position="7"))
        first = await engine.inbox.accept(once)
        if first.turn_id:
            await settled(store, first)
        before = [(item.role, item.text) for item in fold(await store.journal.read(second.session_id))]
        after_it = await answered(engine, store, "three") if text in ("/new", "/stop") else None
        again = await engine.inbox.accept(once)
        assert again.turn_id == first.turn_id
        if after_it:
            assert (await store.sessions.get(after_it.session_id)).state is sessions.SessionState.OPEN
        assert [(item.role, item.text) for item in fold(await store.journal.read(second.session_id))] == before
        assert await store.intake.cursor("telegram") == "7"


async def test_retry_asks_with_everything_that_had_joined(open_it: Open) -> None:
    async with opened(open_it) as store:
        witness = Witness(echo())
        async with running_engine(store, witness) as engine:
            first = await engine.inbox.accept(message("one"))
            await settled(store, first)
            (host,) = await store.turns.list(first.session_id)
            await store.database.write(lambda: _join(host.session_id, host.id))
            await settled(store, await command(engine, "/retry"))
    assert witness.messages[-1] == "one\n\nand two"


def _join(session_id: str, turn_id: str) -> Transaction[None]:
    """Put a message into a turn, as steering does."""
    yield Run("UPDATE sessions SET seq = seq + 1 WHERE id = :id", {"id": session_id})
    yield Run(
        """INSERT INTO entries (session_id, seq, turn_id, attempt, kind, at, data)
           SELECT :id, seq, :turn_id, 1, 'message.joined', 1, '{"text": "and two"}' FROM sessions WHERE id = :id""",
        {"id": session_id, "turn_id": turn_id},
    )


async def test_what_is_asked_again_goes_to_the_same_reader(open_it: Open) -> None:
    """A2: and is no command, whatever it says."""
    async with opened(open_it) as store, running_engine(store, echo(), carriers={"chat": RecordingCarrier()}) as engine:
        hook = message("/stop", mode=Mode.DETACHED, one_shot=True, conversation="hook:1", reply_to=TARGET)
        first = await settled(store, await engine.inbox.accept(hook))
        again = await settled(store, await engine.inbox.again(first))
        assert (again.mode, again.reply_to, again.state) == (first.mode, first.reply_to, TurnState.COMPLETED)
        assert again.session_id != first.session_id


async def test_what_a_machine_sends_is_no_command(open_it: Open) -> None:
    """W1: a webhook whose text happens to begin with a slash is a message like any other."""
    async with opened(open_it) as store, running_engine(store, echo()) as engine:
        hook = message("/stop", mode=Mode.DETACHED, one_shot=True, conversation="hook:1")
        receipt = await engine.inbox.accept(hook)
        assert receipt.reply is None
        assert (await settled(store, receipt)).state is TurnState.COMPLETED
