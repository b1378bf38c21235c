"""Commands: what every channel may say to the gateway itself."""

from __future__ import annotations

from holdfast.agent.scripted import Say, ScriptedAgent
from holdfast.core import sessions
from holdfast.core.intake import Receipt
from holdfast.core.transcript import Role, fold
from holdfast.core.turns import Cause, Mode, Policy, State
from holdfast.engine.engine import Engine
from holdfast.ids import SessionId
from holdfast.store.opening import Store
from tests.engine.players import Witness
from tests.engine.test_drain import HeldAgent, running
from tests.engine.world import Open, answered, message, opened, running_engine, settled


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
        await command(engine, "/new")
        old = await store.sessions.get(first.session_id)
        assert (old.state, old.end_reason) == (sessions.State.ENDED, "new")
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
            assert (turn.state, turn.cause) == (State.CANCELLED, "session_suspended")
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
            assert (await settled(store, resumed)).state is State.COMPLETED
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


async def test_what_a_machine_sends_is_no_command(open_it: Open) -> None:
    """W1: a webhook whose text happens to begin with a slash is a message like any other."""
    async with opened(open_it) as store, running_engine(store, echo()) as engine:
        hook = message("/stop", mode=Mode.DETACHED, one_shot=True, conversation="hook:1")
        receipt = await engine.inbox.accept(hook)
        assert receipt.reply is None
        assert (await settled(store, receipt)).state is State.COMPLETED
