"""Transcripts after the published shapes of both formats, cut anywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.agent.models.anthropic import EventReader
from holdfast.agent.models.client import Reader, merged
from holdfast.agent.models.failures import ModelEndpoint
from holdfast.agent.models.openai import ChunkReader
from holdfast.agent.models.port import Called, Done, Event, Facts, ReasoningDelta, Request, StopReason, TextDelta, ToolCall
from holdfast.agent.models.sse import Splitter
from holdfast.core.usage import Usage

FOLDER = Path(__file__).parent / "transcripts"
ENDPOINT = ModelEndpoint(name="vendor:model", url="http://127.0.0.1", headers={})
FACTS = Facts(context_tokens=1000, input_price=1, output_price=10, cached_price=0.1)
READERS: dict[str, Callable[[], Reader]] = {
    "openai": lambda: ChunkReader(ENDPOINT, FACTS, Request(messages=())),
    "anthropic": lambda: EventReader(ENDPOINT, FACTS, Request(messages=())),
}
TALK: list[Event] = [
    ReasoningDelta("Two cities, "),
    ReasoningDelta("two calls."),
    TextDelta("Grüß Gott"),
    TextDelta(" – 天気 ☀️."),
]


def recorded(name: str) -> bytes:
    return (FOLDER / f"{name}.txt").read_bytes()


def parsed(name: str, chunks: Sequence[bytes]) -> list[Event]:
    splitter, reader = Splitter(), READERS[name]()
    events = [event for chunk in chunks for data in splitter.feed(chunk) for event in reader.take(data)]
    events += [event for data in splitter.flush() for event in reader.take(data)]
    done = reader.end()
    assert reader.complete
    assert done
    return [*events, done]


def test_a_recorded_openai_stream_is_read_whole() -> None:
    """A published stream: text, reasoning, parallel calls and usage, with nothing left out."""
    *events, done = parsed("openai", [recorded("openai")])
    assert events == [
        *TALK,
        Called(ToolCall(id="call_DdmO9pD3xa9XTPNJ32zg2hcA", name="get_weather", args='{"city": "Zürich"}')),
        Called(ToolCall(id="call_ABx2rMVTcsXr0LZtBVGVNzJF", name="get_weather", args='{"city": "東京"}')),
    ]
    # 93 tokens at 1 $, 1024 from the cache at 0.1 $, 46 at 10 $, per million.
    usage = Usage(model="vendor:model", input_tokens=1117, output_tokens=46, cached_tokens=1024, cost_micros=655)
    sealed = [{"reasoning_content": "Two cities, two calls."}]
    assert done == Done(reason=StopReason.CALLS, usage=usage, sealed=sealed)


def test_a_recorded_anthropic_stream_is_read_whole() -> None:
    """A published stream: text, signed and hidden reasoning, parallel calls and usage, with nothing left out."""
    *events, done = parsed("anthropic", [recorded("anthropic")])
    assert events == [
        *TALK,
        Called(ToolCall(id="toolu_01T1x1fJ34qAmk2tNTrN7Up6", name="get_weather", args='{"city": "Zürich"}')),
        Called(ToolCall(id="toolu_01A09q90qw90lq917835lq9", name="get_weather", args='{"city": "東京"}')),
    ]
    assert isinstance(done, Done)
    assert done.reason is StopReason.CALLS
    # 93 tokens at 1 $, 200 written to the cache at 1.25 $, 1024 from the cache at 0.1 $, 46 at 10 $, per million.
    assert done.usage == Usage(
        model="vendor:model", input_tokens=1317, output_tokens=46, cached_tokens=1024, cost_micros=905
    )
    thinking, hidden = done.sealed
    assert thinking["thinking"] == "Two cities, two calls."
    assert str(thinking["signature"]).startswith("EqQBCg")
    assert hidden["type"] == "redacted_thinking"


@pytest.mark.parametrize("name", READERS)
@given(data=st.data())
def test_any_split_into_chunks_gives_the_same_events(name: str, data: st.DataObject) -> None:
    """Inside a line end, inside a character: where the network cuts changes nothing."""
    whole = recorded(name)
    if data.draw(st.booleans(), label="with CRLF"):
        whole = whole.replace(b"\n", b"\r\n")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=40), label="cuts"))
    chunks = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert parsed(name, chunks) == parsed(name, [recorded(name)])


@pytest.mark.parametrize("name", READERS)
def test_every_byte_alone_gives_the_same_events(name: str) -> None:
    """The slowest of all networks."""
    whole = recorded(name)
    assert parsed(name, [whole[at : at + 1] for at in range(len(whole))]) == parsed(name, [whole])


@pytest.mark.parametrize("name", READERS)
def test_a_stream_that_is_cut_anywhere_has_no_end(name: str) -> None:
    """J1: an answer is only over when its vendor said so."""
    whole = recorded(name)
    last = b'"finish_reason":"tool_calls"' if name == "openai" else b'"stop_reason":"tool_use"'
    for at in range(0, whole.index(last), 97):
        splitter, reader = Splitter(), READERS[name]()
        for data in splitter.feed(whole[:at]):
            reader.take(data)
        assert reader.end() is None


def test_text_that_came_together_is_one_event() -> None:
    """Neighbours are joined, and nothing changes places."""
    call = Called(ToolCall(id="1", name="a", args=""))
    events = [ReasoningDelta("a"), ReasoningDelta("b"), TextDelta("c"), TextDelta("d"), call, TextDelta("e")]
    assert merged(events) == [ReasoningDelta("ab"), TextDelta("cd"), call, TextDelta("e")]
