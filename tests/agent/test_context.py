"""What a model reads is made from the transcript alone: every way in which a turn can have been left."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from holdfast.agent import context
from holdfast.agent.context import UNKNOWN, rebuilt
from holdfast.agent.models.port import AssistantMessage, Request, ToolMessage, UserMessage
from holdfast.core import effects
from holdfast.core.effects import Call, Effect
from holdfast.core.intake import Image
from holdfast.core.sessions import Session
from holdfast.core.transcript import Item, Role
from holdfast.core.turns import Turn
from holdfast.ids import CallId, SessionId, TurnId
from holdfast.ports import Assignment
from tests.agent.world import assert_every_call_has_its_result, shape

NOW = TurnId("trn_now")
OLD = TurnId("trn_old")
SESSION = Session(
    id=SessionId("ses"), key="k", channel="telegram", owner="local", one_shot=False, created_at=0, updated_at=0
)


def item(role: Role, text: str = "", turn: TurnId = NOW, **changes: Any) -> Item:
    return Item(role=role, turn_id=turn, at=0, text=text, **changes)


def user(text: str = "hello", turn: TurnId = NOW, **changes: Any) -> Item:
    return item(Role.USER, text, turn, **changes)


def said(text: str, turn: TurnId = NOW, **changes: Any) -> Item:
    return item(Role.ASSISTANT, text, turn, **changes)


def card(call_id: str, outcome: str | None = "ok", turn: TurnId = NOW, name: str = "lever") -> Item:
    return item(Role.TOOL, "", turn, call_id=call_id, name=name, args={"n": 1}, result=outcome and "it", outcome=outcome)


def call(
    call_id: str, state: effects.CallState = effects.CallState.OK, result: str | None = "it", args: str = '{"n":1}'
) -> Call:
    return Call(
        id=CallId(call_id),
        turn_id=NOW,
        session_id=SESSION.id,
        name="lever",
        effect=Effect.EFFECTFUL,
        args=args,
        state=state,
        result=result,
    )


def work(*history: Item, calls: tuple[Call, ...] = (), message: str = "hello", **changes: Any) -> Assignment:
    turn = Turn(id=NOW, session_id=SESSION.id, ordinal=2, accepted_at=0)
    return Assignment(session=SESSION, turn=turn, message=message, history=history, calls=calls, **changes)


def read(assignment: Assignment) -> list[tuple[Any, ...]]:
    found = rebuilt(assignment, assignment.calls)
    return shape([*found.older, *found.current])


def test_a_first_message_is_all_there_is() -> None:
    assert read(work(user())) == [("user", "hello")]


def test_the_message_is_the_one_of_the_assignment_with_its_note_and_its_pictures() -> None:
    """R6: the note stands before the text, once."""
    picture = Image(media_type="image/png", data=b"x")
    found = rebuilt(work(user(), message="[System note: x]\n\nhello", images=[picture]), ())
    assert found.current == [UserMessage(text="[System note: x]\n\nhello", images=[picture])]


def test_older_turns_stand_before_it_and_queued_ones_are_not_its_business() -> None:
    later = TurnId("trn_later")
    history = (user("hi", OLD), said("Hi!", OLD), user(), user("me too", later))
    assert read(work(*history)) == [("user", "hi"), ("assistant", "Hi!"), ("user", "hello")]


def test_reasoning_questions_and_interruptions_are_not_sent_back() -> None:
    """R6: an interruption is named once, before the message; reasoning is for people."""
    history = (
        user("hi", OLD),
        item(Role.REASONING, "hm", OLD),
        item(Role.QUESTION, "may I?", OLD, kind="asked"),
        said("Hi", OLD, recovered=True),
        item(Role.MARKER, "Interrupted by a gateway restart.", OLD, kind="interrupted"),
        item(Role.NOTE, "restarting", OLD),
        user(),
    )
    assert read(work(*history)) == [("user", "hi"), ("assistant", "Hi"), ("user", "hello")]


@pytest.mark.parametrize(("kind", "text"), [("failed", "Failed: no model"), ("cancelled", "Cancelled.")])
def test_a_turn_that_was_not_answered_is_named_before_the_next_message(kind: str, text: str) -> None:
    history = (user("hi", OLD), said("Hm", OLD), item(Role.MARKER, text, OLD, kind=kind), user())
    note = f"[Note of the gateway about the turn above: {text}]"
    assert read(work(*history))[-1] == ("user", f"{note}\n\nhello")


def test_the_calls_of_one_step_stand_together_and_those_of_the_next_apart() -> None:
    history = (user(), said("A. "), card("s1_c1"), card("s1_c2"), card("s2_c1"), said("B. "), card("s3_c1"))
    assert read(work(*history)) == [
        ("user", "hello"),
        ("assistant", "A. ", "lever", "lever"),
        ("tool", "it"),
        ("tool", "it"),
        ("assistant", "", "lever"),
        ("tool", "it"),
        ("assistant", "B. ", "lever"),
        ("tool", "it"),
    ]


def test_calls_of_an_agent_that_knew_no_steps_belong_together_where_they_follow_each_other() -> None:
    history = (user("hi", OLD), card("call_0", turn=OLD), card("call_1", turn=OLD), said("ok", OLD), user())
    assert read(work(*history))[1:4] == [("assistant", "", "lever", "lever"), ("tool", "it"), ("tool", "it")]


def test_ids_are_unique_across_turns_and_made_of_what_every_vendor_takes() -> None:
    """The calls of all turns stand in one request, and two turns number theirs alike."""
    other = TurnId("trn_0123456789abcdefghjkmnpqrs")
    history = (user("hi", other), card("s1_c1", turn=other), card("odd id/1", turn=other), user(), card("s1_c1"))
    found = rebuilt(work(*history), ())
    ids = [each.id for part in (*found.older, *found.current) if isinstance(part, AssistantMessage) for each in part.calls]
    assert len(set(ids)) == 3
    assert all(each.replace("_", "").replace("-", "").isalnum() and len(each) <= 40 for each in ids)


_RESULTS = [("ok", "it"), ("error", "Error: it"), ("unknown", f"{UNKNOWN} it"), (None, UNKNOWN)]


@pytest.mark.parametrize(("outcome", "text"), _RESULTS)
def test_a_call_of_an_older_turn_always_has_a_result(outcome: str | None, text: str) -> None:
    """X1: where nobody knows the outcome, that is the result."""
    history = (user("hi", OLD), card("s1_c1", outcome, OLD), user())
    assert read(work(*history))[2] == ("tool", text)


def test_a_call_that_was_started_twice_is_read_once() -> None:
    """R10: a pure call cut by a crash has two cards, and one result."""
    history = (
        user(),
        said("Look. "),
        card("s1_c1"),
        card("s1_c2", None),
        item(Role.MARKER, "Interrupted.", kind="interrupted"),
        card("s1_c2"),
    )
    calls = (call("s1_c1"), call("s1_c2"))
    expected = [("assistant", "Look. ", "lever", "lever"), ("tool", "it"), ("tool", "it")]
    assert read(work(*history, calls=calls))[1:] == expected
    assert read(work(*history))[1:] == expected, "without the calls, as once it is an older turn"


def test_calls_that_a_person_was_asked_about_stand_in_their_step_though_nothing_shows_them() -> None:
    """What was planned beside them too, in the order in which the model asked for it."""
    history = (user(), said("All. "), card("s2_c3"))
    calls = tuple(call(each) for each in ("s10_c1", "s2_c1", "s2_c2", "s2_c3"))
    found = rebuilt(work(*history, calls=calls), calls)
    steps = [part for part in found.current if isinstance(part, AssistantMessage)]
    assert [[each.id.rpartition("now_")[2] for each in part.calls] for part in steps] == [
        ["s2_c1", "s2_c2", "s2_c3"],
        ["s10_c1"],
    ]
    assert_every_call_has_its_result(Request(messages=found.current))


def test_an_answer_that_was_cut_is_told_apart_from_one_that_waits_for_the_model() -> None:
    assert rebuilt(work(user(), said("One, "), said("two")), ()).is_cut
    assert not rebuilt(work(user()), ()).is_cut
    assert not rebuilt(work(user(), said("One"), card("s1_c1")), ()).is_cut
    assert not rebuilt(work(user(), said("One"), user("wait", kind="joined")), ()).is_cut


def test_pieces_of_several_attempts_are_one_text_and_steps_are_several() -> None:
    marker = item(Role.MARKER, "Interrupted.", kind="interrupted")
    found = rebuilt(work(user(), said("One, ", recovered=True), marker, said("two."), card("s1_c1"), said("Three.")), ())
    assert list(found.said) == ["One, two.", "Three."]


def test_what_joined_stands_where_it_was_heard() -> None:
    history = (user(), said("A. "), card("s1_c1"), user("hurry", kind="joined"), said("B."))
    assert read(work(*history))[-2:] == [("user", "hurry"), ("assistant", "B.")]


def test_a_summary_stands_first_whichever_turn_it_was_made_in() -> None:
    """Compaction is a view: the turn that made it may be this very one."""
    for made_in in (OLD, NOW):
        summary = item(Role.NOTE, "they like tea", made_in, kind="compacted")
        found = read(work(summary, user("hi", OLD), said("Hi!", OLD), user()))
        assert found[0] == ("user", f"{context.SUMMARY}\n\nthey like tea")
        assert found[1:] == [("user", "hi"), ("assistant", "Hi!"), ("user", "hello")]


def test_turns_before_this_one_are_found_behind_a_summary() -> None:
    summary = item(Role.NOTE, "tea", NOW, kind="compacted")
    assignment = work(summary, user("hi", OLD), user(), user("later", TurnId("trn_later")))
    assert context.turns_before(assignment, assignment.history) == [OLD]


def test_a_history_without_older_turns_begins_with_their_summary() -> None:
    history = [user("hi", OLD), said("Hi!", OLD), user()]
    assert [each.text for each in context.without(history, OLD, "tea")] == ["tea", "hello"]


def test_neighbouring_words_of_a_person_become_one_message() -> None:
    """Not every vendor takes two in a row."""
    messages = [UserMessage(text="a"), UserMessage(text="b"), AssistantMessage(text="c"), UserMessage(text="d")]
    assert shape(context.joined(messages)) == [("user", "a\n\nb"), ("assistant", "c"), ("user", "d")]


def test_where_space_is_short_the_results_of_old_steps_are_cut_and_the_last_stay_whole() -> None:
    history = [user(), *(card(f"s{number}_c1") for number in range(1, 6))]
    calls = tuple(call(f"s{number}_c1", result="x" * 5_000) for number in range(1, 6))
    found = context.thrifty(rebuilt(work(*history, calls=calls), calls).current)
    assert [len(each.text) < 2_000 for each in found if isinstance(each, ToolMessage)] == [True, True, False, False, False]


def test_what_is_summarised_is_plain_text_with_short_results() -> None:
    long = Item(
        role=Role.TOOL, turn_id=OLD, at=0, call_id="s1_c1", name="read", args={"p": 1}, result="x" * 9_000, outcome="ok"
    )
    text = context.as_text([item(Role.NOTE, "tea", OLD, kind="compacted"), user("hi", OLD), long, said("Hi!", OLD)])
    assert text.startswith("Earlier summary: tea\n\nPerson: hi\n\nTool read ")
    assert text.endswith("Assistant: Hi!")
    assert len(text) < 2_500


@pytest.mark.parametrize("state", effects.CallState)
def test_every_state_of_a_call_gives_a_result(state: effects.CallState) -> None:
    found = rebuilt(work(user(), calls=(call("s1_c1", state),)), (call("s1_c1", state),))
    assert_every_call_has_its_result(Request(messages=found.current))


# What can follow the message in one turn: everything that an attempt can leave behind.
_PIECES = (
    said("text "),
    item(Role.REASONING, "hm"),
    card("s1_c1"),
    card("s1_c2", None),
    card("s2_c1", "unknown"),
    card("call_7", "error"),
    user("joined", kind="joined"),
    item(Role.MARKER, "Interrupted.", kind="interrupted"),
    item(Role.NOTE, "a note"),
    item(Role.QUESTION, "may I?", kind="asked"),
)


def test_whatever_a_turn_has_left_the_request_is_one_that_every_vendor_takes() -> None:
    """R10: every sequence of up to four pieces, in an older turn and in this one."""
    for length in range(5):
        for pieces in itertools.product(_PIECES, repeat=length):
            older = [user("hi", OLD), *(Item(**{**_fields(piece), "turn_id": OLD}) for piece in pieces)]
            found = rebuilt(work(*older, user(), *pieces, calls=()), ())
            request = Request(messages=context.joined([*found.older, *found.current]))
            assert_every_call_has_its_result(request)
            assert isinstance(request.messages[0], UserMessage)
            kinds = [type(message) for message in request.messages]
            assert (UserMessage, UserMessage) not in itertools.pairwise(kinds)
            assert (AssistantMessage, AssistantMessage) not in itertools.pairwise(kinds)
            for message in request.messages:
                for each in message.calls if isinstance(message, AssistantMessage) else ():
                    assert isinstance(json.loads(each.args), dict)


def _fields(piece: Item) -> dict[str, Any]:
    return {name: getattr(piece, name) for name in Item.__slots__}


PRIORS = (
    item(Role.PRIOR, "be brief", kind="system"),
    item(Role.PRIOR, "my name is Ada", kind="user"),
    item(Role.PRIOR, "hello Ada", kind="assistant"),
)


def test_what_a_client_says_was_said_before_is_read_before_its_message_and_its_instructions_are_not() -> None:
    found = rebuilt(work(*PRIORS, user("who am I?"), message="who am I?"), ())
    assert shape(found.current) == [("user", "my name is Ada"), ("assistant", "hello Ada"), ("user", "who am I?")]


def test_what_a_client_recalls_was_not_said_in_this_turn() -> None:
    """What was said before cannot be taken for the beginning of this answer, nor its end for a cut."""
    found = rebuilt(work(*PRIORS, user("who am I?"), said("You are"), message="who am I?"), ())
    assert list(found.said) == ["You are"]
    assert found.is_cut
    assert not rebuilt(work(*PRIORS, user("who am I?"), message="who am I?"), ()).is_cut


def test_what_was_said_before_an_older_turn_is_still_read() -> None:
    older = [item(each.role, each.text, OLD, kind=each.kind) for each in PRIORS]
    assert read(work(*older, user("one", OLD), said("two", OLD), user())) == [
        ("user", "my name is Ada"),
        ("assistant", "hello Ada"),
        ("user", "one"),
        ("assistant", "two"),
        ("user", "hello"),
    ]


def test_a_summary_is_made_of_what_was_said_before_too_and_not_of_instructions() -> None:
    assert context.as_text([*PRIORS, user("who am I?")]) == (
        "Person: my name is Ada\n\nAssistant: hello Ada\n\nPerson: who am I?"
    )
