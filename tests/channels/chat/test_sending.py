"""Answers, questions and status lines in a chat, over a real engine and real stores."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as changed

from holdfast.agent.scripted import Say, ScriptedAgent
from holdfast.channels.chat.account import ChatAccount, Home, no_home
from holdfast.channels.chat.budget import Budget
from holdfast.channels.chat.carrier import ChatCarrier
from holdfast.channels.chat.port import ChatMessage, Outgoing, Place, Pressed
from holdfast.channels.chat.presses import GOING_ON, MOVED_ON, NOT_YOURS, UNKNOWN, Presses
from holdfast.channels.chat.status_line import StatusLines
from holdfast.channels.port import Capabilities
from holdfast.clock import SystemClock
from holdfast.core.chats import Lease
from holdfast.core.delivery import REPEAT_LABEL, SETTLED, Delivery, DeliveryState, Extra, KeptFile, notice
from holdfast.core.events import ApprovalAnswered
from holdfast.core.people import Pairing, Role
from holdfast.core.questions import APPROVAL_CHOICES, About, Question
from holdfast.core.showing import LineKind, LineState, label_of
from holdfast.core.turns import Cause, Policy, TurnState
from holdfast.errors import OutcomeUnknown, Rejected, Unavailable
from holdfast.ids import TurnId, new_pairing_id
from holdfast.ports import Assignment
from holdfast.store.store import Store
from tests.channels.chat.phone import CAN, CHAT, HOME, ME, STRANGER, Phone, account_of
from tests.engine.world import ManualClock, Open, message, opened, running_engine, until

TARGET = "telegram:1"


class Chat:
    """One account with everything that sends, on an engine."""

    def __init__(self, store: Store, phone: Phone, can: Capabilities = CAN, **settings: object) -> None:
        self.store, self.phone = store, phone
        self.clock = ManualClock()
        self.account: ChatAccount = account_of(phone, can, **settings)
        self.budget = Budget(self.clock, can.edits_per_minute)
        self.carrier = ChatCarrier(
            self.account, store, self.budget, lambda: Home(target=f"telegram:{HOME.chat_id}", split=self.carrier.split)
        )
        self.lines = StatusLines(self.account, store, self.budget, self.carrier.split, self.clock)
        self.presses = Presses(store=store, clock=SystemClock(), budget=self.budget)

    def restarted(self) -> Chat:
        """Return what another process sees."""
        other = Chat(self.store, self.phone)
        other.account = self.account
        other.lines = StatusLines(self.account, self.store, other.budget, other.carrier.split, other.clock)
        return other

    async def press(self, number: int, **how: Any) -> str:
        await self.presses.press(self.account, self.phone.press(number, **how))
        return self.phone.told[-1]


@contextlib.asynccontextmanager
async def chatting(
    open_it: Open, agent: Any, can: Capabilities = CAN, **settings: object
) -> AsyncIterator[tuple[Chat, Any]]:
    async with opened(open_it) as store:
        chat = Chat(store, Phone(), can, **settings)
        async with running_engine(store, agent, carriers={"telegram": chat.carrier}) as engine:
            # As the receiver does, beside which everything here works.
            assert await store.channels.claim("telegram", "telegram", engine.node_id)
            yield chat, engine


def wrote(place: Place, message_id: str, text: str) -> ChatMessage:
    return ChatMessage(place=place, sender=ME, message_id=message_id, text=text, sent_at=0)


async def say(engine: Any, text: str = "hello", **changes: Any) -> TurnId:
    facts = {"conversation": "telegram:1", "reply_to": TARGET, "owner": "local", **changes}
    return (await engine.inbox.accept(message(text, **facts))).turn_id


async def at_rest(store: Store, turn_id: TurnId) -> list[Delivery]:
    """Return the deliveries of a turn once all are settled."""

    async def look() -> list[Delivery]:
        found = await store.deliveries.of_turn(turn_id)
        over = [each.state in SETTLED and (each.repeats or each.state is not DeliveryState.UNKNOWN) for each in found]
        return found if all(over) else []

    return await until(look)


def _echo(work: Assignment) -> list[Say]:
    return [Say(work.message)]


ECHO = ScriptedAgent(_echo)


def asking(question: Question) -> Any:
    """Return an agent that asks, and repeats the answer."""

    class Asking:
        async def run(self, work: Assignment, stage: Any) -> str:
            answer = await stage.ask(question)
            await stage.say(answer)
            return answer

        async def release(self, session_id: str) -> None: ...

    return Asking()


CHOICE = Question(id="ask:1", text="Tea or coffee?", choices=("tea", "coffee"))
APPROVAL = Question(
    id="approve:1", text="May I run it?", about=About.APPROVAL, choices=APPROVAL_CHOICES, detail={"command": "rm -r x"}
)


async def test_an_answer_arrives_in_parts_in_order_with_the_ids_of_its_messages(open_it: Open) -> None:
    """D3, over two turns at once."""
    async with chatting(open_it, ECHO) as (chat, engine):
        words = " ".join(f"word{number}" for number in range(120))
        first, second = await say(engine, words), await say(engine, "after it")
        sent = [*await at_rest(chat.store, first), *await at_rest(chat.store, second)]
        assert " ".join(chat.phone.texts()) == f"{words} after it"
        assert [each.receipt for each in sent] == list(chat.phone.chats[CHAT])


async def test_an_empty_answer_says_so(open_it: Open) -> None:
    async with chatting(open_it, ScriptedAgent(lambda _: [Say("\n")])) as (chat, engine):
        await at_rest(chat.store, await say(engine))
        assert chat.phone.texts() == ["(The answer is empty.)"]


@pytest.mark.parametrize("target", ["telegram:", "telegram:1:2:3", "slack:1"])
def test_a_target_that_names_no_chat_is_refused(target: str) -> None:
    with pytest.raises(Rejected, match="names no chat"):
        ChatCarrier(account_of(Phone()), None, Budget(ManualClock(), 20), no_home).check(target)  # type: ignore[arg-type]


async def test_a_send_whose_outcome_is_unknown_is_repeated_once_with_a_label(open_it: Open) -> None:
    """D1: what follows waits for it, so that nothing overtakes the repeat."""
    async with chatting(open_it, ECHO) as (chat, engine):
        chat.phone.loses["send"] = [OutcomeUnknown("502 of a proxy"), OutcomeUnknown("502 of a proxy")]
        first, second = await say(engine, "one"), await say(engine, "two")
        await at_rest(chat.store, second)
        assert chat.phone.texts() == ["one", f"{REPEAT_LABEL} one", "two"]
        assert [each.state for each in await chat.store.deliveries.of_turn(first)] == [DeliveryState.UNKNOWN]


async def test_flood_control_holds_every_call_to_that_chat_for_exactly_as_long_as_it_says(open_it: Open) -> None:
    async with opened(open_it) as store:
        chat = Chat(store, Phone())
        chat.phone.fails["send"] = [Unavailable("Too Many Requests", 200)]
        one, elsewhere = notice("k", "local", TARGET, ["one"], 0)[0], notice("k", "local", "telegram:2", ["two"], 0)[0]
        with pytest.raises(Unavailable) as refused:
            await chat.carrier.send(one)
        assert refused.value.retry_after_s == 200
        await chat.clock.advance(199_999)
        with pytest.raises(Unavailable) as held:
            await chat.carrier.send(one)
        assert held.value.retry_after_s == 0.001
        with pytest.raises(Unavailable):
            await chat.budget.call(CHAT, lambda: chat.phone.type(CHAT))
        assert chat.phone.calls == []
        await chat.carrier.send(elsewhere)
        await chat.clock.advance(1)
        await chat.carrier.send(one)
        assert chat.phone.calls == ["send two", "send one"]


async def test_edits_keep_a_distance_that_grows_with_each_refusal() -> None:
    clock = ManualClock()
    budget = Budget(clock, 20)
    budget.edited(CHAT)
    await clock.advance(999)
    assert not budget.may_edit(CHAT, in_group=False)
    await clock.advance(1)
    assert budget.may_edit(CHAT, in_group=False)
    assert not budget.may_edit(CHAT, in_group=True)
    await clock.advance(2_000)
    assert budget.may_edit(CHAT, in_group=True), "20 in a minute"

    async def refused() -> None:
        raise Unavailable("Too Many Requests", 5)

    with pytest.raises(Unavailable):
        await budget.call(CHAT, refused)
    await clock.advance(5_000)
    budget.edited(CHAT)
    await clock.advance(1_999)
    assert not budget.may_edit(CHAT, in_group=False)
    await clock.advance(1)
    assert budget.may_edit(CHAT, in_group=False)


async def test_a_question_is_answered_by_a_button_and_its_message_says_how(open_it: Open) -> None:
    async with chatting(open_it, asking(CHOICE)) as (chat, engine):
        turn_id = await say(engine)
        await until(chat.phone.texts)
        _, shown = chat.phone.last()
        assert (shown.text, [each.label for row in shown.buttons for each in row]) == ("Tea or coffee?", ["tea", "coffee"])
        assert all(len(each.value.encode()) <= 64 for row in shown.buttons for each in row)
        pressed = chat.phone.press(1)
        assert await chat.press(1) == "coffee"
        await at_rest(chat.store, turn_id)
        await until(lambda: "coffee" in chat.phone.texts())
        await chat.restarted().lines.look()
        assert chat.phone.texts()[0] == "Tea or coffee?\n\n**coffee**"
        assert not chat.phone.chats[CHAT][pressed.message_id].buttons
        edits = chat.phone.count("edit")
        await chat.lines.look()
        assert chat.phone.count("edit") == edits, "it was edited twice"
        await chat.restarted().presses.press(chat.account, pressed)
        assert chat.phone.told[-1] == "This is settled already: coffee"


@pytest.mark.parametrize("buttons", [True, False])
@pytest.mark.parametrize("size", [270, 318])
async def test_a_long_question_has_room_for_its_answer(open_it: Open, size: int, buttons: bool) -> None:
    choices = ("\U0001f600" * 70, "no")
    question = Question(id="ask:1", text=" ".join(["word"] * 80)[:size], choices=choices)
    async with chatting(open_it, asking(question), replace(CAN, buttons=buttons)) as (chat, engine):
        turn_id = await say(engine)
        await until(lambda: any("word" in each for each in chat.phone.texts()))
        given = ApprovalAnswered(question_id=question.id, text=choices[0])
        await chat.store.turns.answer(turn_id, given, SystemClock().now_ms())
        await at_rest(chat.store, turn_id)
        await chat.lines.look()
        assert any(each.endswith(f"**{label_of(choices[0])}**") for each in chat.phone.texts())


async def test_a_press_that_the_platform_forgot_decides_all_the_same(open_it: Open) -> None:
    async with chatting(open_it, asking(CHOICE)) as (chat, engine):
        turn_id = await say(engine)
        await until(chat.phone.texts)
        chat.phone.fails["settle"] = [Rejected("query is too old")]
        await chat.press(0)
        await until(lambda: "tea" in chat.phone.texts())
        await at_rest(chat.store, turn_id)


async def test_a_button_lets_an_answer_go_on_that_was_cut_off(open_it: Open) -> None:
    """R5, R9: it says what came of it, and pressed again, that there is nothing to go on with."""
    agent = Working("The answer is", " forty-two.")
    async with chatting(open_it, agent) as (chat, engine):
        turn_id = await say(engine)
        await began(chat, turn_id, "The answer is")
        policy = Policy(chats=frozenset({"telegram"}))
        now = SystemClock().now_ms()
        await chat.store.settlement.interrupt(engine.node_id, [turn_id], Cause.CRASH, policy, now)
        await chat.store.deliveries.hasten(now)
        await until(chat.phone.texts)
        pressed = chat.phone.press(0)
        agent.go.set()
        await chat.presses.press(chat.account, pressed)
        await until(lambda: len(chat.phone.texts()) == 2)
        assert chat.phone.texts()[0].endswith(f"**{GOING_ON}**")
        assert not chat.phone.chats[CHAT][pressed.message_id].buttons
        await until(lambda: chat.phone.count("edit"))
        await at_rest(chat.store, turn_id)
        await chat.restarted().presses.press(chat.account, pressed)
        assert chat.phone.told == [GOING_ON, MOVED_ON]


@pytest.mark.parametrize("forged", ["q:trn_x:00000000:0", "q:1", "x:1", "", "r:trn_x"])
async def test_a_button_that_refers_to_nothing_is_told_so(open_it: Open, forged: str) -> None:
    async with chatting(open_it, asking(CHOICE)) as (chat, engine):
        await say(engine)
        await until(chat.phone.texts)
        await chat.presses.press(chat.account, changed(chat.phone.press(0), value=forged))
        assert chat.phone.told == [UNKNOWN]


async def test_a_question_is_only_answered_in_its_own_chat(open_it: Open) -> None:
    async with chatting(open_it, asking(CHOICE)) as (chat, engine):
        turn_id = await say(engine)
        await until(chat.phone.texts)
        await chat.presses.press(chat.account, changed(chat.phone.press(0), place=HOME))
        assert chat.phone.told == [UNKNOWN]
        assert (await chat.store.turns.get(turn_id)).state is TurnState.WAITING


async def test_a_button_works_where_the_platform_no_longer_tells_its_thread(open_it: Open) -> None:
    """As Telegram reports a press on an old message."""
    topic = Place(chat_id="1", thread_id="9")
    async with chatting(open_it, asking(CHOICE)) as (chat, engine):
        turn_id = await say(engine, conversation="telegram:1:9", reply_to="telegram:1:9")
        await until(lambda: chat.phone.texts(topic))
        await chat.presses.press(chat.account, changed(chat.phone.press(0, place=topic), place=CHAT))
        assert chat.phone.told == ["tea"]
        await at_rest(chat.store, turn_id)


async def test_a_question_message_that_cannot_be_edited_at_all_stops_nothing(open_it: Open) -> None:
    async with chatting(open_it, asking(CHOICE)) as (chat, engine):
        turn_id = await say(engine)
        await until(chat.phone.texts)
        chat.phone.fails["edit"] = [KeyError("a bug of the platform's client")]
        await chat.press(1)
        await at_rest(chat.store, turn_id)
        await chat.lines.look()
        assert await chat.store.cards.settled("telegram") == []


async def test_what_a_guest_wants_approved_is_asked_at_home_and_only_the_operator_decides(open_it: Open) -> None:
    async with chatting(open_it, asking(APPROVAL)) as (chat, engine):
        turn_id = await say(engine, owner="telegram:66")
        await until(lambda: HOME in chat.phone.chats and chat.phone.texts())
        assert "operator" in chat.phone.texts()[0]
        assert not chat.phone.last()[1].buttons
        text = chat.phone.texts(HOME)[-1]
        assert "May I run it?" in text
        assert "rm -r x" in "".join(chat.phone.texts(HOME))
        assert await chat.press(0, place=HOME, who=STRANGER) == NOT_YOURS
        assert (await chat.store.turns.get(turn_id)).state is TurnState.WAITING
        assert await chat.press(0, place=HOME) == "Once"
        await until(lambda: "once" in chat.phone.texts())
        await at_rest(chat.store, turn_id)


async def test_the_operator_sees_exactly_what_is_to_be_allowed(open_it: Open) -> None:
    """SECURITY 9: no line of a command is hidden as markup, and no argument of a tool is left out."""
    hiding = replace(APPROVAL, text="May I run this?\n\n    ls\n\n[a]: ;evil", detail={"command": "ls\n\n[a]: ;evil"})
    async with chatting(open_it, asking(hiding)) as (chat, engine):
        await say(engine)
        await until(chat.phone.texts)
        assert chat.phone.texts() == ["May I run this?\n\n```\n    ls\n\n[a]: ;evil\n```"]
    tool = replace(APPROVAL, text="May the tool read_it be run?", detail={"arguments": {"path": "/etc"}})
    async with chatting(open_it, asking(tool)) as (chat, engine):
        await say(engine, conversation="telegram:1:x")
        await until(lambda: "/etc" in "".join(chat.phone.texts()))
        assert "read_it" in "".join(chat.phone.texts())


async def test_a_question_is_answered_where_its_chat_has_moved(open_it: Open) -> None:
    async with chatting(open_it, asking(CHOICE)) as (chat, engine):
        turn_id = await say(engine)
        await until(chat.phone.texts)
        await until(lambda: chat.store.cards.open_at(TARGET))
        await at_rest(chat.store, turn_id)
        await chat.store.deliveries.redirect(TARGET, "telegram:-100")
        assert await chat.presses.take_answer(chat.account, wrote(Place(chat_id="-100"), "1", "2"), Role.GUEST)
        await until(lambda: "coffee" in chat.phone.texts())
        await at_rest(chat.store, turn_id)
        await chat.lines.look()
        # The message is edited where it is.
        assert chat.phone.texts()[0] == "Tea or coffee?\n\n**coffee**"


async def test_a_strangers_name_is_no_markup_where_the_request_is_settled(open_it: Open) -> None:
    pairing = Pairing(
        id=new_pairing_id(0),
        account="telegram",
        user_id="66",
        user_name="[Ann](https://evil.example)",
        place=Place(chat_id="66"),
        code_digest="",
        asked_at=0,
        expires_at=SystemClock().now_ms() + 60_000,
        message="hi",
    )
    async with chatting(open_it, ECHO) as (chat, _):
        await chat.store.people.let_wait(pairing, [], [])
        pressed = Pressed(place=HOME, sender=ME, message_id="1", press_id="p", value=f"p:{pairing.id}:guest")
        await chat.presses.press(chat.account, pressed)
        assert chat.phone.told[-1].startswith("`[Ann](https://evil.example)` is let in")


async def test_a_message_answers_an_open_question_once(open_it: Open) -> None:
    async with chatting(open_it, asking(CHOICE)) as (chat, engine):
        turn_id = await say(engine)
        await until(chat.phone.texts)
        take = chat.presses.take_answer
        assert not await take(chat.account, wrote(HOME, "5", "2"), Role.OPERATOR)
        assert await take(chat.account, wrote(CHAT, "5", "2"), Role.GUEST)
        await until(lambda: "coffee" in chat.phone.texts())
        assert await take(chat.account, wrote(CHAT, "5", "2"), Role.GUEST), "taken again after a crash, it is no new message"
        assert not await take(chat.account, wrote(CHAT, "6", "2"), Role.GUEST)
        await at_rest(chat.store, turn_id)


async def test_an_approval_is_only_decided_by_text_where_there_are_no_buttons(open_it: Open) -> None:
    async with chatting(open_it, asking(APPROVAL)) as (chat, engine):
        await say(engine)
        await until(chat.phone.texts)
        assert not await chat.presses.take_answer(chat.account, wrote(CHAT, "5", "1"), Role.OPERATOR)
    plain = replace(CAN, buttons=False)
    async with chatting(open_it, asking(APPROVAL), plain) as (chat, engine):
        turn_id = await say(engine, "again", conversation="telegram:1:x")
        await until(lambda: any("Reply with a number." in each for each in chat.phone.texts()))
        assert "4. Deny" in chat.phone.texts()[-1]
        now = SystemClock().now_ms()
        chosen, take = chat.presses.chosen, chat.presses.take_answer
        assert await chosen(chat.account, wrote(CHAT, "7", "1"), Role.GUEST, now) is None
        assert await chosen(chat.account, wrote(CHAT, "7", "5"), Role.OPERATOR, now) is None
        assert await chosen(chat.account, wrote(CHAT, "7", "4"), Role.OPERATOR, 0) is None, "nothing was asked then"
        assert not await take(chat.account, wrote(CHAT, "8", "What is the weather?"), Role.OPERATOR)
        pressed = await chosen(chat.account, wrote(CHAT, "9", "4"), Role.OPERATOR, now)
        assert pressed
        await chat.presses.press(chat.account, pressed)
        await until(lambda: "deny" in chat.phone.texts())
        await at_rest(chat.store, turn_id)


class Working:
    """An agent that says something, and goes on when it is told to."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts
        self.go = asyncio.Event()

    async def run(self, work: Assignment, stage: Any) -> str:
        await stage.say(self.texts[0])
        await self.go.wait()
        for each in self.texts[1:]:
            await stage.say(each)
        return "".join(self.texts)

    async def release(self, session_id: str) -> None: ...


async def began(chat: Chat, turn_id: TurnId, text: str) -> None:
    """Return once a turn has said something."""

    async def look() -> bool:
        return any(getattr(each.event, "text", "") == text for each in await chat.store.journal.read_turn(turn_id))

    await until(look)


async def test_a_status_line_says_what_happens_and_goes_when_the_answer_is_there(open_it: Open) -> None:
    agent = Working("the answer")
    async with chatting(open_it, agent) as (chat, engine):
        first = await say(engine)
        await began(chat, first, "the answer")
        await chat.lines.look()
        assert chat.phone.calls == ["type"], "a quick answer needs no status line"
        second = await say(engine, "and this")
        await chat.clock.advance(0)
        chat.clock._now_ms = SystemClock().now_ms() + 5_000
        await chat.lines.look()
        assert sorted(chat.phone.texts()) == ["Waiting behind another message…", "Working…"]
        assert all(each.is_quiet for each in chat.phone.chats[CHAT].values())
        calls = len(chat.phone.calls)
        await chat.lines.look()
        assert len(chat.phone.calls) == calls, "nothing has changed"
        agent.go.set()
        await at_rest(chat.store, first)
        await at_rest(chat.store, second)
        await chat.restarted().lines.look()
        assert chat.phone.texts() == ["the answer", "the answer"]


async def test_a_node_that_has_lost_the_lease_shows_nothing(open_it: Open) -> None:
    async with chatting(open_it, Working("the answer")) as (chat, engine):
        turn_id = await say(engine)
        await began(chat, turn_id, "the answer")
        lost = Lease(account="telegram", node_id=engine.node_id, fence=0)
        async with asyncio.timeout(10):
            await chat.lines.run(lost)
        assert chat.phone.calls == []


async def test_a_status_line_that_cannot_be_deleted_says_done(open_it: Open) -> None:
    agent = Working("the answer")
    async with chatting(open_it, agent, replace(CAN, deletes=False)) as (chat, engine):
        turn_id = await say(engine)
        await began(chat, turn_id, "the answer")
        chat.clock._now_ms = SystemClock().now_ms() + 5_000
        await chat.lines.look()
        agent.go.set()
        await at_rest(chat.store, turn_id)
        await chat.lines.look()
        await chat.lines.look()
        assert chat.phone.texts() == ["Done.", "the answer"]


async def test_a_status_line_whose_send_was_cut_off_is_never_sent_again(open_it: Open) -> None:
    agent = Working("the answer")
    async with chatting(open_it, agent) as (chat, engine):
        turn_id = await say(engine)
        await began(chat, turn_id, "the answer")
        chat.clock._now_ms = SystemClock().now_ms() + 5_000
        chat.phone.loses["send"] = [OutcomeUnknown("cut off")]
        for _ in range(3):
            await chat.lines.look()
        assert chat.phone.texts() == ["Working…"]
        agent.go.set()
        await at_rest(chat.store, turn_id)
        await chat.lines.look()
        assert chat.phone.texts() == ["Working…", "the answer"]
        line = await chat.store.status_lines.find(turn_id)
        assert line is not None
        assert line.state is LineState.CLOSED


async def test_a_crash_leaves_one_status_line_however_often_its_turn_is_cut_off(open_it: Open) -> None:
    agent = Working("the answer")
    async with chatting(open_it, agent) as (chat, engine):
        turn_id = await say(engine)
        await began(chat, turn_id, "the answer")
        chat.clock._now_ms = SystemClock().now_ms() + 5_000
        chat.phone.loses["send"] = [OutcomeUnknown("the process died here")]
        await chat.lines.look()
        now = SystemClock().now_ms()
        await chat.store.settlement.interrupt(engine.node_id, [turn_id], Cause.CRASH, Policy(), now)
        assert (await chat.store.turns.get(turn_id)).state is TurnState.INTERRUPTED
        await chat.restarted().lines.look()
        await chat.store.turns.resume(turn_id, now)
        await until(lambda: _runs(chat, turn_id))
        await chat.lines.look()
        agent.go.set()
        await at_rest(chat.store, turn_id)
        assert chat.phone.count("send Working") == 1


async def _runs(chat: Chat, turn_id: TurnId) -> bool:
    return (await chat.store.turns.get(turn_id)).state is TurnState.RUNNING


async def test_a_status_line_that_was_refused_is_tried_again(open_it: Open) -> None:
    agent = Working("the answer")
    async with chatting(open_it, agent) as (chat, engine):
        turn_id = await say(engine)
        await began(chat, turn_id, "the answer")
        chat.clock._now_ms = SystemClock().now_ms() + 5_000
        chat.phone.fails["send"] = [Unavailable("Too Many Requests", 3)]
        await chat.lines.look()
        await chat.lines.look()
        assert chat.phone.texts() == []
        await chat.clock.advance(3_000)
        await chat.lines.look()
        assert chat.phone.texts() == ["Working…"]
        agent.go.set()
        await at_rest(chat.store, turn_id)


class Repeating(Working):
    """An agent that repeats the message, and goes on when it is told to."""

    async def run(self, work: Assignment, stage: Any) -> str:
        self.texts = (work.message,)
        return await super().run(work, stage)


async def test_growing_answers_stand_in_the_order_of_their_messages_and_alert_the_phone(open_it: Open) -> None:
    """What shows that a message waits is sent before the answer to the message before it, and so is no part of its own."""
    agent = Repeating()
    async with chatting(open_it, agent, stream="edit") as (chat, engine):
        first = await say(engine, "one")
        await began(chat, first, "one")
        second = await say(engine, "two")
        chat.clock._now_ms = SystemClock().now_ms() + 1_000
        await chat.lines.look()
        assert chat.phone.texts() == ["Waiting behind another message…"]
        chat.clock._now_ms += 4_000
        await chat.lines.look()
        assert chat.phone.texts() == ["Waiting behind another message…", "one"]
        assert not chat.phone.last()[1].is_quiet
        agent.go.set()
        await at_rest(chat.store, first)
        await at_rest(chat.store, second)
        await chat.lines.look()
        assert chat.phone.texts() == ["one", "two"]


async def test_a_growing_answer_has_a_message_of_its_own(open_it: Open) -> None:
    """The status line was sent earlier, and alerted no phone."""
    async with chatting(open_it, agent := Working("The answer"), stream="edit") as (chat, engine):
        turn_id = await say(engine)
        await began(chat, turn_id, "The answer")
        await chat.store.status_lines.begin(turn_id, TARGET, LineKind.STATUS)
        line = await chat.phone.send(CHAT, Outgoing(text="Working…"), "status")
        await chat.store.status_lines.show(turn_id, line)
        chat.clock._now_ms = SystemClock().now_ms() + 5_000
        await chat.lines.look()
        (message_id,) = chat.phone.chats[CHAT]
        assert (chat.phone.texts(), message_id == line) == (["The answer"], False)
        agent.go.set()
        (sent,) = await at_rest(chat.store, turn_id)
        assert sent.receipt == message_id


async def test_a_growing_answer_begins_behind_what_has_still_to_leave(open_it: Open) -> None:
    async with chatting(open_it, agent := Working("The answer"), stream="edit") as (chat, engine):
        chat.phone.fails["send"] = [Unavailable("Too Many Requests", 3)]
        await chat.store.deliveries.notify(notice("n", "local", TARGET, ["before"], SystemClock().now_ms()))
        turn_id = await say(engine)
        await began(chat, turn_id, "The answer")
        await until(lambda: chat.budget.is_held(CHAT))
        await chat.clock.advance(4_000)
        chat.clock._now_ms = SystemClock().now_ms() + 5_000
        await chat.lines.look()
        assert chat.phone.texts() == []
        agent.go.set()
        await at_rest(chat.store, turn_id)
        assert chat.phone.texts() == ["before", "The answer"]


async def test_a_turn_that_is_over_begins_no_message(open_it: Open) -> None:
    """It may have ended since it was looked at, and its answer is there."""
    async with chatting(open_it, ECHO, stream="edit") as (chat, engine):
        turn_id = await say(engine)
        await at_rest(chat.store, turn_id)
        assert not await chat.store.status_lines.begin(turn_id, TARGET, LineKind.STREAM)


async def test_a_crash_in_the_middle_of_the_last_edit_completes_the_same_message(open_it: Open) -> None:
    agent = Working("The answer is", " forty-two.")
    async with chatting(open_it, agent, stream="edit") as (chat, engine):
        turn_id = await say(engine)
        await began(chat, turn_id, "The answer is")
        chat.clock._now_ms = SystemClock().now_ms() + 5_000
        await chat.lines.look()
        chat.phone.loses["edit"] = [RuntimeError("the process died here")]
        agent.go.set()
        (sent,) = await at_rest(chat.store, turn_id)
        assert (chat.phone.texts(), sent.state) == (["The answer is forty-two."], DeliveryState.DELIVERED)


async def test_an_answer_whose_beginning_may_be_there_already_is_labelled(open_it: Open) -> None:
    """The process died between the send of the growing message and its id."""
    async with chatting(open_it, agent := Working("The answer"), stream="edit") as (chat, engine):
        turn_id = await say(engine)
        await began(chat, turn_id, "The answer")
        await chat.store.status_lines.begin(turn_id, TARGET, LineKind.STREAM)
        agent.go.set()
        await at_rest(chat.store, turn_id)
        assert chat.phone.texts() == [f"{REPEAT_LABEL} The answer"]


async def test_a_cancelled_turn_leaves_what_it_had_shown_and_says_that_it_ended(open_it: Open) -> None:
    agent = Working("The answer is")
    async with chatting(open_it, agent, stream="edit") as (chat, engine):
        turn_id = await say(engine)
        await began(chat, turn_id, "The answer is")
        chat.clock._now_ms = SystemClock().now_ms() + 5_000
        await chat.lines.look()
        await engine.cancel(turn_id)
        await chat.lines.look()
        assert chat.phone.texts() == ["The answer is\n\nCancelled."]


async def test_without_a_status_line_typing_is_shown_and_a_message_that_waits_gets_a_reaction(open_it: Open) -> None:
    agent = Working("the answer")
    async with chatting(open_it, agent, stream="off") as (chat, engine):
        turn_id = await say(engine)
        await began(chat, turn_id, "the answer")
        for _ in range(2):
            await chat.lines.look()
        assert chat.phone.calls == ["type"]
        await chat.clock.advance(4_000)
        await chat.lines.look()
        assert chat.phone.calls == ["type", "type"]
        agent.go.set()
        await at_rest(chat.store, turn_id)


async def test_a_file_is_sent_from_what_was_kept(open_it: Open) -> None:
    async with chatting(open_it, ECHO) as (chat, _engine):
        kept = await chat.store.kept_files.keep(b"content", SystemClock().now_ms())
        extra = Extra(file=KeptFile(id=kept, name="a.txt", media_type="text/plain", bytes=7))
        now = SystemClock().now_ms()
        await chat.store.deliveries.notify(notice("f", "local", TARGET, ["here"], now, extra))
        await until(chat.phone.texts)
        file = chat.phone.last()[1].file
        assert file is not None
        assert (file.name, file.content) == ("a.txt", b"content")
