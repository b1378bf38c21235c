"""A model that runs in this process, from a GGUF file, with the `local` extra.

Small models call tools unreliably, so it is offered none.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import secrets
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import msgspec

from holdfast.agent.models.failures import ModelEndpoint
from holdfast.agent.models.openai import IMAGE_LEFT_OUT, ChunkReader
from holdfast.agent.models.port import AssistantMessage, Event, Facts, Message, Request, ToolMessage, UserMessage
from holdfast.errors import ConfigInvalid, ModelUnavailable, ModelUnusable

log = logging.getLogger(__name__)

OUTPUT_TOKENS = 2_048

Chunk = Mapping[str, object]


class LocalEngine(Protocol):
    """The part of the library that is used: it sends chunks in OpenAI's format until the callback returns true."""

    def handle_chat_completions(self, body: dict[str, object], callback: Callable[[Chunk], bool], /) -> object: ...


def open_local(path: str, *, facts: Facts, setting: str) -> LocalModel:
    """Return the model in a file, which is loaded on first use.  Raises `ConfigInvalid`."""
    file = Path(path).expanduser()
    try:
        with file.open("rb") as opened:
            is_model = opened.read(4) == b"GGUF"
    except OSError as error:
        raise ConfigInvalid(f"{setting}: {file}: {error.strerror}") from error
    if not is_model:
        raise ConfigInvalid(f"{setting}: {file} is not a GGUF file")
    return LocalModel(file, facts)


class LocalModel:
    """One model in memory.  It answers in a thread, one request at a time."""

    def __init__(self, file: Path, facts: Facts) -> None:
        self._file = file
        self._facts = replace(facts, images=False)
        self._endpoint = ModelEndpoint(name=f"local:{file}", url="", headers={}, url_setting="the file")
        self._loading: asyncio.Task[LocalEngine] | None = None
        self._answering: set[asyncio.Task[object]] = set()

    @property
    def name(self) -> str:
        return self._endpoint.name

    @property
    def facts(self) -> Facts:
        return self._facts

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        engine = await self._engine()
        reader = ChunkReader(self._endpoint, self._facts, request)
        loop = asyncio.get_running_loop()
        chunks: asyncio.Queue[Chunk | None] = asyncio.Queue()
        enough = threading.Event()

        def heard(chunk: Chunk) -> bool:
            loop.call_soon_threadsafe(chunks.put_nowait, chunk)
            return enough.is_set()

        answering = asyncio.create_task(asyncio.to_thread(engine.handle_chat_completions, self._body(request), heard))
        self._answering.add(answering)
        answering.add_done_callback(self._answering.discard)
        answering.add_done_callback(lambda _: chunks.put_nowait(None))
        try:
            while (chunk := await chunks.get()) is not None:
                for event in self._read(reader, chunk):
                    yield event
        finally:
            # The thread checks this at its next token.
            enough.set()
        if (error := answering.exception()) is not None:
            raise ModelUnavailable(f"{self.name}: {error}") from error
        if (done := reader.end()) is None:
            raise ModelUnavailable(f"{self.name}: the answer was cut before its end")
        yield done

    async def close(self) -> None:
        loading, self._loading = self._loading, None
        # A thread cannot be stopped, and must not outlive the model.
        if pending := {*self._answering, *([loading] if loading is not None else [])}:
            await asyncio.wait(pending)

    def _read(self, reader: ChunkReader, chunk: Chunk) -> list[Event]:
        try:
            return list(reader.take_object(chunk))
        except msgspec.ValidationError as error:
            raise ModelUnavailable(f"{self.name}: sends malformed events") from error

    async def _engine(self) -> LocalEngine:
        if self._loading is None:
            self._loading = asyncio.create_task(asyncio.to_thread(_load, self._file, self._facts.context_tokens))
        try:
            return await asyncio.shield(self._loading)
        except RuntimeError as error:
            raise ModelUnusable(f"{self.name}: the file cannot be loaded: {error}") from error

    def _body(self, request: Request) -> dict[str, object]:
        system = [{"role": "system", "content": request.system}] if request.system else []
        return {
            "messages": [*system, *map(_told, request.messages)],
            "max_tokens": request.output_tokens_max or self._facts.output_tokens_max or OUTPUT_TOKENS,
            "stream": True,
            "stream_options": {"include_usage": True},
        }


def _told(message: Message) -> dict[str, str]:
    """Return a message as plain text: a model without tools still reads the calls of earlier models."""
    match message:
        case UserMessage():
            return {"role": "user", "content": "\n".join([message.text, *[IMAGE_LEFT_OUT] * len(message.images)])}
        case AssistantMessage():
            calls = [f"[called {call.name} {call.args}]" for call in message.calls]
            return {"role": "assistant", "content": "\n".join([message.text, *calls]).strip()}
        case ToolMessage():
            return {"role": "user", "content": f"[result] {message.text}"}


def _load(file: Path, context_tokens: int) -> LocalEngine:
    xllamacpp: Any = importlib.import_module("xllamacpp")  # It has no types, and is only there with the extra.
    params = xllamacpp.CommonParams()
    params.model.path = str(file)
    params.n_ctx = context_tokens
    params.n_parallel = 1
    params.verbosity = -1
    # The library always listens on loopback; this random key keeps other programs out.
    params.api_keys = [secrets.token_urlsafe()]
    log.info("loading %s", file)
    return xllamacpp.Server(params)
