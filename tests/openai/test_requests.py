"""What clients send, parsed: what a turn is to answer, what came before it, and what is refused with what to do instead."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest

from holdfast.channels.openai import binding, chat, forms, models, responses, runs
from holdfast.channels.openai.binding import ApiCaller
from holdfast.channels.openai.chat import ChatRequest
from holdfast.channels.openai.content import TurnInput, Unfit
from holdfast.channels.openai.responses import ResponseRequest
from holdfast.channels.openai.runs import RunRequest, Verdict
from holdfast.core.intake import Busy, Speaker
from holdfast.core.turns import Mode
from holdfast.errors import Rejected

PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"
JPEG = b"\xff\xd8\xff" + b"pixels"


def data_url(data: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def chat_request(*messages: dict[str, Any], **more: Any) -> ChatRequest:
    return msgspec.convert({"model": "holdfast", "messages": messages, **more}, ChatRequest)


def response_request(asked: Any, **more: Any) -> ResponseRequest:
    return msgspec.convert({"model": "holdfast", "input": asked, **more}, ResponseRequest)


def user(content: Any = "hello") -> dict[str, Any]:
    return {"role": "user", "content": content}


def wanted(*messages: dict[str, Any], **more: Any) -> TurnInput:
    return chat.wanted(chat_request(*messages, **more), alone=False)


def prior(found: TurnInput) -> list[tuple[str, str]]:
    return [(each.speaker.value, each.text) for each in found.prior]


def test_the_last_message_of_the_user_is_answered_and_the_rest_came_before() -> None:
    found = wanted(
        {"role": "system", "content": "be brief"},
        {"role": "developer", "content": "in verse"},
        user("my name is Ada"),
        {"role": "assistant", "content": "hello Ada"},
        user("who am I?"),
    )
    assert found.text == "who am I?"
    assert prior(found) == [
        ("system", "be brief"),
        ("system", "in verse"),
        ("user", "my name is Ada"),
        ("assistant", "hello Ada"),
    ]


def test_in_a_session_only_the_last_message_is_taken() -> None:
    request = chat_request({"role": "system", "content": "be brief"}, user("one"), user("two"))
    assert chat.wanted(request, alone=True) == TurnInput(text="two")


def test_parts_of_text_are_one_text() -> None:
    found = wanted(user([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]))
    assert found.text == "one\ntwo"


def test_a_system_message_behind_the_question_is_still_an_instruction() -> None:
    assert prior(wanted(user("hello"), {"role": "system", "content": "be brief"})) == [("system", "be brief")]


def test_calls_and_results_of_the_clients_tools_are_read_as_text() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}
    found = wanted(
        user("how is the weather?"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
    )
    assert found.text == "[Result of the client's tool call call_1: rain]"
    assert prior(found) == [
        ("user", "how is the weather?"),
        ("assistant", '[Called the client\'s tool weather with {"city":"Oslo"}, as call_1]'),
    ]


def test_pictures_come_as_data_urls_and_are_what_they_begin_with() -> None:
    found = wanted(
        user([{"type": "text", "text": "what is this?"}, {"type": "image_url", "image_url": {"url": data_url(JPEG)}}])
    )
    assert [(image.media_type, image.data) for image in found.images] == [("image/jpeg", JPEG)]
    assert found.text == "what is this?"


def test_a_picture_needs_no_words() -> None:
    found = wanted(user([{"type": "image_url", "image_url": {"url": data_url(PNG)}}]))
    assert (found.text, len(found.images)) == ("", 1)


def test_the_latest_earlier_pictures_are_shown_with_the_message_as_far_as_there_is_room() -> None:
    pictures = [PNG + bytes([number]) for number in range(6)]
    earlier = [user([{"type": "image_url", "image_url": {"url": data_url(each)}}]) for each in pictures[:5]]
    found = wanted(*earlier, user([{"type": "image_url", "image_url": {"url": data_url(pictures[5])}}]))
    assert [image.data for image in found.images] == pictures[2:]
    assert prior(found) == [("user", "[image]")] * 5


def test_more_pictures_in_one_message_than_a_model_takes_are_refused() -> None:
    part = {"type": "image_url", "image_url": {"url": data_url(PNG)}}
    with pytest.raises(Rejected, match="4 images at most"):
        wanted(user([part] * 5))


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("no messages", {"messages": []}, "messages is empty"),
    ("too many messages", {"messages": [user()] * 2_001}, "more than 2000"),
    ("only instructions", {"messages": [{"role": "system", "content": "x"}]}, "no message of the user"),
    ("empty text", {"messages": [user(" ")]}, "is empty"),
    ("no content", {"messages": [{"role": "user"}]}, "is empty"),
    ("the assistant's own", {"messages": [user(), {"role": "assistant", "content": "x"}]}, "assistant's own"),
    ("unknown role", {"messages": [{"role": "robot", "content": "x"}]}, "messages[0]: there is no role 'robot'"),
    ("audio", {"messages": [user([{"type": "input_audio", "input_audio": {}}])]}, "'input_audio' are not read"),
    ("file", {"messages": [user([{"type": "file", "file": {}}])]}, "'file' are not read"),
    (
        "address of a picture",
        {"messages": [user([{"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}])]},
        "messages[0].content[0] is the address",
    ),
    ("no picture", {"messages": [user([{"type": "image_url"}])]}, "has no image_url"),
    ("no base64", {"messages": [user([{"type": "image_url", "image_url": {"url": "data:image/png,x"}}])]}, "no data: URL"),
    (
        "broken base64",
        {"messages": [user([{"type": "image_url", "image_url": {"url": "data:image/png;base64,!"}}])]},
        "no base64",
    ),
    ("several answers", {"messages": [user()], "n": 2}, "n is 2"),
    ("no answer", {"messages": [user()], "n": 0}, "n is 0"),
    ("a tool required", {"messages": [user()], "tool_choice": "required"}, "no tool of the client's"),
    (
        "a tool by name",
        {"messages": [user()], "tool_choice": {"type": "function", "function": {"name": "x"}}},
        "no tool of the client's",
    ),
]


@pytest.mark.parametrize(("body", "message"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_what_cannot_be_answered_is_refused_with_what_to_do(body: dict[str, Any], message: str) -> None:
    request = msgspec.convert({"model": "holdfast", **body}, ChatRequest)
    with pytest.raises(Unfit) as refused:
        chat.wanted(request, alone=False)
    assert message in str(refused.value)
    assert refused.value.hint
    assert (refused.value.status, refused.value.code) == (400, "invalid_request")


@pytest.mark.parametrize(
    "more",
    [
        {"temperature": 0.2, "top_p": 1, "seed": 7, "max_tokens": 5, "stop": ["x"], "logit_bias": {"1": 2}},
        {"tools": [{"type": "function", "function": {"name": "x"}}], "tool_choice": "auto", "parallel_tool_calls": False},
        {"tool_choice": "none", "user": "ada", "n": 1, "modalities": ["text"], "reasoning_effort": "low"},
        {"response_format": {"type": "text"}, "service_tier": "auto", "store": True, "metadata": {"a": "b"}},
    ],
)
def test_what_only_concerns_the_model_is_accepted_and_not_used(more: dict[str, Any]) -> None:
    assert wanted(user(), **more) == TurnInput(text="hello")


@pytest.mark.parametrize("stream", ["yes", 1, [], {}])
def test_stream_is_true_or_false(stream: object) -> None:
    with pytest.raises(msgspec.ValidationError, match=r"\$\.stream"):
        chat_request(user(), stream=stream)


def test_the_form_of_an_answer_is_put_into_words() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    ((speaker, text),) = prior(wanted(user(), response_format=form))
    assert speaker == Speaker.SYSTEM
    assert '"properties": {"a": {"type": "string"}}' in text
    assert "JSON object" in forms.instruction({"type": "json_object"})
    assert '{"type": "object"' in forms.instruction({"type": "json_schema", "name": "x", "schema": schema})
    assert forms.instruction({"type": "text"}) == forms.instruction(None) == ""


def test_usage_is_wanted_in_a_stream_only_where_it_is_asked_for() -> None:
    assert chat_request(user(), stream_options={"include_usage": True}).wants_usage
    assert not chat_request(user(), stream_options={}).wants_usage
    assert not chat_request(user()).wants_usage


def test_a_response_is_asked_for_with_words_or_with_items() -> None:
    assert responses.wanted(response_request("hello")) == TurnInput(text="hello")
    found = responses.wanted(
        response_request(
            [
                {"role": "developer", "content": "in verse"},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "my name is Ada"}]},
                {"type": "reasoning", "id": "rs_1", "summary": []},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hello Ada"}]},
                {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c1", "output": "rain"},
                user([{"type": "input_text", "text": "and?"}, {"type": "input_image", "image_url": data_url(PNG)}]),
            ],
            instructions="be brief",
        )
    )
    assert (found.text, [image.data for image in found.images]) == ("and?", [PNG])
    assert prior(found) == [
        ("system", "be brief"),
        ("system", "in verse"),
        ("user", "my name is Ada"),
        ("assistant", "hello Ada"),
        ("assistant", "[Called the client's tool weather with {}, as c1]"),
        ("user", "[Result of the client's tool call c1: rain]"),
    ]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"input": ""}, "is empty"),
        ({"input": []}, "no message of the user"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "'item_reference' are not read"),
        ({"input": [{"content": "x"}]}, "there is no role ''"),
        ({"input": [{"role": "tool", "content": "x"}]}, "there is no role 'tool'"),
        ({"input": [{"role": "user", "content": [{"type": "input_file"}]}]}, "'input_file' are not read"),
        ({"input": "x", "conversation": "conv_1"}, "name of their own"),
        ({"input": "x", "store": False, "background": True}, "must be kept"),
        ({"input": "x", "store": False, "previous_response_id": "resp_1"}, "kept with it"),
        ({"input": "x", "tool_choice": "required"}, "no tool of the client's"),
        ({"input": "x", "metadata": {str(number): "x" for number in range(17)}}, "more than 16"),
        ({"input": [{"role": "user", "content": "x"}] * 2_001}, "more than 2000"),
    ],
)
def test_what_cannot_be_a_response_is_refused(body: dict[str, Any], message: str) -> None:
    with pytest.raises(Unfit) as refused:
        responses.wanted(msgspec.convert(body, ResponseRequest))
    assert message in str(refused.value)
    assert refused.value.hint


def test_what_is_kept_of_a_response_is_what_it_says_again() -> None:
    request = response_request(
        "x", instructions="be brief", metadata={"a": "b"}, background=True, previous_response_id="resp_0"
    )
    assert responses.kept(request) == {
        "endpoint": "responses",
        "model": "holdfast",
        "instructions": "be brief",
        "metadata": {"a": "b"},
        "background": True,
        "previous_response_id": "resp_0",
        "guided": True,
    }
    assert responses.kept(response_request("x", stream=True)) == {"endpoint": "responses", "model": "holdfast"}
    assert responses.kept(response_request("x", store=False))["store"] is False


def test_the_id_of_a_response_is_made_of_its_turns() -> None:
    assert responses.turn_id(responses.response_id(responses.TurnId("trn_1"))) == "trn_1"
    assert responses.turn_id("trn_1") == ""


def test_a_run_is_asked_for_with_words_or_with_items() -> None:
    request = msgspec.convert({"input": [{"role": "user", "content": "go"}], "instructions": "be brief"}, RunRequest)
    found = runs.wanted(request)
    assert (found.text, prior(found)) == ("go", [("system", "be brief")])
    assert runs.kept(request) == {"endpoint": "runs", "instructions": "be brief"}
    assert runs.wanted(RunRequest(input="go")) == TurnInput(text="go")
    with pytest.raises(Unfit, match="two sessions"):
        runs.wanted(msgspec.convert({"input": "x", "session_key": "a", "session_id": "ses_1"}, RunRequest))


def test_an_approval_is_said_in_one_way() -> None:
    assert Verdict(text="yes").words == "yes"
    assert Verdict(decision="once").words == "once"
    for verdict in (Verdict(), Verdict(text="yes", decision="deny"), Verdict(text=" ")):
        with pytest.raises(Unfit, match="either text or a decision"):
            _ = verdict.words


def test_the_gateway_answers_by_its_own_name_and_by_that_of_its_model() -> None:
    assert models.offered("openai:gpt-5") == ("holdfast", "openai:gpt-5", "gpt-5")
    assert models.offered("") == ("holdfast",)
    models.check("gpt-5", models.offered("openai:gpt-5"))
    with pytest.raises(Unfit) as refused:
        models.check("gpt-4", models.offered("openai:gpt-5"))
    assert (refused.value.status, refused.value.code) == (404, "model_not_found")
    assert refused.value.hint == "use one of: holdfast, openai:gpt-5, gpt-5"


CALLER = ApiCaller(endpoint="chat", owner="ada", unique="u1", key="k1")
FOUND = TurnInput(text="hello")


def bound() -> list[Any]:
    kept = {"endpoint": "chat"}
    return [
        make
        for detached in (False, True)
        for make in (
            binding.alone(CALLER, FOUND, kept, detached=detached),
            binding.opening(CALLER, FOUND, kept, detached=detached),
            binding.following(CALLER, FOUND, kept, "work", session="work", detached=detached),
        )
    ]


def test_no_message_of_the_api_promises_to_deliver_later() -> None:
    """A1, A3: every way to bind one says so."""
    assert [message.delivers_later for message in bound()] == [False] * 6
    assert {message.reply_to for message in bound()} == {None}


def test_somebody_waits_for_it_unless_it_is_detached() -> None:
    assert [message.mode for message in bound()] == [Mode.SYNCHRONOUS] * 3 + [Mode.DETACHED] * 3


def test_only_what_stands_alone_is_forgotten() -> None:
    """M1: a one-shot is ephemeral; a conversation is not."""
    assert [(message.one_shot, message.remembers) for message in bound()[:3]] == [
        (True, False),
        (False, True),
        (False, True),
    ]


def test_the_same_key_is_the_same_request_only_for_the_same_owner_endpoint_and_session() -> None:
    keys = {
        binding.alone(CALLER, FOUND, {}).dedupe_key,
        binding.following(CALLER, FOUND, {}, "work", session="work").dedupe_key,
        binding.alone(ApiCaller(endpoint="chat", owner="bob", unique="u", key="k1"), FOUND, {}).dedupe_key,
        binding.alone(ApiCaller(endpoint="runs", owner="ada", unique="u", key="k1"), FOUND, {}).dedupe_key,
        binding.following(
            ApiCaller(endpoint="chat", owner="ada", unique="u", key="b:k1"), FOUND, {}, "a", session="a"
        ).dedupe_key,
        binding.following(
            ApiCaller(endpoint="chat", owner="ada", unique="u", key="k1"), FOUND, {}, "a", session="a:b"
        ).dedupe_key,
    }
    assert len(keys) == 6
    assert binding.alone(CALLER, FOUND, {}).dedupe_key == "chat:ada::k1"


def test_a_repeat_finds_the_session_that_the_first_one_opened() -> None:
    """The body's digest holds the conversation, so that must be the same at every try."""
    first, again = (
        binding.alone(ApiCaller(endpoint="chat", owner="ada", unique=unique, key="k1"), FOUND, {}) for unique in ("u1", "u2")
    )
    assert first.body_hash() == again.body_hash()
    other = [binding.alone(ApiCaller(endpoint="chat", owner="ada", unique=unique), FOUND, {}) for unique in ("u1", "u2")]
    assert other[0].conversation != other[1].conversation
    assert other[0].dedupe_key is None


def test_who_goes_on_may_insist_on_being_next() -> None:
    assert binding.following(CALLER, FOUND, {}, "work", session="x", busy=Busy.REJECT).busy is Busy.REJECT
