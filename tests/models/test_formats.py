"""Both wire formats against a real server: what goes out, and what comes back."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import pytest

from holdfast.agent.models.openai import ChunkReader, vendor_rules
from holdfast.agent.models.port import (
    AssistantMessage,
    Called,
    Done,
    Event,
    Message,
    ReasoningDelta,
    Request,
    StopReason,
    TextDelta,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from holdfast.core.intake import Image
from tests.models.scenes import FACTS, FORMATS, TOOL, heard, request, scene, text_of
from tests.models.test_transcripts import ENDPOINT

PICTURE = Image(media_type="image/png", data=b"\x89PNG picture")
STEP: Sequence[Message] = (
    UserMessage(text="look twice"),
    AssistantMessage(
        text="I look.",
        calls=(ToolCall(id="a:1", name="look", args='{"at": "x"}'), ToolCall(id="a:2", name="look", args="not json")),
        sealed=({"type": "thinking", "thinking": "hm", "signature": "s"}, {"reasoning_content": "hm"}),
    ),
    ToolMessage(call_id="a:1", text="one"),
    ToolMessage(call_id="a:2", text=""),
)


async def sent(format_: str, asked: Request, **options: Any) -> dict[str, Any]:
    """Return the body that a request becomes."""
    async with scene("say ok") as here:
        await heard(here.model(format_, **options), asked)
        return here.server.requests[0].body


@pytest.mark.parametrize("format_", FORMATS)
async def test_text_reasoning_calls_and_usage_come_through(format_: str) -> None:
    """One answer with everything in it; parallel calls keep their order."""
    async with scene('think hm; say I look; call look {"at": "x"}; whole look {"at": "y"}; usage 100 20 40') as here:
        *events, done = await heard(here.model(format_), "look twice")
    assert events[:2] == [ReasoningDelta("hm"), TextDelta("I look")]
    calls = [event.call for event in events if isinstance(event, Called)]
    assert [(call.name, call.args) for call in calls] == [("look", '{"at": "x"}'), ("look", calls[1].args)]
    assert calls[1].args.replace(" ", "") == '{"at":"y"}'
    assert calls[0].id != calls[1].id
    assert isinstance(done, Done)
    assert done.reason is StopReason.CALLS
    assert (done.usage.input_tokens, done.usage.output_tokens, done.usage.cached_tokens) == (100, 20, 40)
    assert done.usage.cost_micros == 60 * 2 + 40 * 0.5 + 20 * 10
    assert done.usage.model == f"{format_}:m"
    assert done.sealed


@pytest.mark.parametrize(
    ("format_", "told", "reason"),
    [
        ("openai", "stop", StopReason.END),
        ("openai", "eos", StopReason.END),
        ("openai", "length", StopReason.LENGTH),
        ("openai", "content_filter", StopReason.REFUSAL),
        ("openai", "something_new", StopReason.END),
        ("anthropic", "end_turn", StopReason.END),
        ("anthropic", "max_tokens", StopReason.LENGTH),
        ("anthropic", "model_context_window_exceeded", StopReason.LENGTH),
        ("anthropic", "refusal", StopReason.REFUSAL),
    ],
)
async def test_every_way_to_stop_is_named(format_: str, told: str, reason: StopReason) -> None:
    """What vendors call the same thing has one name here."""
    async with scene(f"say hello; stop {told}") as here:
        *_, done = await heard(here.model(format_), "hi")
    assert isinstance(done, Done)
    assert done.reason is reason


@pytest.mark.parametrize("format_", FORMATS)
async def test_one_connection_serves_one_request_after_another(format_: str) -> None:
    """Connections are made once, not for each step."""
    async with scene() as here:
        model = here.model(format_)
        for each in range(5):
            assert text_of(await heard(model, f"nonce {each}")) == f"nonce {each}"
        assert here.server.connections == 1


@pytest.mark.parametrize("format_", FORMATS)
async def test_a_caller_who_stops_listening_closes_the_connection(format_: str) -> None:
    """J9: cancelling a turn stops the model, and what it costs."""
    async with scene("stream 100000 at 0") as here:
        model = here.model(format_)
        async with aclosing(model.stream(request("hi"))) as events:
            async for _ in events:
                break
        assert text_of(await heard(model, "script: echo"))
        assert here.server.connections == 2


@pytest.mark.parametrize("format_", FORMATS)
async def test_a_cancelled_caller_does_not_wait(format_: str) -> None:
    """Cancellation at any await: here while the server is silent."""
    async with scene("say a; stall") as here:
        model = here.model(format_, stall_timeout_s=600)
        began = asyncio.Event()

        async def listen() -> None:
            async for _ in model.stream(request("hi")):
                began.set()

        listening = asyncio.create_task(listen())
        await began.wait()
        listening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await listening


async def test_a_server_that_does_not_stream_is_understood() -> None:
    """Some servers answer with one piece of JSON, whatever was asked."""
    async with scene("plain the whole answer") as here:
        events = await heard(here.model("openai"), "hi")
    assert events[0] == TextDelta("the whole answer")
    assert isinstance(events[-1], Done)
    assert events[-1].usage.input_tokens == 10


async def test_an_openai_request_has_the_shape_of_the_format() -> None:
    """Roles, calls, results, what was sealed, tools and the wish for usage."""
    body = await sent("openai", request(*STEP, "go on", tools=[TOOL], system="Be brief."), reasoning="low")
    system, user, assistant, one, two, last = body["messages"]
    assert system == {"role": "system", "content": "Be brief."}
    assert user == {"role": "user", "content": "look twice"}
    assert assistant["tool_calls"][0] == {
        "id": "a:1",
        "type": "function",
        "function": {"name": "look", "arguments": '{"at": "x"}'},
    }
    assert (assistant["content"], assistant["reasoning_content"]) == ("I look.", "hm")
    assert "thinking" not in assistant
    assert one == {"role": "tool", "tool_call_id": "a:1", "content": "one"}
    assert two["content"] == ""
    assert last["content"] == "go on"
    assert body["tools"][0]["function"]["parameters"] == TOOL.schema
    assert body["stream_options"] == {"include_usage": True}
    assert body["reasoning_effort"] == "low"
    assert "max_tokens" not in body


async def test_an_anthropic_request_has_the_shape_of_the_format() -> None:
    """Roles in turn, results together, ids it accepts, what was sealed, and the marks of its cache."""
    body = await sent("anthropic", request(*STEP, "go on", tools=[TOOL], system="Be brief."), reasoning="low")
    user, assistant, results = body["messages"]
    mark = {"type": "ephemeral"}
    assert body["system"] == [{"type": "text", "text": "Be brief.", "cache_control": mark}]
    assert user == {"role": "user", "content": [{"type": "text", "text": "look twice"}]}
    assert [block["type"] for block in assistant["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert assistant["content"][2] == {"type": "tool_use", "id": "a_1", "name": "look", "input": {"at": "x"}}
    assert assistant["content"][3]["input"] == {}
    assert [block.get("tool_use_id") for block in results["content"]] == ["a_1", "a_2", None]
    assert results["content"][1]["content"]
    assert results["content"][2] == {"type": "text", "text": "go on", "cache_control": mark}
    assert body["tools"] == [{"name": "look", "description": "Looks.", "input_schema": TOOL.schema, "cache_control": mark}]
    assert body["max_tokens"] > 0
    assert body["thinking"] == {"type": "adaptive"}


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("claude-sonnet-4-5-20250929", "enabled"),
        ("claude-sonnet-4-20250514", "enabled"),
        ("claude-opus-4-1", "enabled"),
        ("claude-opus-4-7", "adaptive"),
        ("claude-opus-5-5", "adaptive"),
        ("claude-sonnet-5", "adaptive"),
    ],
)
async def test_reasoning_is_asked_for_as_the_model_wants_it(model: str, kind: str) -> None:
    """Older models are told how long, newer ones how hard; each refuses the other."""
    body = await sent("anthropic", request("hi"), reasoning="high", name=model)
    assert body["thinking"]["type"] == kind
    assert body["max_tokens"] > body["thinking"].get("budget_tokens", 0)


async def test_reasoning_does_not_go_on_behind_calls_of_another_vendor() -> None:
    """A fallback in the middle of a turn must not be refused for reasoning that it never did."""
    foreign = AssistantMessage(calls=(ToolCall(id="1", name="look", args="{}"),))
    asked = request("look", foreign, ToolMessage(call_id="1", text="one"))
    assert "thinking" not in await sent("anthropic", asked, reasoning="high", name="claude-sonnet-4-5")


async def test_a_conversation_that_begins_with_the_model_is_taken() -> None:
    """After compaction the first message may be the model's own, which one format refuses."""
    body = await sent("anthropic", request(AssistantMessage(text="so far"), "go on"))
    assert [each["role"] for each in body["messages"]] == ["user", "assistant", "user"]


async def test_images_go_in_as_each_format_wants_them() -> None:
    """A data URL for one, a block with its source for the other."""
    asked = request(UserMessage(text="what is it?", images=(PICTURE,)))
    coded = base64.b64encode(PICTURE.data).decode()
    (openai,) = (await sent("openai", asked))["messages"]
    assert openai["content"][1] == {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{coded}"}}
    (anthropic,) = (await sent("anthropic", asked))["messages"]
    assert anthropic["content"][0]["source"] == {"type": "base64", "media_type": "image/png", "data": coded}


def test_vendors_get_the_words_that_they_accept() -> None:
    """The limit has two names, the wish for usage is not taken everywhere, and one vendor counts the letters of an id."""
    assert vendor_rules("https://api.openai.com/v1/chat/completions").limit_key == "max_completion_tokens"
    assert vendor_rules("http://127.0.0.1:8000/v1").limit_key == "max_tokens"
    assert not vendor_rules("https://api.mistral.ai/v1").usage_option
    assert vendor_rules("https://api.mistral.ai/v1").call_id_chars == 9


def read(*chunks: str, asked: Request | None = None) -> list[Event]:
    """Return what chunks say whose deltas are given as JSON."""
    reader = ChunkReader(ENDPOINT, FACTS, asked or request("hi"))
    events = [event for delta in chunks for event in reader.take(b'{"choices": [{"delta": %s}]}' % delta.encode())]
    events += reader.take(b'{"choices": [{"delta": {}, "finish_reason": "stop"}]}')
    done = reader.end()
    assert done
    return [*events, done]


def called(events: Sequence[Event]) -> list[tuple[str, str]]:
    return [(event.call.name, event.call.args) for event in events if isinstance(event, Called)]


def test_calls_under_one_number_are_told_apart() -> None:
    """Some vendors number every call 0; their ids or their whole arguments tell them apart."""
    by_id = read(
        '{"tool_calls": [{"index": 0, "id": "1", "function": {"name": "a", "arguments": "{}"}}]}',
        '{"tool_calls": [{"index": 0, "id": "2", "function": {"name": "b", "arguments": "{}"}}]}',
    )
    assert called(by_id) == [("a", "{}"), ("b", "{}")]
    without = read(
        '{"tool_calls": [{"index": 0, "id": "", "function": {"name": "a", "arguments": "{}"}}]}',
        '{"tool_calls": [{"index": 0, "id": "", "function": {"name": "a", "arguments": "{}"}}]}',
    )
    assert called(without) == [("a", "{}"), ("a", "{}")]


def test_calls_without_a_number_are_put_together() -> None:
    """Pieces that follow belong to the call that began last."""
    events = read(
        '{"tool_calls": [{"id": "1", "function": {"name": "a", "arguments": "{\\"x\\""}}]}',
        '{"tool_calls": [{"function": {"arguments": ": 1}"}}]}',
        '{"tool_calls": [{"id": "2", "function": {"name": "b", "arguments": {"y": 2}}}]}',
    )
    assert called(events) == [("a", '{"x": 1}'), ("b", '{"y":2}')]


def test_calls_that_are_finished_one_by_one_are_all_made() -> None:
    """Some vendors say after each of several calls that they are done."""
    reader = ChunkReader(ENDPOINT, FACTS, request("hi"))
    piece = '{"choices": [{"delta": {"tool_calls": [%s]}, "finish_reason": "tool_calls"}]}'
    call = '{"index": %d, "id": "%d", "function": {"name": "a", "arguments": "{}"}}'
    events = [event for each in (0, 1) for event in reader.take((piece % (call % (each, each))).encode())]
    assert [event.call.id for event in events if isinstance(event, Called)] == ["0", "1"]


def test_a_name_and_an_id_in_every_piece_are_not_repeated() -> None:
    """Some vendors send them each time."""
    piece = '{"tool_calls": [{"index": 0, "id": "1", "function": {"name": "a", "arguments": "%s"}}]}'
    assert called(read(piece % "{", piece % "}")) == [("a", "{}")]


def test_the_old_way_to_call_is_understood() -> None:
    """One function call, before there were tools."""
    events = read('{"function_call": {"name": "a", "arguments": "{"}}', '{"function_call": {"arguments": "}"}}')
    assert called(events) == [("a", "{}")]
    assert isinstance(events[-1], Done)
    assert events[-1].reason is StopReason.CALLS


def test_an_id_that_was_used_before_is_replaced() -> None:
    """X1: two calls of one conversation are never taken for the same."""
    before = AssistantMessage(calls=(ToolCall(id="call_0", name="a", args="{}"),))
    piece = '{"tool_calls": [{"index": %d, "id": %s, "function": {"name": "a", "arguments": "{}"}}]}'
    events = read(piece % (0, '"call_0"'), piece % (1, "null"), piece % (2, '"new"'), asked=request("hi", before))
    first, second, third = [event.call.id for event in events if isinstance(event, Called)]
    assert len({"call_0", first, second, third}) == 4
    assert third == "new"


def test_reasoning_goes_by_many_names() -> None:
    """Three vendors, three names, and one that sends two of them at once."""
    assert read('{"reasoning": "a"}')[0] == ReasoningDelta("a")
    assert read('{"reasoning_content": "a", "reasoning": "a"}')[:-1] == [ReasoningDelta("a")]
    parts = '{"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "a"}]}, {"type": "text", "text": "b"}]}'
    assert read(parts)[:-1] == [ReasoningDelta("a"), TextDelta("b")]


def test_what_is_sealed_is_kept_for_its_vendor() -> None:
    """Reasoning that a vendor wants back, beside the text or beside each call."""
    call = (
        '{"tool_calls": [{"index": 0, "id": "1", "function": {"name": "a", "arguments": "{}"}, "extra_content": {"k": 1}}]}'
    )
    done = read('{"reasoning_details": [{"id": 7}]}', call)[-1]
    assert isinstance(done, Done)
    assert list(done.sealed) == [{"reasoning_details": [{"id": 7}]}, {"extra_content": {"1": {"k": 1}}}]


async def test_what_was_sealed_beside_a_call_goes_back_beside_it() -> None:
    """The vendor finds it where it had put it."""
    call = ToolCall(id="1", name="a", args="{}")
    step = AssistantMessage(calls=(call,), sealed=({"extra_content": {"1": {"k": 1}}},))
    body = await sent("openai", request("hi", step, ToolMessage(call_id="1", text="one")))
    assert body["messages"][1]["tool_calls"][0]["extra_content"] == {"k": 1}


def test_a_cost_that_the_vendor_names_is_believed_where_no_price_is_known() -> None:
    """A broker knows what it asked for."""
    reader = ChunkReader(ENDPOINT, type(FACTS)(context_tokens=1), request("hi"))
    reader.take(b'{"choices": [{"delta": {}, "finish_reason": "stop"}]}')
    reader.take(b'{"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 6, "cost": 0.00125}}')
    done = reader.end()
    assert done
    assert done.usage.cost_micros == 1250
