"""The failpoint sweep of chats: killed beside any write and any call of the platform, what people see is still right.

Each write and each commit of the store is a point, and each call that changes something at the platform: before it takes
effect, and after it did and before the caller knows.
"""

from __future__ import annotations

import itertools
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.delivery import REPEAT_LABEL
from tests.crash.chat_life import ACCOUNT, ANSWERS, ASKS, CHAT, CHOICES, HOME, PASTE, PLEASE, QUESTION, STRANGE, WORDS
from tests.crash.far_side import CALLS, Seen, shown
from tests.crash.forking import Death
from tests.crash.life import When
from tests.crash.sweeping import POINTS_MAX, Lives, lives_of
from tests.crash.world import World

CODE = "with this code"
Report = dict[str, Any]
Lines = Sequence[dict[str, Any]]


@pytest.fixture(scope="module")
def lives() -> Iterator[Lives]:
    with lives_of("tests.crash.chat_life") as lives:
        yield lives


@pytest.fixture(scope="module")
def born(lives: Lives) -> Path:
    return lives.born()


@pytest.mark.parametrize(
    ("when", "stride", "points_min"),
    [
        ("before", 17, 12),
        ("after", 7, 10),
        pytest.param("before", 1, 250, marks=pytest.mark.long),
        pytest.param("after", 1, 80, marks=pytest.mark.long),
    ],
)
def test_killed_beside_any_write_or_call_each_message_has_one_answer(
    lives: Lives, born: Path, when: When, stride: int, points_min: int
) -> None:
    """A1 A2 A3 D1 D2 D3 Q1 P1: killed once, beside points of the whole life of messages in chats."""
    points = lives.kill_once(
        born, "chat", when, range(1, POINTS_MAX, stride), lambda home, killed: converge(lives, home, killed)
    )
    assert points >= points_min
    print(f"{points} points {when}")


@pytest.mark.long
@pytest.mark.parametrize(("when", "strides"), [("before", (10, 17)), ("after", (3, 5))])
def test_killed_again_inside_recovery_each_message_has_one_answer(
    lives: Lives, born: Path, when: When, strides: tuple[int, int]
) -> None:
    """A1 A2 A3 D1 D2 D3 Q1 P1: killed a second time, while it recovers from the first."""
    lives.kill_twice(born, "chat", when, strides, lambda home, killed: converge(lives, home, killed))


def converge(lives: Lives, home: Path, killed: Sequence[Death]) -> None:
    """Live on without being killed, and require that people see what they would have seen without any death."""
    for death in killed:
        assert death.status in (0, -signal.SIGKILL), death.errors
    last = lives.live(home, "chat")
    lines = World(home / "world").lines()
    try:
        assert last.status == 0, last.errors
        report, again = last.reports()
        for left in itertools.chain.from_iterable(death.lines("left") for death in (*killed, last)):
            assert left == "[]"
        assert (report["audit"], report["staged"]) == ([], [])
        assert again["rows"] == report["rows"], "a second recovery changed something"
        check_turns(report)
        kills = sum(death.status != 0 for death in killed)
        check_deliveries(report, lines, kills)
        check_answers(report, lines, kills)
        check_question(report, lines)
        check_stranger(report, lines)
        check_leftovers(report, lines, kills)
    except AssertionError as error:
        error.add_note("What the platform saw:\n" + "\n".join(str(line)[:300] for line in lines))
        raise


def check_turns(report: Report) -> None:
    """A1, A3: what a person wrote became one turn, the two parts of a text together, and was answered."""
    turns = {(chat, message): turn for chat, message, turn in report["messages"]}
    first, second = (turns[CHAT, f"{PASTE[0][:9]}-{number}"] for number in (0, 1))
    assert first == second
    assert {turns[CHAT, f"{WORDS}-0"], first, turns[STRANGE, f"{PLEASE}-0"]} == {turn for turn, _ in report["turns"]}
    assert [state for _, state in report["turns"]] == ["completed"] * 3


def check_deliveries(report: Report, lines: Lines, kills: int) -> None:
    """D1: each message was sent once without a label, and again at most once and with one."""
    for id_, turn_id, part, state, repeats, _, text, target in report["deliveries"]:
        sent = [line["text"] for line in lines if line["kind"] == "sent" and line["key"] == id_]
        plain, labelled = sent.count(text), sent.count(f"{REPEAT_LABEL} {text}")
        assert plain <= 1
        assert plain + labelled == len(sent) <= 2
        # An answer whose beginning may be shown has a label from its first send on, which may be cut off too.
        assert labelled <= 1 or (kills > 1 and part == 1 and turn_id is not None)
        # Where the sender died twice while it was sending, nobody will ever know.
        assert state == "delivered" or ((state, repeats) == ("unknown", 1) and kills > 1)
        assert target.partition(":")[0] == ACCOUNT
        assert turn_id is None or part == 1 or text == QUESTION


def lost(report: Report, words: str) -> bool:
    """Return whether it is unknown if a message was ever shown."""
    return any(words in text and state == "unknown" for _, _, _, state, _, _, text, _ in report["deliveries"])


def check_answers(report: Report, lines: Lines, kills: int) -> None:
    """D1, D3: each answer stands in its chat once, or again with a label, in the order of the messages."""
    for chat, messages in ((CHAT, (WORDS, "\n".join(PASTE))), (STRANGE, (PLEASE,))):
        texts = [each.text for each in shown(lines, chat)]
        places: list[int] = []
        for message in messages:
            answer = ANSWERS[message]
            found = [place for place, text in enumerate(texts) if text in (answer, f"{REPEAT_LABEL} {answer}")]
            assert texts.count(answer) <= 1
            assert len(found) <= 1 + kills
            assert found or lost(report, answer), f"{message[:9]} was never answered"
            places += found
        assert places == sorted(places)
    every = [each.text.removeprefix(f"{REPEAT_LABEL} ") for each in shown(lines)]
    assert sum(text in ANSWERS.values() for text in every) == sum(
        text in ANSWERS.values()
        for chat in (CHAT, STRANGE)
        for text in (each.text.removeprefix(f"{REPEAT_LABEL} ") for each in shown(lines, chat))
    ), "answered in another chat"


def check_question(report: Report, lines: Lines) -> None:
    """Q1: the question is settled, and the message that is known to ask it says how."""
    assert report["questions"] == [[CHOICES[0]]]
    (receipt,) = [receipt for *_, receipt, text, _ in report["deliveries"] if text == QUESTION]
    asking = {each.id: each for each in shown(lines, CHAT) if QUESTION in each.text}
    if not lost(report, QUESTION):
        assert asking[receipt].text.endswith(f"{QUESTION}\n\n**{CHOICES[0]}**")
        assert not asking[receipt].buttons


def check_stranger(report: Report, lines: Lines) -> None:
    """The stranger was shown one code, and the message that the operator pressed says that they are let in."""
    codes = [each.text for each in shown(lines, STRANGE) if CODE in each.text]
    assert len(set(codes)) == len(codes)
    assert len({text.removeprefix(f"{REPEAT_LABEL} ") for text in codes}) == 1 or lost(report, CODE)
    asked = [each for each in shown(lines, HOME) if ASKS in each.text]
    assert any("is let in" in each.text and not each.buttons for each in asked) or lost(report, ASKS)


def check_leftovers(report: Report, lines: Lines, kills: int) -> None:
    """A line about the work, or the beginning of an answer, stays only where a death came beside its sending."""
    delivered = {id_ for id_, *_ in report["deliveries"]}
    receipts = {receipt for *_, receipt, _, _ in report["deliveries"]}
    left = [each for each in shown(lines) if each.key not in delivered and each.id not in receipts]
    assert all(was_cut_off(each, lines) for each in left), left
    assert len(left) <= kills
    begun = {each.key.partition(":")[2] for each in left if each.key.startswith("stream:")}
    unlabelled = {(line["key"], line["text"]) for line in lines if line["kind"] == "sent"}
    assert not any(
        turn_id in begun and (id_, text) in unlabelled
        for id_, turn_id, *_, text, _ in report["deliveries"]
        if text != QUESTION
    )


def was_cut_off(message: Seen, lines: Lines) -> bool:
    """Return whether the life that sent a message made no other call to its chat before it died."""
    after = itertools.takewhile(lambda line: line["kind"] != "born", lines[message.line + 1 :])
    died = any(line["kind"] == "born" for line in lines[message.line + 1 :])
    return died and not any(line["kind"] in CALLS and line.get("chat") == message.chat for line in after)
