"""A turn as its client reads it: whole, in chunks, as events; always the same fold of the same journal."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from holdfast.channels.openai import chat
from holdfast.channels.openai.chat import DONE, Chunks
from holdfast.channels.openai.events import ALL, Events, input_items
from holdfast.core.events import EntryKind, Picture, TurnAccepted
from holdfast.core.intake import Prior, Speaker
from holdfast.core.journal import Entry
from holdfast.core.progress import Progress
from holdfast.core.turns import TurnState
from tests.openai.journal import (
    ANSWERED,
    AT,
    COMPLETED,
    STARTED,
    TOOL,
    TURN,
    accepted,
    asked,
    cut,
    journal,
    said,
    thought,
    used,
)

WHOLE = (accepted(), STARTED, thought("hm"), said("one "), used(10, 2), said("two"), used(5, 1, 3), COMPLETED)


def folded(entries: list[Entry]) -> Progress:
    progress = Progress()
    for entry in entries:
        progress.take(entry)
    return progress


def test_a_turn_says_what_was_said_and_used_what_was_used() -> None:
    progress = folded(journal(*WHOLE))
    assert (progress.text, progress.state) == ("one two", TurnState.COMPLETED)
    assert (progress.usage.input_tokens, progress.usage.output_tokens, progress.usage.cached_tokens) == (15, 3, 3)


def test_what_is_said_after_a_tool_is_another_paragraph() -> None:
    assert folded(journal(accepted(), STARTED, said("Let me look."), *TOOL, said("It is "), said("5."))).text == (
        "Let me look.\n\nIt is 5."
    )
    assert folded(journal(accepted(), STARTED, *TOOL, said("5."))).text == "5."


def test_an_answer_that_goes_on_after_an_interruption_is_one_sentence() -> None:
    entries = journal(accepted(), STARTED, said("to be "), cut(), STARTED, said("or not"), COMPLETED)
    assert folded(entries).text == "to be or not"
    assert folded(entries[:4]).state is TurnState.INTERRUPTED
    assert folded(journal(accepted(), STARTED, cut(continues=True))).state is TurnState.QUEUED


def test_what_a_tool_of_a_lost_attempt_came_to_breaks_no_sentence() -> None:
    started, finished = TOOL
    entries = journal(accepted(), STARTED, started, cut(), STARTED, said("It is "), finished, said("5."), COMPLETED)
    later = [replace(entry, attempt=2) for entry in entries[4:]]
    later[2] = replace(later[2], attempt=1)
    assert folded([*entries[:4], *later]).text == "It is 5."


def test_a_question_is_open_until_it_is_answered() -> None:
    waiting = folded(journal(accepted(), STARTED, asked("may I?")))
    assert (waiting.state, waiting.question and waiting.question.text) == (TurnState.WAITING, "may I?")
    going_on = folded(journal(accepted(), STARTED, asked(), ANSWERED, STARTED))
    assert (going_on.state, going_on.question) == (TurnState.RUNNING, None)


def test_a_failed_turn_says_why() -> None:
    progress = folded(journal(accepted(), STARTED, (EntryKind.TURN_FAILED, {"error": "no model"})))
    assert (progress.state, progress.error) == (TurnState.FAILED, "no model")


def test_a_whole_completion() -> None:
    found = chat.completion(TURN, "holdfast", AT, folded(journal(*WHOLE)))
    assert (found.id, found.created, found.model) == ("chatcmpl-trn_1", AT // 1000, "holdfast")
    assert found.choices[0].message.content == "one two"
    assert (found.usage.prompt_tokens, found.usage.completion_tokens, found.usage.total_tokens) == (15, 3, 18)
    assert found.usage.prompt_tokens_details.cached_tokens == 3


def chunks_of(entries: list[Entry], *, usage: bool = False) -> list[Any]:
    chunks = Chunks(TURN, 'a "model"', AT, usage=usage)
    sent = chunks.opening() + b"".join(map(chunks.take, entries)) + chunks.closing()
    lines = [line for line in sent.split(b"\n\n") if line]
    assert lines[-1] == DONE.strip()
    return [json.loads(line.removeprefix(b"data: ")) for line in lines[:-1]]


def test_chunks_begin_with_the_role_and_end_with_the_reason() -> None:
    found = chunks_of(journal(*WHOLE))
    assert {(each["id"], each["object"], each["created"], each["model"]) for each in found} == {
        ("chatcmpl-trn_1", "chat.completion.chunk", AT // 1000, 'a "model"')
    }
    assert [each["choices"][0]["delta"] for each in found] == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "hm"},
        {"content": "one "},
        {"content": "two"},
        {},
    ]
    assert [each["choices"][0]["finish_reason"] for each in found] == [None] * 4 + ["stop"]
    assert not any("usage" in each for each in found)


def test_usage_is_the_last_chunk_where_it_was_asked_for() -> None:
    *others, last = chunks_of(journal(*WHOLE), usage=True)
    assert last["choices"] == []
    assert last["usage"]["total_tokens"] == 18
    assert [each["usage"] for each in others] == [None] * 5


@pytest.mark.parametrize("text", ['"', "\n\ndata: [DONE]\n\n", "\u2028", "😀", "\x00", "\\"])
def test_no_text_can_end_its_chunk(text: str) -> None:
    found = chunks_of(journal(accepted(), STARTED, said(text), COMPLETED))
    assert found[1]["choices"][0]["delta"] == {"content": text}


def test_whoever_looks_at_a_stream_that_waits_sees_what_for() -> None:
    chunks = Chunks(TURN, "m", AT, usage=False)
    (entry,) = journal(asked("may I?\n\ndata: x"))
    assert chunks.take(entry) == b": waiting for a person to answer: may I? data: x\n\n"


def test_a_failure_is_an_event_that_clients_raise() -> None:
    sent = Chunks(TURN, "m", AT, usage=False).failure("turn_failed", "no model", "look at the log", TURN)
    error, done, _ = sent.split(b"\n\n")
    assert json.loads(error.removeprefix(b"data: "))["error"]["message"] == "no model; look at the log"
    assert done == b"data: [DONE]"


def events_of(entries: list[Entry], after: int = -1) -> list[Any]:
    events = Events(after)
    sent = b"".join(map(events.take, entries))
    found = []
    for frame in sent.split(b"\n\n")[:-1]:
        kind, data = frame.split(b"\n")
        event = json.loads(data.removeprefix(b"data: "))
        assert kind.decode() == f"event: {event['type']}"
        found.append(event)
    return found


REQUEST = {"endpoint": "responses", "model": "holdfast", "metadata": {"a": "b"}, "instructions": "be brief", "guided": True}
RESPONSE = (accepted(request=REQUEST), *WHOLE[1:])


def test_the_events_of_a_response_in_their_order() -> None:
    found = events_of(journal(*RESPONSE))
    assert [each["type"].removeprefix("response.") for each in found] == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert [each["sequence_number"] for each in found] == list(range(16))
    assert [each["delta"] for each in found if each["type"] == "response.output_text.delta"] == ["one ", "two"]


def test_a_whole_response() -> None:
    response = events_of(journal(*RESPONSE))[-1]["response"]
    reasoning, message = response["output"]
    assert reasoning["summary"] == [{"type": "summary_text", "text": "hm"}]
    assert (message["status"], message["content"][0]["text"]) == ("completed", "one two")
    assert (response["id"], response["status"], response["metadata"]) == ("resp_trn_1", "completed", {"a": "b"})
    assert (response["instructions"], response["model"]) == ("be brief", "holdfast")
    assert (response["created_at"], response["completed_at"]) == (AT // 1000, AT // 1000 + 7)
    assert response["usage"] == {
        "input_tokens": 15,
        "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 0},
        "output_tokens": 3,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 18,
    }


@pytest.mark.parametrize("after", range(-1, 17))
def test_a_stream_goes_on_behind_any_event(after: int) -> None:
    """J8: exactly the missing events."""
    entries = journal(*RESPONSE)
    assert events_of(entries, after) == events_of(entries)[after + 1 :]


@pytest.mark.parametrize("known", range(1, 8))
def test_an_event_is_the_same_at_every_reading(known: int) -> None:
    """What was seen while the turn ran is what is seen when it is over."""
    entries = journal(*RESPONSE)
    early = events_of(entries[:known])
    assert early == events_of(entries)[: len(early)]


def test_what_nobody_reads_is_not_written() -> None:
    events = Events(ALL)
    assert b"".join(map(events.take, journal(*RESPONSE))) == b""
    assert events.response()["status"] == "completed"


def status_of(*lines: Any, **request: Any) -> tuple[Any, ...]:
    found = Events(ALL)
    for entry in journal(accepted(request={**REQUEST, **request}), *lines):
        found.take(entry)
    response: Any = found.response()
    return response["status"], response["error"], response["incomplete_details"]


def test_the_status_of_a_response() -> None:
    assert status_of() == ("in_progress", None, None)
    assert status_of(background=True) == ("queued", None, None)
    assert status_of(STARTED, background=True) == ("in_progress", None, None)
    assert status_of(STARTED, asked()) == ("in_progress", None, None)
    assert status_of(STARTED, COMPLETED) == ("completed", None, None)
    assert status_of(STARTED, (EntryKind.TURN_FAILED, {"error": "no"})) == (
        "failed",
        {"code": "server_error", "message": "no"},
        None,
    )
    assert status_of((EntryKind.TURN_CANCELLED, {}), background=True) == ("cancelled", None, None)
    assert status_of(STARTED, cut()) == ("incomplete", None, {"reason": "interrupted"})
    assert status_of(STARTED, cut(continues=True)) == ("in_progress", None, None)


def test_a_response_in_the_background_is_queued_first() -> None:
    found = events_of(journal(accepted(request={**REQUEST, "background": True})))
    assert [each["type"] for each in found] == ["response.created", "response.queued"]
    assert {each["response"]["status"] for each in found} == {"queued"}


@pytest.mark.parametrize(
    ("end", "last", "status"),
    [
        ((EntryKind.TURN_FAILED, {"error": "no"}), "response.failed", "failed"),
        ((EntryKind.TURN_CANCELLED, {}), "response.incomplete", "cancelled"),
    ],
)
def test_what_does_not_come_to_its_end_says_how_far_it_came(end: Any, last: str, status: str) -> None:
    """J9: a cancel keeps the partial text."""
    *_, item, final = events_of(journal(accepted(request=REQUEST), STARTED, said("half"), end))
    assert (item["type"], item["item"]["status"]) == ("response.output_item.done", "incomplete")
    assert (final["type"], final["response"]["status"]) == (last, status)
    assert final["response"]["output"][0]["content"][0]["text"] == "half"


def test_an_interruption_is_an_event_only_for_whom_it_is_the_end() -> None:
    """Its number is taken either way, so that those behind it stay the same."""
    lines = (accepted(request=REQUEST), STARTED, said("half "), cut())
    at_rest = Events()
    sent = b"".join(map(at_rest.take, journal(*lines)))
    last = json.loads(at_rest.cut.split(b"data: ")[1])
    assert b"response.incomplete" not in sent
    assert (last["type"], last["response"]["status"]) == ("response.incomplete", "incomplete")
    gone_on = events_of(journal(*lines, STARTED, said("whole"), COMPLETED))
    numbers = [each["sequence_number"] for each in gone_on]
    assert last["sequence_number"] not in numbers
    assert sorted([*numbers, last["sequence_number"]]) == list(range(len(numbers) + 1))
    assert gone_on[-1]["response"]["output"][0]["content"][0]["text"] == "half whole"


def test_words_that_are_found_after_an_interruption_stand_before_its_event() -> None:
    """J8: the last event has the last number, and a reader that saw it before gets the words, and it once more."""
    entries = journal(accepted(request=REQUEST), STARTED, said("half "), cut(), said("whole"))

    def read(known: int, after: int = -1) -> list[Any]:
        events = Events(after)
        sent = b"".join(map(events.take, entries[:known])) + events.cut
        return [json.loads(frame.split(b"data: ")[1]) for frame in sent.split(b"\n\n")[:-1]]

    early, whole = read(4), read(5)
    numbers = [each["sequence_number"] for each in whole]
    assert numbers == sorted(numbers)
    assert whole[-1]["response"]["output"][0]["content"][0]["text"] == "half whole"
    assert read(5, early[-1]["sequence_number"]) == whole[-2:]
    assert read(5, numbers[-1]) == []


def test_nothing_stands_behind_the_last_event_of_a_response() -> None:
    """J8: a turn may be cancelled while what its lost attempt had said is still being looked for."""
    lines = (accepted(request=REQUEST), STARTED, said("half"), (EntryKind.TURN_CANCELLED, {}))
    assert events_of(journal(*lines, said("late"), (EntryKind.TURN_RECOVERED, {}))) == events_of(journal(*lines))


def test_a_question_is_shown_with_the_response_that_waits_for_it() -> None:
    events = Events(ALL)
    for entry in journal(accepted(request=REQUEST), STARTED, asked("may I?")):
        events.take(entry)
    question: Any = events.response()["question"]
    assert (question["question_id"], question["text"]) == ("q1", "may I?")


def test_only_kept_responses_can_be_read_as_such() -> None:
    def is_response(request: dict[str, Any]) -> bool:
        events = Events(ALL)
        events.take(journal(accepted(request=request))[0])
        return events.is_response

    assert is_response(REQUEST)
    assert not is_response({**REQUEST, "store": False})
    assert not is_response({"endpoint": "chat"})
    assert not is_response({})


def test_the_items_that_a_response_was_asked_with() -> None:
    prior = (Prior(speaker=Speaker.SYSTEM, text="be brief"), Prior(speaker=Speaker.ASSISTANT, text="hello"))
    picture = Picture(media_type="image/png", bytes=3)
    found: list[Any] = input_items(TurnAccepted(text="and?", prior=prior, images=(picture,), request=REQUEST))
    assert [(each["role"], each["content"][0]["text"]) for each in found] == [("assistant", "hello"), ("user", "and?")]
    assert [part["type"] for part in found[1]["content"]] == ["input_text", "input_image"]
    assert len(input_items(TurnAccepted(text="and?", prior=prior))) == 3
