"""Messages that are their own answer: no agent looks at them, and all else is as with any other turn."""

from __future__ import annotations

from holdfast.agent.scripted import ScriptedAgent
from holdfast.core.events import EntryKind
from holdfast.core.intake import Prior, Speaker
from holdfast.core.sessions import SessionState
from holdfast.core.transcript import Role, fold
from holdfast.core.turns import Cause, Mode, Policy, TurnState
from holdfast.ids import new_node_id, new_session_id, new_turn_id
from tests.claims import claim
from tests.engine.players import Witness, kinds_of
from tests.engine.world import START, Open, RecordingCarrier, answered, message, opened, running_engine, settled, until

ALERT = {"conversation": "webhook:alerts:1", "channel": "webhook", "mode": Mode.DETACHED, "one_shot": True}


async def test_a_verbatim_message_is_delivered_as_it_is_without_an_agent(open_it: Open) -> None:
    """V1, W4: its session ends with it."""
    agent, carrier = Witness(ScriptedAgent([])), RecordingCarrier()
    async with opened(open_it) as store, running_engine(store, agent, carriers={"chat": carrier}) as engine:
        turn = await answered(engine, store, "disk full|on db1", **ALERT, verbatim=True, reply_to="chat:1")
        assert (turn.state, turn.verbatim, agent.work) == (TurnState.COMPLETED, True, [])
        await until(lambda: len(carrier.sent) == 2)
        assert carrier.texts(turn) == ["disk full", "on db1"]
        session = await store.sessions.get(turn.session_id)
        assert (session.state, session.end_reason) == (SessionState.ENDED, "webhook_complete")
        items = fold(await store.journal.read(turn.session_id))
        assert [(item.role, item.text) for item in items] == [
            (Role.USER, "disk full|on db1"),
            (Role.ASSISTANT, "disk full|on db1"),
        ]


async def test_a_command_in_a_verbatim_message_is_only_text(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, Witness(ScriptedAgent([]))) as engine:
        receipt = await engine.inbox.accept(message("/new", **ALERT, verbatim=True))
        assert (await settled(store, receipt)).state is TurnState.COMPLETED
        assert await kinds_of(store, receipt) == [
            EntryKind.TURN_ACCEPTED, EntryKind.TURN_STARTED, EntryKind.TEXT, EntryKind.TURN_COMPLETED
        ]  # fmt: skip


async def test_a_verbatim_message_that_was_cut_off_is_still_only_its_own_words(open_it: Open) -> None:
    """R6, R10: no note about the interruption is put before it, and it goes on by itself."""
    async with opened(open_it) as store:
        node = new_node_id(START)
        await store.nodes.join(node, START)
        inbound = message("disk full", **ALERT, verbatim=True)
        receipt = await store.intake.accept(inbound, new_turn_id(START), new_session_id(START), START)
        (claimed,) = await claim(store, node, 1)
        await store.turns.start(claimed, START)
        await store.settlement.interrupt(node, [receipt.turn_id], Cause.CRASH, Policy(), START)
        async with running_engine(store, Witness(ScriptedAgent([]))):
            turn = await settled(store, receipt)
        assert turn.attempt == 2
        assert turn.state is TurnState.COMPLETED
        (text,) = [e.data["text"] for e in await store.journal.read_turn(turn.id) if e.kind is EntryKind.TEXT]
        assert text == "disk full"


async def test_what_is_asked_again_is_asked_with_all_that_came_with_it(open_it: Open) -> None:
    prior = (Prior(speaker=Speaker.USER, text="before"),)
    async with opened(open_it) as store, running_engine(store, Witness(ScriptedAgent([]))) as engine:
        request = {"endpoint": "runs", "instructions": "Be brief."}
        turn = await answered(engine, store, "disk full", **ALERT, verbatim=True, prior=prior, request=request)
        again = await engine.inbox.again(turn)
        assert again.turn_id != turn.id
        assert (await settled(store, again)).verbatim
        accepted, *_ = await store.journal.read_turn(again.turn_id)
        assert (accepted.event.said_before, accepted.event.request) == (prior, request)
