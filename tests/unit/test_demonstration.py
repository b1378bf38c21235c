"""The demonstration agent does as it is told, in order, and repeats nothing when it is cut off and goes on."""

from __future__ import annotations

import asyncio
import contextlib
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import pytest

from holdfast.agent.demonstration import COUNT_MAX, REPEATING_MAX_MS, SLOW_WORD_MS, WAIT_MAX_S, WORD_MS, demonstration
from holdfast.agent.toolbox import Toolbox
from holdfast.agent.tools.memory import MemoryArgs
from holdfast.agent.tools.port import CallContext, StructTool
from holdfast.core import effects
from holdfast.core.effects import Call, Effect
from holdfast.core.questions import Question
from holdfast.core.sessions import Session
from holdfast.core.transcript import Item, Role
from holdfast.core.turns import Turn
from holdfast.core.usage import Usage
from holdfast.errors import HoldfastError, Rejected
from holdfast.ids import CallId, SessionId, TurnId
from holdfast.ports import Assignment, StageTool, Use

NONCE = "nonce-7f3a"
TURN = Turn(id=TurnId("trn_1"), session_id=SessionId("ses_1"), ordinal=1, accepted_at=1)
SESSION = Session(
    id=SessionId("ses_1"), key="chat:1", channel="terminal", owner="local", one_shot=False, created_at=1, updated_at=1
)


class QuickClock:
    """A clock on which no time passes, however long anybody sleeps."""

    def __init__(self) -> None:
        self.naps: list[float] = []

    def now_ms(self) -> int:
        return 1

    def monotonic_ms(self) -> int:
        return 1

    async def sleep_ms(self, duration_ms: float) -> None:
        self.naps.append(duration_ms)
        await asyncio.sleep(0)


class CutOff(Exception):
    """The process was killed here."""


class Parked(Exception):
    """The turn waits for a person."""


@dataclass
class Rehearsal:
    """A stage that keeps what earlier attempts left on it, and may be cut off at its nth deed."""

    answers: Mapping[str, str] = field(default_factory=dict[str, str])
    items: list[Item] = field(default_factory=list[Item])
    calls: dict[CallId, Call] = field(default_factory=dict[CallId, Call])
    asked: list[str] = field(default_factory=list[str])
    # A message that joins after so many deeds.
    joins: tuple[int, str] | None = None
    deeds: int = 0
    cut_at: int | None = None

    def _deed(self) -> None:
        self.deeds += 1
        if self.deeds == self.cut_at:
            raise CutOff

    def _show(self, role: Role, text: str) -> None:
        if text:
            self.items.append(Item(role=role, turn_id=TURN.id, at=1, text=text))

    async def say(self, text: str) -> None:
        self._deed()
        self._show(Role.ASSISTANT, text)

    async def think(self, text: str) -> None:
        self._deed()
        self._show(Role.REASONING, text)

    async def use(self, tool: StageTool, call_id: CallId, args: Mapping[str, object]) -> Call:
        if (known := self.calls.get(call_id)) and known.state in effects.ENDED:
            return known
        started = Call(
            id=call_id,
            turn_id=TURN.id,
            session_id=SESSION.id,
            name=tool.name,
            effect=tool.effect,
            state=effects.CallState.STARTED,
        )
        try:
            self._deed()
            ended = replace(started.on(effects.CallEvent.SUCCEED), result=await tool.run(args, f"{TURN.id}:{call_id}"))
        except HoldfastError as error:
            ended = replace(started.on(effects.CallEvent.FAIL), result=str(error))
        except CutOff:
            self.calls[call_id] = started.on(effects.after_cut(tool.effect))
            raise
        self.calls[call_id] = ended
        return ended

    async def heed(self) -> list[str]:
        if self.joins is None or self.deeds < self.joins[0]:
            return []
        (_, text), self.joins = self.joins, None
        self.items.append(Item(role=Role.USER, kind="joined", turn_id=TURN.id, at=1, text=text))
        return [text]

    async def ask(self, question: Question) -> str:
        if question.id not in self.answers:
            self.asked.append(question.text)
            raise Parked
        return self.answers[question.id]

    async def use_all(self, uses: Sequence[Use]) -> list[Call]:
        return [await self.use(each.tool, each.call_id, each.args) for each in uses]

    async def spend(self, used: Usage) -> None:
        raise AssertionError("it needs no model")

    async def note(self, text: str) -> None:
        raise AssertionError("it has nobody to speak for")

    async def compact(self, summary: str, through: TurnId) -> None:
        raise AssertionError("it needs no model")

    def rest(self) -> AbstractAsyncContextManager[None]:
        return contextlib.nullcontext()

    def text(self) -> str:
        """Return the whole answer, as a reader of the transcript has it."""
        return "".join(item.text for item in self.items if item.role is Role.ASSISTANT)


def assignment(message: str, items: Sequence[Item] = (), before: str = "") -> Assignment:
    accepted = Item(role=Role.USER, turn_id=TURN.id, at=1, text=message)
    return Assignment(session=SESSION, turn=TURN, message=before + message, history=[accepted, *items], calls=[])


async def perform(message: str, stage: Rehearsal | None = None, notes: Path | None = None) -> Rehearsal:
    stage = stage or Rehearsal()
    answer = await demonstration(notes, QuickClock()).run(assignment(message, stage.items), stage)
    assert answer == stage.text()
    return stage


async def test_it_says_what_it_is_and_repeats_what_it_was_told() -> None:
    stage = await perform(f"hello {NONCE},\nhow are   you?")
    assert "demonstration agent, not a model" in stage.text()
    assert f"“hello {NONCE},\nhow are   you?”" in stage.text()
    assert [call.name for call in stage.calls.values()] == ["count_words"]


@pytest.mark.parametrize(("message", "word_ms"), [("hello", WORD_MS), ("hello, slowly please", SLOW_WORD_MS)])
async def test_it_takes_its_time_for_every_word(message: str, word_ms: float) -> None:
    clock, stage = QuickClock(), Rehearsal()
    await demonstration(clock=clock).run(assignment(message), stage)
    assert set(clock.naps) == {word_ms}
    assert len(clock.naps) == len([item for item in stage.items if item.role is Role.ASSISTANT]) > 20


async def test_a_very_long_message_is_repeated_within_bounds() -> None:
    clock, stage = QuickClock(), Rehearsal()
    await demonstration(clock=clock).run(assignment("word " * 50_000), stage)
    assert sum(clock.naps) < 1.2 * REPEATING_MAX_MS


async def test_it_counts_one_number_at_a_time() -> None:
    stage = await perform("please count to 12")
    assert stage.text().endswith("”. 1 2 3 4 5 6 7 8 9 10 11 12.")
    assert [item.text for item in stage.items][-3:] == [" 10", " 11", " 12."]


async def test_it_counts_only_so_far_and_says_so() -> None:
    assert (await perform("count to 999999")).text().endswith(f" {COUNT_MAX}, and no further.")


@pytest.mark.parametrize(
    ("asked", "waited_ms", "said"),
    [
        ("wait 3 seconds", 3_000, " I waited 3 seconds."),
        ("wait 1 second", 1_000, " I waited 1 second."),
        ("Wait 0.5 seconds!", 500, " I waited 0.5 seconds."),
        ("wait 9999 seconds", WAIT_MAX_S * 1_000, f" I waited {WAIT_MAX_S} seconds, which is as long as I ever wait."),
    ],
)
async def test_it_waits_in_a_tool_that_may_run_again(asked: str, waited_ms: float, said: str) -> None:
    clock, stage = QuickClock(), Rehearsal()
    await demonstration(clock=clock).run(assignment(asked), stage)
    assert waited_ms in clock.naps
    assert stage.text().endswith(said)
    assert [(call.name, call.effect) for call in stage.calls.values()][-1] == ("wait", Effect.PURE)


async def test_it_keeps_a_note_once_with_the_key_of_its_call(tmp_path: Path) -> None:
    """X1: the file is the world, and a note in it an effect."""
    notes = tmp_path / "notes.txt"
    stage = await perform(f"note: buy milk for {NONCE}", notes=notes)
    (call,) = [each for each in stage.calls.values() if each.name == "keep_note"]
    assert call.effect is Effect.EFFECTFUL
    assert notes.read_text() == f"{TURN.id}:{call.id} buy milk for {NONCE}\n"
    assert stat.S_IMODE(notes.stat().st_mode) == 0o600
    assert stage.text().endswith(" I kept your note.")
    assert stage.text().count(NONCE) == 1


async def test_with_no_file_for_notes_it_says_that_it_could_not() -> None:
    assert (await perform("note: buy milk")).text().endswith(" keep_note failed: there is no file for notes.")


async def test_a_note_that_was_cut_off_is_not_tried_again(tmp_path: Path) -> None:
    """X1: whether it is in the file is not known, and the answer says so."""
    notes = tmp_path / "notes.txt"
    message = "note: buy milk"
    begun = await cut_where(
        message, notes, lambda stage: effects.CallState.UNKNOWN in {c.state for c in stage.calls.values()}
    )
    await perform(message, begun, notes)
    assert not notes.exists()
    assert begun.text().endswith(" Whether keep_note had its effect is not known: I was cut off, and did not try again.")


async def test_it_asks_and_repeats_the_answer() -> None:
    message = "ask me which colour you want; count to 2"
    stage = Rehearsal()
    with pytest.raises(Parked):
        await perform(message, stage)
    assert stage.asked == ["which colour you want"]
    (question,) = await question_of(message)
    stage.answers = {question: f"blue {NONCE}"}
    await perform(message, stage)
    assert stage.text().endswith(f" You answered: “blue {NONCE}”. 1 2.")


async def question_of(message: str) -> set[str]:
    """Return the id of the question that a message makes it ask."""
    found: set[str] = set()

    class Listening(Rehearsal):
        async def ask(self, question: Question) -> str:
            found.add(question.id)
            raise Parked

    with pytest.raises(Parked):
        await perform(message, Listening())
    return found


async def test_it_fails_when_told_to_with_what_it_did_before_kept() -> None:
    stage = Rehearsal()
    with pytest.raises(Rejected, match="you asked me to fail"):
        await perform(f"count to 3, then FAIL {NONCE}", stage)
    assert stage.text().endswith(" 1 2 3.")
    assert stage.text().count(NONCE) == 1


async def test_it_does_several_things_in_the_order_in_which_they_stand(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    stage = await perform("wait 1 second, count to 2, note: one then note: two; wait 2 seconds\ncount to 3", notes=notes)
    done = stage.text().partition("”.")[2]
    assert done == (" I waited 1 second. 1 2. I kept your note. I kept your note. I waited 2 seconds. 1 2 3.")
    assert [line.split(maxsplit=1)[1] for line in notes.read_text().splitlines()] == ["one", "two"]


@pytest.mark.parametrize(
    "word", ["failure", "slowlyish", "miscount to 3", "notes", "[System note: it ended]", "wait for it", "await 3 seconds"]
)
async def test_a_word_that_only_looks_like_a_request_is_none(word: str) -> None:
    assert (await perform(word)).text().endswith("what do you know about me?")


@pytest.mark.parametrize(
    "note",
    ["a task that you gave away in the background has ended: x]", "what the person sent to the background has ended: x\n]"],
)
async def test_what_it_said_in_the_background_is_no_request(note: str) -> None:
    """The end of background work brings this agent its own words, which name everything that it can do."""
    its_words = (await perform("hello")).text()
    stage = await perform(f"[System note: {note}\n\n{its_words}")
    assert stage.text().endswith(f"{its_words}”.")


async def cut_where(message: str, notes: Path, is_right: Callable[[Rehearsal], bool]) -> Rehearsal:
    """Return a stage on which an attempt was cut off at the first moment that is right."""
    for nth in range(1, 1_000):
        stage = Rehearsal(cut_at=nth)
        with pytest.raises(CutOff):
            await perform(message, stage, notes)
        if is_right(stage):
            return stage
    raise AssertionError("there is no such moment")


SEVERAL = f"please {NONCE} count to 3, wait 1 second, note: milk then ask me why; count to 2"


async def test_cut_off_anywhere_and_again_it_says_everything_once(tmp_path: Path) -> None:
    """J1: whatever was shown is not said again, and the rest follows; a nonce comes back exactly once."""
    (question,) = await question_of(SEVERAL)
    whole = await perform(SEVERAL, Rehearsal(answers={question: "because"}), tmp_path / "whole.txt")
    assert whole.text().count(NONCE) == 1
    for first in range(1, whole.deeds + 1):
        notes = tmp_path / f"{first}.txt"
        stage = Rehearsal(answers={question: "because"}, cut_at=first)
        with pytest.raises(CutOff):
            await perform(SEVERAL, stage, notes)
        # And a second time, a little further on.
        stage.cut_at = stage.deeds + first // 2 + 2
        try:
            await perform(SEVERAL, stage, notes)
        except CutOff:
            await perform(SEVERAL, stage, notes)
        unknown = any(call.state is effects.CallState.UNKNOWN for call in stage.calls.values())
        assert unknown or stage.text() == whole.text()
        assert stage.text().count(NONCE) == 1
        assert stage.text().endswith(" You answered: “because”. 1 2.")
        assert notes.exists() != unknown
        assert unknown or notes.read_text().count("\n") == 1


@pytest.mark.parametrize("joins_after", [0, 7, 15])
async def test_it_says_once_that_it_noticed_what_joined_wherever_it_is_cut_off(joins_after: int) -> None:
    """J1: what joined a running turn is in no script, and still neither forgotten nor repeated."""
    message, added = f"count to 3 {NONCE}", "also nonce-2"
    alone = await perform(message)
    noticed = f" (I noticed that you added: “{added}”.)"
    for cut_at in range(1, alone.deeds + 2):
        stage = Rehearsal(joins=(joins_after, added), cut_at=cut_at)
        with pytest.raises(CutOff):
            await perform(message, stage)
        await perform(message, stage)
        assert stage.text().count(noticed) == 1
        assert stage.text().replace(noticed, "") == alone.text()


async def test_words_that_were_shown_before_are_not_waited_for_again() -> None:
    """A turn that is cut off again and again still gets on."""
    stage = Rehearsal(cut_at=30)
    with pytest.raises(CutOff):
        await perform("count to 20 slowly", stage)
    spoken = len([item for item in stage.items if item.role is Role.ASSISTANT])
    clock = QuickClock()
    await demonstration(clock=clock).run(assignment("count to 20 slowly", stage.items), stage)
    assert len(clock.naps) == len([item for item in stage.items if item.role is Role.ASSISTANT]) - spoken + 1


async def test_it_thinks_aloud_about_the_note_that_holdfast_put_before_a_message() -> None:
    """R6: the note is seen by the agent, and the user's text is kept whole beside it."""
    stage = Rehearsal()
    note = "[System note: the gateway restarted.]\n\n"
    await demonstration(clock=QuickClock()).run(assignment(f"hello {NONCE} [x]\n\nthere", before=note), stage)
    (thought,) = [item.text for item in stage.items if item.role is Role.REASONING]
    assert thought.endswith("Holdfast put a note before this message: [System note: the gateway restarted.]")
    assert f"“hello {NONCE} [x]\n\nthere”" in stage.text()


async def test_a_note_that_only_a_later_attempt_got_changes_nothing() -> None:
    """J1: an attempt that goes on is told that it was cut off, and still goes on in the same words."""
    whole = await perform("hello")
    stage = Rehearsal(cut_at=12)
    with pytest.raises(CutOff):
        await perform("hello", stage)
    later = assignment("hello", stage.items, before="[System note: the gateway restarted.]\n\n")
    await demonstration(clock=QuickClock()).run(later, stage)
    assert [item.text for item in stage.items] == [item.text for item in whole.items]


async def test_it_reaches_for_the_tools_of_the_gateway_as_a_model_would() -> None:
    """A tool that is there is used with what was said; one that is not fails visibly, and the rest is still done."""
    reached: list[tuple[str, bool]] = []

    async def terminal(args: TerminalArgs, _site: CallContext) -> str:
        reached.append((args.command, args.background))
        return "a.txt"

    tool = StructTool(name="terminal", description="", args=TerminalArgs, effect=Effect.EFFECTFUL, action=terminal)
    stage = Rehearsal()
    agent = demonstration(clock=QuickClock(), toolbox=Toolbox([tool]))
    await agent.run(assignment("run: ls -l; background: sleep 5; delegate: it all; count to 2", stage.items), stage)
    assert reached == [("ls -l", False), ("sleep 5", True)]
    said = stage.text().partition("”.")[2]
    assert "a.txt" in said
    assert "delegate_task failed: there is no tool 'delegate_task'; there are terminal." in said
    assert said.endswith(" 1 2.")


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        (
            "mem_1 (profile): A sailor.\nmem_2: Their boat: Elsa",
            " This I know about you:\n\n- A sailor.\n- Their boat: Elsa",
        ),
        ("Nothing is remembered about that.", " Nothing yet."),
    ],
)
async def test_it_says_what_is_remembered_when_it_is_asked(listed: str, said: str) -> None:
    async def memory(args: MemoryArgs, _site: CallContext) -> str:
        return listed if args.action == "list" else ""

    tool = StructTool(name="memory", description="", args=MemoryArgs, effect=Effect.KEYED, action=memory)
    stage = Rehearsal()
    agent = demonstration(clock=QuickClock(), toolbox=Toolbox([tool]))
    await agent.run(assignment("What do you know about me?", stage.items), stage)
    assert stage.text().partition("”.")[2] == said
    stage = Rehearsal()
    await demonstration(clock=QuickClock()).run(assignment("what do you remember about me", stage.items), stage)
    assert "memory failed: there is no tool 'memory'" in stage.text()


class TerminalArgs(msgspec.Struct):
    command: str
    background: bool = False
    notify_on_complete: bool = False


async def test_it_says_what_it_was_told_about_its_own_background_work() -> None:
    """A8: what comes by itself is no request, whatever a command printed."""
    note = (
        "[System note: the background process prc_1 (`make`) ended with exit code 0 after 8.0 s. Below is what it printed.]"
    )
    stage = await perform(f"{note}\n\nfail; count to 3")
    assert stage.text() == "I have heard that the background process prc_1 (`make`) ended with exit code 0 after 8.0 s."
