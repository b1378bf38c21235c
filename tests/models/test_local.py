"""A model in this process.  With the `local` extra a real one of random weights is loaded and run."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from holdfast.agent.models.catalog import open_model
from holdfast.agent.models.local import Chunk, LocalModel, open_local
from holdfast.agent.models.port import (
    AssistantMessage,
    Done,
    Facts,
    Model,
    StopReason,
    TextDelta,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from holdfast.config import ModelConfig
from holdfast.core.intake import Image
from holdfast.errors import ConfigInvalid, ContextTooLong, ModelUnavailable, ModelUnusable
from tests.models import gguf
from tests.models.scenes import TOOL, heard, request, text_of

INSTALLED = importlib.util.find_spec("xllamacpp") is not None
real = pytest.mark.skipif(not INSTALLED, reason="needs the extra `local`, which is large")
FACTS = Facts(context_tokens=gguf.CONTEXT, output_tokens_max=24)


def opened(file: Path) -> Model:
    return open_model(ModelConfig(name=f"local:{file}", context_tokens=256, output_tokens_max=24, retries=0), {}, {})


@pytest.mark.skipif(INSTALLED, reason="the extra `local` is there")
def test_without_the_extra_it_says_how_to_install_it(tmp_path: Path) -> None:
    """A clear refusal, at the start."""
    with pytest.raises(ConfigInvalid, match=r"pip install '.\[local\]'"):
        opened(gguf.write(tmp_path / "tiny.gguf"))


def test_what_is_no_model_is_refused_at_the_start(tmp_path: Path) -> None:
    """A missing file, a folder, and one of another kind."""
    other = tmp_path / "other.gguf"
    other.write_text("no model")
    for path in (tmp_path / "missing.gguf", tmp_path, other):
        with pytest.raises(ConfigInvalid, match=r"model\.name"):
            open_local(str(path), facts=FACTS, setting="model.name")


class Scripted:
    """An engine that says what it is told, with the library's own shapes."""

    def __init__(self, *chunks: Chunk) -> None:
        self.chunks = chunks
        self.bodies: list[dict[str, object]] = []
        self.said = 0

    def handle_chat_completions(self, body: dict[str, object], callback: Callable[[Chunk], bool], /) -> object:
        self.bodies.append(body)
        for chunk in self.chunks:
            self.said += 1
            if callback(chunk):
                break
        return None


def piece(text: str, reason: str | None = None) -> Chunk:
    return {
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": reason}],
    }


def with_engine(engine: Scripted) -> LocalModel:
    async def loaded() -> Scripted:
        return engine

    model = LocalModel(Path("scripted.gguf"), FACTS)
    model._loading = asyncio.create_task(loaded())
    return model


async def test_its_words_come_as_they_are_said() -> None:
    """Pieces from a thread, in order, with the end that the library tells."""
    usage = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}
    model = with_engine(Scripted(piece("a"), piece("b"), piece("", "length"), usage))
    *events, done = await heard(model, "hi")
    assert events == [TextDelta("a"), TextDelta("b")]
    assert isinstance(done, Done)
    assert (done.reason, done.usage.input_tokens, done.usage.output_tokens) == (StopReason.LENGTH, 7, 2)
    await model.close()


async def test_no_tools_are_offered_and_what_others_did_is_told_in_words() -> None:
    """It only talks; calls and pictures of another model are still readable."""
    engine = Scripted(piece("ok", "stop"))
    model = with_engine(engine)
    asked = request(
        UserMessage(text="look", images=(Image(media_type="image/png", data=b"png"),)),
        AssistantMessage(calls=(ToolCall(id="1", name="look", args="{}"),)),
        ToolMessage(call_id="1", text="one"),
        tools=[TOOL],
        system="Be brief.",
    )
    await heard(model, asked)
    (body,) = engine.bodies
    assert "tools" not in body
    assert not model.facts.images
    system, user, assistant, result = body["messages"]  # type: ignore[misc]
    assert system["content"] == "Be brief."
    assert "cannot see" in user["content"]
    assert assistant["content"] == "[called look {}]"
    assert result == {"role": "user", "content": "[result] one"}


async def test_an_answer_that_is_cut_is_no_answer() -> None:
    """No end, no `Done`."""
    with pytest.raises(ModelUnavailable, match="cut"):
        await heard(with_engine(Scripted(piece("a"))), "hi")


async def test_it_stops_when_nobody_listens() -> None:
    """Cancellable: the thread sees it at its next word."""
    engine = Scripted(*[piece("a")] * 1_000_000)
    model = with_engine(engine)
    async with aclosing(model.stream(request("hi"))) as events:
        await anext(events)
    await model.close()
    assert engine.said < 1_000_000


@real
async def test_a_real_file_is_loaded_and_talks(tmp_path: Path) -> None:
    """The whole way: file, library, thread, words, numbers; twice, from one loading."""
    model = opened(gguf.write(tmp_path / "tiny.gguf"))
    for _ in range(2):
        *events, done = await heard(model, "hello")
        assert text_of(events)
        assert isinstance(done, Done)
        assert done.usage.input_tokens > 0
        assert 0 < done.usage.output_tokens <= 24
    await model.close()


@real
async def test_a_real_conversation_can_be_too_long(tmp_path: Path) -> None:
    """The loop is told, so that it can compact."""
    model = opened(gguf.write(tmp_path / "tiny.gguf"))
    with pytest.raises(ContextTooLong):
        await heard(model, "hello " * 400)
    await model.close()


@real
async def test_a_real_answer_can_be_left(tmp_path: Path) -> None:
    """And the next one is given."""
    model = opened(gguf.write(tmp_path / "tiny.gguf"))
    async with aclosing(model.stream(request("hello"))) as events:
        await anext(events)
    assert text_of(await heard(model, "hello"))
    await model.close()


@real
async def test_a_real_broken_file_is_named(tmp_path: Path) -> None:
    """Half a file begins like a whole one."""
    whole = gguf.write(tmp_path / "tiny.gguf").read_bytes()
    half = tmp_path / "half.gguf"
    half.write_bytes(whole[: len(whole) // 2])
    model = opened(half)
    with pytest.raises(ModelUnusable, match="cannot be loaded"):
        await heard(model, "hello")
    await model.close()
