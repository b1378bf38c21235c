"""What chats are told by themselves, on a whole node: news at home, cut off turns, banners, and questions of others."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace as changed

from holdfast.agent.processes.monitor import ProcessMonitor
from holdfast.agent.scripted import Say, ScriptedAgent
from holdfast.channels.chat.asking import WAITS
from holdfast.channels.chat.port import Place
from holdfast.channels.chat.presses import GOING_ON, MOVED_ON
from holdfast.clock import SystemClock
from holdfast.config import Config, GatewayConfig
from holdfast.core.chats import AccountState
from holdfast.core.events import Text
from holdfast.core.intake import Receipt
from holdfast.core.notes import RESTART_BANNER, SHUTDOWN_BANNER
from holdfast.core.people import Choice
from holdfast.core.questions import About, Question
from holdfast.core.turns import Cause, Mode, Turn, TurnState
from holdfast.engine.engine import Engine
from holdfast.errors import AccountRefused, Rejected
from holdfast.ports import Assignment, Stage
from tests.channels.chat.house import Accept, Components, Handset, House, living
from tests.channels.chat.phone import CHAT, HOME, STRANGER
from tests.conformance.scenes import on_sqlite
from tests.engine.world import Open, message, opened, settled, until
from tests.processes.scene import end_all
from tests.processes.test_engine import starts, working

THEIRS = Place(chat_id="66")
ECHO = ScriptedAgent(lambda work: [Say(work.message)])
ELSEWHERE = "work"


class Slow:
    """An agent that says something, goes on when it is told to, and after an interruption from where it was."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.heard: list[str] = []

    async def run(self, work: Assignment, stage: Stage) -> str:
        self.heard.append(work.message)
        if any(item.turn_id == work.turn.id and item.text == "The answer is" for item in work.history):
            await stage.say(" forty-two.")
            return "The answer is forty-two."
        await stage.say("The answer is")
        await self.go.wait()
        await stage.say(" forty-two.")
        return "The answer is forty-two."

    async def release(self, session_id: str) -> None: ...


async def look(house: House) -> None:
    """Let the node look for news, once its account is connected."""
    assert house.news
    news = house.news

    async def is_connected() -> bool:
        found = await house.store.channels.list()
        return any(each.state is AccountState.CONNECTED for each in found)

    await until(is_connected)
    await news.look()


async def begun(house: House) -> Turn:
    """Write a message, and return its turn once it has said something."""
    house.phone.write("What is it?")

    async def look() -> Turn | None:
        session = await house.store.sessions.find("local", "telegram:1")
        if session is None:
            return None
        (turn,) = await house.store.turns.list(session.id)
        entries = await house.store.journal.read_turn(turn.id)
        return turn if any(isinstance(each.event, Text) for each in entries) else None

    begun = await until(look)
    assert begun
    return begun


@on_sqlite
async def test_after_a_kill_the_operator_is_told_once_however_often_the_node_starts(open_it: Open) -> None:
    """R9"""
    async with living(open_it, Slow()) as house:
        async with house.running(is_killed=True):
            turn = await begun(house)
        for _ in range(3):
            async with house.running():
                await look(house)
                await until(lambda: house.phone.shows("stopped without warning", HOME))
        (told,) = house.phone.shows("stopped without warning", HOME)
        assert turn.id in told.text


async def test_a_clean_start_says_nothing(open_it: Open) -> None:
    async with living(open_it, ECHO) as house:
        for _ in range(2):
            async with house.running():
                await look(house)
        assert house.phone.calls == []


async def test_a_home_chat_that_cannot_be_reached_hears_the_news_when_it_can(open_it: Open) -> None:
    async with living(open_it, ECHO) as house:
        house.phone.typed.refusals = [AccountRefused("the token is not valid")] * 3
        async with house.running():
            await look(house)
            assert house.phone.shows("", HOME) == [], "a moment without a connection is no news"
        assert not house.phone.typed.refusals


async def test_an_account_that_is_refused_is_told_in_the_home_chat_of_another(open_it: Open) -> None:
    phones = {"telegram": Handset(), ELSEWHERE: Handset()}
    phones["telegram"].typed.refusals = [AccountRefused("the token is not valid")] * 1_000
    async with living(open_it, ECHO, phones=phones, homes={"telegram": "home", ELSEWHERE: "home"}) as house, house.running():

        async def is_refused() -> bool:
            found = await house.store.channels.find("telegram")
            return found is not None and found.state is AccountState.REFUSED

        await until(is_refused)
        await look(house)
        await until(lambda: phones[ELSEWHERE].shows("telegram has received no messages", HOME))
        assert phones["telegram"].calls == []


async def test_an_answer_that_cannot_be_delivered_is_told_at_home(open_it: Open) -> None:
    async with living(open_it, ECHO) as house, house.running() as engine:
        house.phone.fails["send"] = [Rejected("bot was blocked by the user")]
        receipt = await engine.inbox.accept(message("hi", conversation="telegram:5", reply_to="telegram:5"))
        await settled(house.store, receipt)

        async def is_lost() -> bool:
            return (await house.store.deliveries.of_turn(receipt.turn_id))[0].settled_at is not None

        await until(is_lost)
        await look(house)
        await until(lambda: house.phone.shows("bot was blocked by the user", HOME))


@on_sqlite
@pytest.mark.parametrize("stream", ["status", "edit"])
async def test_a_chat_whose_turn_was_cut_off_is_told_once_and_goes_on_by_a_button(open_it: Open, stream: str) -> None:
    """R5, R9: the answer is there once, and begins with what was said before."""
    async with living(open_it, Slow(), settings={"stream": stream}) as house:
        async with house.running(is_killed=True):
            turn = await begun(house)
            if stream == "edit":
                await until(lambda: house.phone.shows("The answer is"))
        for _ in range(2):
            async with house.running():
                await until(lambda: house.phone.shows("The gateway stopped while I was answering"))
        (told,) = house.phone.shows("The gateway stopped while I was answering")
        assert [each.label for row in told.buttons for each in row] == ["Go on"]
        async with house.running():
            pressed = house.phone.press(0)
            house.phone.report(pressed)
            await until(lambda: house.phone.shows("The answer is forty-two."))
            await until(lambda: GOING_ON in house.phone.told)
            assert len(house.phone.shows("The answer is")) == 1
            assert not house.phone.chats[CHAT][pressed.message_id].buttons
            house.phone.report(changed(pressed, press_id="again"))
            await until(lambda: MOVED_ON in house.phone.told)
            assert (await house.store.turns.get(turn.id)).state is TurnState.COMPLETED


@on_sqlite
async def test_a_turn_that_goes_on_by_itself_needs_no_button(open_it: Open) -> None:
    """R10"""
    config = Config(gateway=GatewayConfig(resume="auto"))
    async with living(open_it, Slow(), config=config) as house:
        async with house.running(is_killed=True):
            await begun(house)
        async with house.running():
            await until(lambda: house.phone.shows("The answer is forty-two."))
        assert [each for each in house.phone.texts() if not each.startswith("Working")] == ["The answer is forty-two."]


@on_sqlite
async def test_the_next_message_in_the_chat_tells_the_model_once_that_it_was_cut_off(open_it: Open) -> None:
    """R5, R6"""
    agent = Slow()
    async with living(open_it, agent) as house:
        async with house.running(is_killed=True):
            await begun(house)
        agent.go.set()
        async with house.running():
            await until(lambda: house.phone.shows("The gateway stopped while I was answering"))
            house.phone.write("And now?")
            await until(lambda: house.phone.shows("The answer is forty-two."))
        assert agent.heard[-1].startswith("[System note: the previous turn was cut off by a gateway interruption.")
        assert agent.heard[-1].count("[System note:") == 1
        assert agent.heard[-1].endswith("And now?")


@pytest.mark.parametrize(
    ("cause", "banner"), [(Cause.RESTART_TIMEOUT, RESTART_BANNER), (Cause.SHUTDOWN_TIMEOUT, SHUTDOWN_BANNER)]
)
async def test_a_stop_tells_each_chat_that_is_active_once(open_it: Open, cause: Cause, banner: str) -> None:
    """R1, R4: and the next start does not tell it again."""
    async with living(open_it, Slow()) as house:
        async with house.running() as engine:
            await begun(house)
            await asyncio.gather(engine.drain(300, cause), engine.drain(300, cause))
        async with house.running():
            await look(house)
        assert [each for each in house.phone.texts() if not each.startswith("Working") and each != "Done."] == [banner]


class Asking:
    """An agent that asks one question."""

    def __init__(self, question: Question) -> None:
        self.question = question

    async def run(self, work: Assignment, stage: Stage) -> str:
        answer = await stage.ask(self.question)
        await stage.say(answer)
        return answer

    async def release(self, session_id: str) -> None: ...


BUDGET = Question(id="budget:1", text="The budget is used up. Go on?", about=About.BUDGET, choices=("continue", "stop"))
APPROVAL = Question(id="approve:1", text="May I run it?", about=About.APPROVAL)
CHOICE = Question(id="ask:1", text="Tea or coffee?", choices=("tea", "coffee"))


async def asked_by(engine: Engine, mode: Mode) -> Receipt:
    facts = {"conversation": "web:1", "channel": "web", "owner": "local", "mode": mode, "reply_to": None}
    return await engine.inbox.accept(message("go", **facts))


@pytest.mark.parametrize(
    ("question", "mode"),
    [(BUDGET, Mode.CONVERSATION), (BUDGET, Mode.DETACHED), (APPROVAL, Mode.DETACHED)],
)
async def test_what_is_asked_in_no_chat_is_asked_at_home(open_it: Open, question: Question, mode: Mode) -> None:
    async with living(open_it, Asking(question)) as house, house.running() as engine:
        receipt = await asked_by(engine, mode)
        (shown,) = await until(lambda: house.phone.shows(question.text, HOME))
        assert receipt.turn_id in shown.text
        house.phone.report(house.phone.press(0, place=HOME))
        assert (await settled(house.store, receipt)).state is TurnState.COMPLETED
        await until(lambda: not house.phone.last(HOME)[1].buttons)


@pytest.mark.parametrize("question", [APPROVAL, CHOICE])
async def test_what_a_person_sees_on_the_page_is_not_asked_at_home(open_it: Open, question: Question) -> None:
    async with living(open_it, Asking(question)) as house, house.running() as engine:
        receipt = await asked_by(engine, Mode.CONVERSATION)

        async def waits() -> bool:
            return (await house.store.turns.get(receipt.turn_id)).state is TurnState.WAITING

        await until(waits)
        assert await house.store.deliveries.of_turn(receipt.turn_id) == []


async def let_in(house: House, text: str = "hello") -> None:
    """Let the stranger in as a guest, whose first message is then answered."""
    house.phone.write(text, place=THEIRS, who=STRANGER)
    (pairing,) = await until(house.store.people.pairings)
    await house.store.people.decide(pairing.id, Choice.GUEST, "local", SystemClock().now_ms())


async def test_what_a_guest_wants_done_is_decided_at_home_and_both_chats_are_told(open_it: Open) -> None:
    """Q2"""
    async with living(open_it, Asking(APPROVAL)) as house, house.running():
        await let_in(house)
        await until(lambda: house.phone.shows(WAITS, THEIRS) and house.phone.shows(APPROVAL.text, HOME))
        house.phone.write("/approve", place=THEIRS, who=STRANGER)
        await until(lambda: house.phone.shows("Only the operator can decide this", THEIRS))
        house.phone.write("/deny", place=THEIRS, who=STRANGER)
        await until(lambda: len(house.phone.shows("Only the operator can decide this", THEIRS)) == 2)
        house.phone.report(house.phone.press(0, place=HOME))
        await until(lambda: house.phone.shows("**Once**", THEIRS) and house.phone.shows("**Once**", HOME))
        await until(lambda: house.phone.shows("once", THEIRS))


async def test_a_message_that_came_late_tells_the_model_its_age(open_it: Open) -> None:
    agent = Slow()
    agent.go.set()
    async with living(open_it, agent) as house, house.running():
        house.phone.write("late", sent_at=SystemClock().now_ms() - 660_000)
        await until(lambda: agent.heard)
        assert agent.heard == ["[System note: this message was sent 11 minutes ago and could not be read before.]\n\nlate"]
        await until(lambda: house.phone.shows("forty-two."))


async def test_many_old_messages_are_one_question_and_the_last_is_answered(open_it: Open) -> None:
    async with living(open_it, ECHO) as house, house.running():
        at = SystemClock().now_ms() - 2 * 3_600_000
        for number in range(6):
            house.phone.write(f"old {number}", sent_at=at + 10_000 * number)
        (asked,) = await until(lambda: house.phone.shows("6 messages came here while I was away"))
        assert [each.label for row in asked.buttons for each in row] == ["Answer all", "Answer the last", "Drop them"]
        house.phone.report(house.phone.press(1))
        await until(lambda: house.phone.shows("old 5"))
        assert house.phone.shows("old 4") == []


@pytest.mark.parametrize("stream", ["status", "off"])
async def test_a_message_that_waits_is_seen_at_once(open_it: Open, stream: str) -> None:
    """By a line, or by a reaction where there is none."""
    agent = Slow()
    async with living(open_it, agent, settings={"stream": stream}) as house, house.running():
        await begun(house)
        second = house.phone.write("And this?", sent_at=SystemClock().now_ms() + 5_000)
        if stream == "off":
            await until(lambda: house.phone.count(f"react {second}"))
        else:
            await until(lambda: house.phone.shows("Waiting behind another message…"))
        agent.go.set()
        await until(lambda: len(house.phone.shows("The answer is forty-two.")) == 2)


@on_sqlite
async def test_the_end_of_a_background_command_arrives_in_the_thread_that_started_it(open_it: Open, tmp_path: Path) -> None:
    """A5: as a turn of the same session."""
    thread = Place(chat_id="1", thread_id="9")
    script = starts(command="echo well; exit 3", notify_on_complete=True)
    async with opened(open_it) as store, working(store, tmp_path, script) as (agent, background):

        def monitors(accept: Accept) -> Components:
            return {"processes": ProcessMonitor(store.processes, store.sessions, background, accept).run}

        house = House(store, agent, beside=monitors)
        async with house.running():
            house.phone.write("go", place=thread)
            await until(lambda: house.phone.shows("heard: True", thread))
            assert house.phone.chats.keys() == {thread}
    end_all(tmp_path)
