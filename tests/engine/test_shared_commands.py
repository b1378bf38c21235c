"""The commands that choose a model, go on elsewhere, give permission, and send a message in one way or another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from holdfast.agent.models.choice import ModelChoices
from holdfast.agent.models.providers import Directory
from holdfast.agent.scripted import Say, ScriptedAgent
from holdfast.clock import SystemClock
from holdfast.config import ModelConfig
from holdfast.core.commands import HELP
from holdfast.core.intake import Cursor, Receipt
from holdfast.core.questions import short_id
from holdfast.core.sessions import SessionState, Source
from holdfast.core.turns import TurnState
from holdfast.core.usage import Usage
from holdfast.engine.engine import Engine
from holdfast.errors import ConfigInvalid, KeyReused
from holdfast.ids import SessionId
from holdfast.store.store import Store
from tests.engine.players import Witness, text_of
from tests.engine.test_commands import echo, said
from tests.engine.test_drain import HeldAgent, running
from tests.engine.world import TARGET, Open, RecordingCarrier, answered, message, opened, running_engine, settled, until
from tests.operations.asking import Asking

SMALL, LARGE, OTHER = "openai:small-1", "openai:large-1", "anthropic:wise-2"


def not_opened(name: str) -> Any:
    """Open no model: nothing here asks one."""
    if "broken" in name:
        raise ConfigInvalid(f"the chosen model: {name} cannot be opened")
    return name


def choices() -> ModelChoices:
    # The port is closed, so no provider tells what it offers.
    config = ModelConfig(name=SMALL, base_url="http://127.0.0.1:1/v1", choices=(LARGE,), fallback=(OTHER,))
    return ModelChoices(config, Directory(config=config, providers={}, environment={}), not_opened, SystemClock())


async def command(engine: Engine, text: str, **changes: Any) -> Receipt:
    receipt = await engine.inbox.accept(message(text, **changes))
    assert receipt.reply is not None
    return receipt


async def told(engine: Engine, text: str, **changes: Any) -> str:
    return (await command(engine, text, **changes)).reply or ""


DISCORD: Mapping[str, Any] = {"conversation": "discord:9", "channel": "discord", "reply_to": TARGET}


async def test_a_chosen_model_is_used_from_the_next_turn_on_and_only_here(open_it: Open) -> None:
    async with opened(open_it) as store:
        witness = Witness(echo())
        async with running_engine(store, witness, models=choices()) as engine:
            await answered(engine, store, "one")
            assert await told(engine, "/model large-1") == f"{LARGE} answers in this conversation from the next message on."
            await answered(engine, store, "two")
            await answered(engine, store, "elsewhere", conversation="chat:2")
            await told(engine, "/model default")
            await answered(engine, store, "three")
    assert [work.session.model for work in witness.work] == [None, LARGE, None, None]


async def test_a_model_can_be_chosen_before_the_first_message(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, echo(), models=choices()) as engine:
        receipt = await command(engine, f"/model {OTHER}", **DISCORD)
        turn = await answered(engine, store, "one", **DISCORD)
        assert turn.session_id == receipt.session_id
        session = await store.sessions.get(turn.session_id)
        assert (session.model, session.channel) == (OTHER, "discord")


async def test_an_unknown_model_changes_nothing_and_the_nearest_is_named(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, echo(), models=choices()) as engine:
        turn = await answered(engine, store, "one")
        for wrong, right in (("lage-1", LARGE), ("wise", OTHER), ("anthropc:wise-2", OTHER)):
            assert f"did you mean {right}?" in await told(engine, f"/model {wrong}")
        assert "`/model` lists" in await told(engine, "/model zzzzzz")
        assert (await store.sessions.get(turn.session_id)).model is None


async def test_without_a_name_the_model_and_the_choices_are_shown(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, echo(), models=choices()) as engine:
        shown = await told(engine, "/model")
        assert shown.startswith(f"{SMALL} answers in this conversation.")
        assert [line for line in shown.splitlines() if line.startswith("- ")] == [
            f"- {SMALL} (configured)",
            f"- {LARGE}",
            f"- {OTHER}",
        ]
        await told(engine, f"/model {LARGE}")
        assert (await told(engine, "/model")).startswith(f"{LARGE} answers")
        assert LARGE in await told(engine, "/status")
    async with opened(open_it) as store, running_engine(store, echo()) as engine:
        assert "No model is configured" in await told(engine, "/model", conversation="chat:2")


async def test_only_the_operator_may_choose_what_is_not_configured(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, echo(), models=choices()) as engine:
        turn = await answered(engine, store, "one")
        assert "no model" in await told(engine, "/model openai:dear-9")
        assert (await store.sessions.get(turn.session_id)).model is None
        # Its provider does not tell what it offers, so the first answer will.
        assert "openai:dear-9 answers" in await told(engine, "/model openai:dear-9", is_operator=True)
        assert "cannot be opened" in await told(engine, "/model openai:broken", is_operator=True)
        assert "no model" in await told(engine, "/model nonsense:x", is_operator=True)
        assert (await store.sessions.get(turn.session_id)).model == "openai:dear-9"


async def test_sessions_are_listed_with_their_channel_and_when_they_were_used(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, echo()) as engine:
        assert await told(engine, "/sessions") == "You have no conversations yet."
        await answered(engine, store, "about herons", conversation="a", channel="web")
        await answered(engine, store, "not to be seen", conversation="b", owner="other")
        await answered(engine, store, "a job", conversation="c", one_shot=True)
        await answered(engine, store, "here")
        lines = (await told(engine, "/sessions")).splitlines()
        assert lines[0] == "1. “here” (telegram, 1 minute ago, this one)"
        assert lines[1] == "2. “about herons” (web, 1 minute ago)"
        assert len(lines) == 3


@pytest.mark.parametrize("name", ["about herons", "HERON", "2", "web:a"])
async def test_a_conversation_of_another_channel_goes_on_here_until_it_is_left(open_it: Open, name: str) -> None:
    async with opened(open_it) as store:
        witness, carrier = Witness(echo()), RecordingCarrier()
        async with running_engine(store, witness, carriers={"chat": carrier}) as engine:
            there = await answered(engine, store, "about herons", conversation="web:a", channel="web")
            own = await answered(engine, store, "mine", **DISCORD)
            receipt = await command(engine, f"/resume {name}", **DISCORD)
            assert receipt.session_id == there.session_id
            assert "“about herons” (web)" in (receipt.reply or "")
        async with running_engine(store, witness, carriers={"chat": carrier}) as engine:
            here = await answered(engine, store, "and storks", **DISCORD)
            assert here.session_id == there.session_id
            assert [item.text for item in witness.work[-1].history if item.role == "user"] == ["about herons", "and storks"]
            await until(lambda: "you said and storks" in [each.text for each in carrier.sent])
            assert "stays open" in await told(engine, "/new", **DISCORD)
            after = await answered(engine, store, "anew", **DISCORD)
            assert after.session_id not in (there.session_id, own.session_id)
            assert (await store.sessions.get(there.session_id)).state is SessionState.OPEN
            assert (await store.sessions.get(own.session_id)).state is SessionState.ENDED


async def test_the_session_that_a_client_names_is_the_one_that_it_writes_to(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, echo()) as engine:
        there = await answered(engine, store, "about herons", conversation="web:a", channel="web")
        own = await answered(engine, store, "mine", **DISCORD)
        await told(engine, "/resume herons", **DISCORD)
        assert (await answered(engine, store, "mine too", names_session=True, **DISCORD)).session_id == own.session_id
        receipt = await command(engine, "/resume herons", names_session=True)
        assert receipt.session_id == there.session_id
        assert await store.continuations.find("local", "chat:1") is None


async def test_a_conversation_that_is_over_goes_on_in_a_copy(open_it: Open) -> None:
    async with opened(open_it) as store:
        witness = Witness(echo())
        async with running_engine(store, witness) as engine:
            first = await answered(engine, store, "about herons")
            await told(engine, "/new")
            own = await answered(engine, store, "mine")
            assert "in a copy" in await told(engine, "/resume herons")
            turn = await answered(engine, store, "go on")
            assert turn.session_id not in (first.session_id, own.session_id)
            assert [text for role, text in await said(store, turn.session_id) if role == "user"] == ["about herons", "go on"]
            assert (await store.sessions.get(own.session_id)).state is SessionState.ENDED
            named = await command(engine, f"/resume {own.session_id}", names_session=True)
            assert named.session_id not in (own.session_id, turn.session_id)
            assert (await store.sessions.get(turn.session_id)).state is SessionState.OPEN


async def test_a_name_that_is_not_clear_or_not_ones_own_resumes_nothing(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, echo()) as engine:
        await answered(engine, store, "heron one", conversation="a")
        await answered(engine, store, "heron two", conversation="b")
        other = await answered(engine, store, "stork", conversation="c", owner="other")
        own = await answered(engine, store, "mine")
        assert "1. “mine”" not in (several := await told(engine, "/resume heron"))
        assert "2. “heron two”" in several
        assert "3. “heron one”" in several
        assert "no conversation" in await told(engine, "/resume stork")
        assert "no conversation" in await told(engine, f"/resume {other.session_id}")
        assert "no conversation" in await told(engine, "/resume 99")
        assert await told(engine, "/resume mine") == "This is that conversation."
        assert (await answered(engine, store, "still mine")).session_id == own.session_id


async def test_to_stop_what_is_continued_leaves_it_too(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, echo()) as engine:
        there = await answered(engine, store, "about herons", conversation="web:a", channel="web")
        own = await answered(engine, store, "mine", **DISCORD)
        await told(engine, "/resume herons", **DISCORD)
        await told(engine, "/stop", **DISCORD)
        after = await answered(engine, store, "anew", **DISCORD)
        assert after.session_id not in (there.session_id, own.session_id)


async def test_a_message_that_comes_again_after_the_chat_went_elsewhere_is_the_same_message(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, echo()) as engine:
        await answered(engine, store, "about herons", conversation="web:a", channel="web")
        first = await engine.inbox.accept(message("mine", dedupe_key="k1", **DISCORD))
        await settled(store, first)
        await told(engine, "/resume herons", **DISCORD)
        again = await engine.inbox.accept(message("mine", dedupe_key="k1", **DISCORD))
        assert (again.turn_id, again.duplicate) == (first.turn_id, True)


async def parked(engine: Engine, store: Store, text: str, **changes: Any) -> tuple[Receipt, str]:
    """Let a turn ask, and return it with the id of its question."""
    receipt = await engine.inbox.accept(message(text, **changes))

    async def look() -> str | None:
        asked = await store.questions.of_turn(receipt.turn_id)
        return short_id(receipt.turn_id, asked[0].question.id) if asked else None

    return receipt, await until(look)


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("/approve", "ok: ran rm x"),
        ("/approve always", "ok: ran rm x"),
        ("/deny", "error: Not run: denied"),
        ("/deny yes, because of the backup", "They said: yes, because of the backup"),
    ],
)
async def test_the_open_question_of_this_conversation_is_decided(open_it: Open, text: str, becomes: str) -> None:
    async with opened(open_it) as store, running_engine(store, Asking()) as engine:
        asked, _ = await parked(engine, store, "rm x")
        assert "May I run rm x?" in await told(engine, text, is_operator=True)
        await settled(store, asked)
        assert becomes in await text_of(store, asked)
        assert bool(await store.questions.grants("local")) is (text == "/approve always")


async def test_a_question_of_another_conversation_is_decided_by_its_id(open_it: Open) -> None:
    """The operator decides what other people's turns ask, too."""
    async with opened(open_it) as store, running_engine(store, Asking()) as engine:
        asked, id_ = await parked(engine, store, "rm x", conversation="g", owner="telegram:7")
        assert id_ in await told(engine, "/approve", is_operator=True)
        assert "nothing waits" in (await told(engine, f"/approve {id_}")).lower()
        assert "not the id" in (await told(engine, f"/approve {id_} forever", is_operator=True))
        assert (await told(engine, f"/approve {id_} session", is_operator=True)).startswith("Allowed in its conversation")
        assert (await settled(store, asked)).state is TurnState.COMPLETED
        assert "Nothing waits" in await told(engine, f"/deny {id_}", is_operator=True)


async def test_what_others_ask_is_not_told_to_a_group(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, Asking()) as engine:
        _, id_ = await parked(engine, store, "rm private", conversation="g", owner="telegram:7")
        group = Source(chat_type="group")
        said = await told(engine, "/approve", is_operator=True, source=group)
        assert "name what you mean" in said
        assert id_ not in said
        assert (await told(engine, f"/approve {id_}", is_operator=True, source=group)).startswith("Allowed")


async def test_who_is_not_the_operator_decides_nothing(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, Asking()) as engine:
        asked, id_ = await parked(engine, store, "rm x")
        for text in ("/approve", "/deny", f"/approve {id_}"):
            assert await told(engine, text) == "Only the operator can decide this."
        assert (await store.turns.get(asked.turn_id)).state is TurnState.WAITING


async def test_a_plain_question_is_no_matter_of_permission(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, Asking()) as engine:
        asked, _ = await parked(engine, store, "ask where to?")
        assert "asks for an answer" in await told(engine, "/approve", is_operator=True)
        assert (await store.turns.get(asked.turn_id)).state is TurnState.WAITING


async def test_a_queued_message_waits_and_one_that_steers_joins(open_it: Open) -> None:
    async with opened(open_it) as store:
        agent = HeldAgent(store, "one")
        async with running_engine(store, agent) as engine:
            first = await engine.inbox.accept(message("one"))
            await running(store, first)
            queued = await engine.inbox.accept(message("/queue two\nthree"))
            steers = await engine.inbox.accept(message("/steer this way"))
            assert (queued.reply, steers.reply) == (None, None)
            turns = [await store.turns.get(each.turn_id) for each in (queued, steers)]
            assert [turn.steers for turn in turns] == [False, True]
            assert [await store.turns.asked(turn.id) for turn in turns] == ["two\nthree", "this way"]
            assert await told(engine, "/queue") == "/queue TEXT: send a message that waits for the current answer."[:-1]
            await told(engine, "/stop")


async def test_what_is_done_in_the_background_reports_back_here(open_it: Open) -> None:
    async with opened(open_it) as store:
        witness, carrier = Witness(ScriptedAgent(lambda work: [Say(f"heard {work.message}")])), RecordingCarrier()
        async with running_engine(store, witness, carriers={"chat": carrier}) as engine:
            home = await answered(engine, store, "one", **DISCORD)
            once = message("/background count the herons", dedupe_key="k", **DISCORD)
            receipt = await engine.inbox.accept(once)
            assert (receipt.turn_id, receipt.session_id) == ("", home.session_id)
            assert "At work in the background" in (receipt.reply or "")
            assert (await engine.inbox.accept(once)).reply == receipt.reply

            async def reported() -> bool:
                return len(await store.turns.list(home.session_id)) == 2

            await until(reported)
            _, report = await store.turns.list(home.session_id)
            await until(lambda: len(carrier.sent) == 2)
        assert "count the herons" in witness.messages[1]
        assert witness.work[1].session.channel == "background"
        assert "has ended: count the herons" in witness.messages[2]
        assert "heard count the herons" in witness.messages[2]
        assert report.reply_to == TARGET
        assert len(witness.work) == 3


async def test_a_background_task_may_be_the_first_word_of_a_chat(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, echo()) as engine:
        receipt = await command(engine, "/background count")
        await until(lambda: has_turn(store, receipt.session_id))
        assert await told(engine, "/background") == "/background TEXT: do something on the side and report back here"


async def has_turn(store: Store, session_id: SessionId) -> bool:
    return bool(await store.turns.list(session_id))


async def test_usage_is_of_this_conversation_and_of_today(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, echo()) as engine:
        here, there = await answered(engine, store, "one"), await answered(engine, store, "two", conversation="b")
        now = SystemClock().now_ms()
        used = Usage(model=SMALL, input_tokens=1200, output_tokens=30, cached_tokens=200, cost_micros=12_300)
        for turn in (here, there):
            await store.spending.extra(await store.sessions.get(turn.session_id), turn.id, 1, used, now)
        assert await told(engine, "/usage") == (
            "This conversation: 1,200 tokens in (200 of them cached), 30 out, $0.0123.\n"
            "Today: 2,400 tokens in (400 of them cached), 60 out, $0.0246."
        )
        assert (await told(engine, "/usage", conversation="c")).startswith("Today: 2,400")


async def test_help_is_the_table(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, echo()) as engine:
        assert await told(engine, "/help") == HELP


EVERY = (
    "/model large-1", "/model nonsense", "/model", "/sessions", "/resume herons", "/resume nonsense", "/approve", "/deny",
    "/usage", "/background count", "/queue two", "/steer two", "/compress", "/help",
)  # fmt: skip


@pytest.mark.parametrize("text", EVERY)
async def test_a_command_that_is_sent_twice_is_done_once(open_it: Open, text: str) -> None:
    async with opened(open_it) as store, running_engine(store, Asking(), models=choices()) as engine:
        await answered_question(engine, store)
        await parked(engine, store, "rm x")
        once = message(text, dedupe_key="k", cursor=Cursor(channel="telegram", position="7"), is_operator=True)
        first = await engine.inbox.accept(once)
        before = await state_of(store)
        if text in ("/approve", "/deny"):
            # What asks next is another question, which nobody has decided.
            await parked(engine, store, "rm y")
            before = None
        again = await engine.inbox.accept(once)
        assert again.turn_id == first.turn_id
        assert await store.intake.cursor("telegram") == "7"
        if before is None:
            (waiting,) = await store.questions.open("local")
            assert waiting.question.text == "May I run rm y?"
        else:
            assert await state_of(store) == before
        with pytest.raises(KeyReused):
            await engine.inbox.accept(message(f"{text} else", dedupe_key="k", is_operator=True))


async def answered_question(engine: Engine, store: Store) -> None:
    """Leave a conversation about herons behind."""
    asked, _ = await parked(engine, store, "herons", conversation="web:a", channel="web")
    await told(engine, "/deny", conversation="web:a", channel="web", is_operator=True)
    await settled(store, asked)


async def state_of(store: Store) -> Any:
    sessions = await store.sessions.list("local")
    turns = [len(await store.turns.list(each.id)) for each in sessions if each.channel != "background"]
    return [(each.id, each.model, each.title) for each in sessions], turns, await store.continuations.find("local", "chat:1")
